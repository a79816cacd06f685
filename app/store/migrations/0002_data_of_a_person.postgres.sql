-- How many bytes skills keep for a person: counted by the database itself, so that no writer can forget it.
ALTER TABLE people ADD COLUMN data_bytes bigint NOT NULL DEFAULT 0;

CREATE FUNCTION count_skill_data() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    UPDATE people SET data_bytes = data_bytes - octet_length(OLD.key) - octet_length(OLD.value)
    WHERE id = OLD.person_id;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    UPDATE people SET data_bytes = data_bytes + octet_length(NEW.key) + octet_length(NEW.value)
    WHERE id = NEW.person_id;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER skill_data_counted AFTER INSERT OR UPDATE OF value OR DELETE ON skill_data
  FOR EACH ROW EXECUTE FUNCTION count_skill_data();
