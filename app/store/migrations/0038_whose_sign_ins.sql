-- Links are an owner's, and so is the session that began with one: it counts while they own. A session of
-- the token has no person. Of those that there were, it is not known.
DROP TABLE sign_in_links;
CREATE TABLE sign_in_links (
  -- sha256 of the secret in the link
  id TEXT PRIMARY KEY,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  expires_at REAL NOT NULL
);
CREATE INDEX sign_in_links_person ON sign_in_links (person_id);
DELETE FROM console_sessions;
ALTER TABLE console_sessions ADD COLUMN person_id TEXT REFERENCES people (id) ON DELETE CASCADE;
CREATE INDEX console_sessions_person ON console_sessions (person_id);
