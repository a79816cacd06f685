-- Browsers that are signed in to the console. `id` is a hash of the cookie; `token` of the token it came by.
CREATE TABLE console_sessions (
  id TEXT PRIMARY KEY,
  token TEXT NOT NULL,
  agent TEXT NOT NULL,
  created_at REAL NOT NULL,
  expires_at REAL NOT NULL
);
