-- How many bytes skills keep for a person: counted by the database itself, so that no writer can forget it.
ALTER TABLE people ADD COLUMN data_bytes INTEGER NOT NULL DEFAULT 0;

UPDATE people SET data_bytes = coalesce(
  (SELECT sum(length(CAST(key AS BLOB)) + length(CAST(value AS BLOB)))
   FROM skill_data WHERE person_id = people.id), 0);

CREATE TRIGGER skill_data_added AFTER INSERT ON skill_data BEGIN
  UPDATE people SET data_bytes = data_bytes
    + length(CAST(NEW.key AS BLOB)) + length(CAST(NEW.value AS BLOB))
  WHERE id = NEW.person_id;
END;

CREATE TRIGGER skill_data_changed AFTER UPDATE OF value ON skill_data BEGIN
  UPDATE people SET data_bytes = data_bytes
    + length(CAST(NEW.value AS BLOB)) - length(CAST(OLD.value AS BLOB))
  WHERE id = NEW.person_id;
END;

CREATE TRIGGER skill_data_gone AFTER DELETE ON skill_data BEGIN
  UPDATE people SET data_bytes = data_bytes
    - length(CAST(OLD.key AS BLOB)) - length(CAST(OLD.value AS BLOB))
  WHERE id = OLD.person_id;
END;
