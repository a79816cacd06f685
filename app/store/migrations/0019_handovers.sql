-- Conversations that a person of the business answers ('human'), or was asked to answer ('asked').
CREATE TABLE handovers (
  conversation_id TEXT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN ('asked', 'human')),
  since REAL NOT NULL,
  -- 'human': the assistant is silent until then; 'asked': then the person is told that nobody was there
  until REAL NOT NULL,
  -- 1: the owners know of it
  told INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX handovers_person ON handovers (person_id);
CREATE INDEX handovers_until ON handovers (until);
-- What the business wrote by other means while a message of ours was on its way, which it may be the echo of.
CREATE TABLE echoes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  wamid TEXT NOT NULL UNIQUE,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  -- the end of the silence that it begins
  until REAL NOT NULL,
  at REAL NOT NULL
);
CREATE INDEX echoes_person ON echoes (person_id, seq);
