-- What may be answered: button id → choice, as JSON; and what was. `subject` is the hash of what the
-- question is about beyond its arguments (the bytes of an install).
ALTER TABLE approvals ADD COLUMN choices TEXT NOT NULL DEFAULT '{}';
ALTER TABLE approvals ADD COLUMN choice TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN subject TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN title TEXT NOT NULL DEFAULT '';
CREATE INDEX approvals_turn ON approvals (turn_id);

-- "Always here": a person's standing yes to one tool, as it was defined then, in one conversation.
CREATE TABLE standing_consents (
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  tool TEXT NOT NULL,
  tool_hash TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (conversation_id, person_id, tool, tool_hash)
) WITHOUT ROWID;
CREATE INDEX standing_consents_person ON standing_consents (person_id);

-- Where text of others in a turn's prompt came from, a source a line; "" where all of it is the person's.
ALTER TABLE turns ADD COLUMN taint TEXT NOT NULL DEFAULT '';
