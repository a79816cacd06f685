-- A conversation's running summary: what left its window was folded into `parts` (JSON: name → lines).
-- `due_at`: when something waits to be folded in; NULL if nothing does.
CREATE TABLE summaries (
  conversation_id TEXT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  parts TEXT NOT NULL DEFAULT '{}',
  due_at REAL,
  attempts INTEGER NOT NULL DEFAULT 0,
  zone TEXT NOT NULL  -- the person's, when it became due
);
CREATE INDEX summaries_due ON summaries (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX summaries_person ON summaries (person_id);
