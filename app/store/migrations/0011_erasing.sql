-- The random ids of people who were erased: what is still found of them in a folder goes too.
CREATE TABLE erased (
  id TEXT PRIMARY KEY,
  at REAL NOT NULL
) WITHOUT ROWID;

-- Whoever is erased takes each of their messages along: none looks through all questions for its own.
CREATE INDEX approvals_outbox ON approvals (outbox_id) WHERE outbox_id IS NOT NULL;
