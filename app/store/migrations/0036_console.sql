-- Links that sign an owner in once, and who did what: both hold no words of people.
CREATE TABLE sign_in_links (
  -- sha256 of the secret in the link
  id TEXT PRIMARY KEY,
  expires_at REAL NOT NULL
);
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  -- "command", "console:" with the beginning of a session's id, or our own id of a person
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  -- our own id of whom or what it was about, "" for none
  subject TEXT NOT NULL,
  -- the hash of the row before, so that two writers never continue from the same one
  before TEXT NOT NULL UNIQUE,
  hash TEXT NOT NULL
);
