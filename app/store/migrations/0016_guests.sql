-- Invitation codes, kept as hashes; who sends one becomes what `role` says.
CREATE TABLE invitations (
  code_hash TEXT PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('member', 'owner')),
  uses_left INTEGER NOT NULL,
  expires_at REAL NOT NULL
);
