-- The words of private messages by their stems: how much each tells of its message. `recalled` 0: still to be indexed.
ALTER TABLE messages ADD COLUMN recalled INTEGER NOT NULL DEFAULT 0;
CREATE INDEX messages_unrecalled ON messages (person_id, id) WHERE recalled = 0;
CREATE TABLE postings (
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  term TEXT NOT NULL,
  message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  weight REAL NOT NULL,
  PRIMARY KEY (person_id, term, message_id)
) WITHOUT ROWID;
CREATE INDEX postings_message ON postings (message_id);
