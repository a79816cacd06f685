-- What any skill keeps under keys that begin with "fact:" is found for a turn's prompt without looking
-- through all that skills keep.
CREATE INDEX skill_data_facts ON skill_data (person_id, key) WHERE key >= 'fact:' AND key < 'fact;';
