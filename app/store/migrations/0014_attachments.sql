-- Files that came with messages. Each is fetched once and read once, before a turn takes its message up.
CREATE TABLE attachments (
  message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  -- 'kept': its bytes are in DATA_DIR/media; 'unheard': a voice note while nothing transcribes
  state TEXT NOT NULL CHECK (state IN ('new', 'kept', 'unheard', 'read', 'failed')),
  path TEXT NOT NULL DEFAULT '',
  attempts INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  created_at REAL NOT NULL
);
CREATE INDEX attachments_person ON attachments (person_id);
CREATE INDEX attachments_open ON attachments (conversation_id) WHERE state IN ('new', 'kept', 'unheard');
