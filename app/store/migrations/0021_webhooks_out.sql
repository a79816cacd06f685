-- The addresses of the operator's own systems, written anew at each start; `events`: their names, with spaces around.
CREATE TABLE webhook_addresses (
  url TEXT PRIMARY KEY,
  events TEXT NOT NULL
);
-- Events on their way to these; a row goes when it was taken, or after the last attempt.
CREATE TABLE webhook_deliveries (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  url TEXT NOT NULL,
  body TEXT NOT NULL,
  person_id TEXT REFERENCES people (id) ON DELETE CASCADE,
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at REAL NOT NULL
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at);
CREATE INDEX webhook_deliveries_person ON webhook_deliveries (person_id);
