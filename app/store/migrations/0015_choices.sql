-- Questions with options that the assistant asks a person. An answer is words of the person and approves nothing.
CREATE TABLE choices (
  id TEXT PRIMARY KEY,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  -- JSON: the options as whole texts, in the order in which they were shown
  options TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'answered', 'over')),
  answer TEXT NOT NULL DEFAULT '',
  created_at REAL NOT NULL
);
CREATE INDEX choices_open ON choices (conversation_id) WHERE state = 'open';
CREATE INDEX choices_person ON choices (person_id);
