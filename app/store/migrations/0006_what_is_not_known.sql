-- Calls that may have happened or not: the same again needs the person's yes, also in a later turn.
CREATE TABLE uncertain_calls (
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  tool TEXT NOT NULL,
  arguments_hash TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (person_id, tool, arguments_hash)
) WITHOUT ROWID;

-- Whether what a skill keeps was made of text of others.
ALTER TABLE skill_data ADD COLUMN outside INTEGER NOT NULL DEFAULT 0;
