-- Rows of a turn say whose they are and go with the turn, as the turn goes with the person. Nothing looks for them by
-- person: an index for that was a page more to write for nearly each of them.
CREATE TABLE journal_of_turns (
  turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  person_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 1,
  payload TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (turn_id, key)
) WITHOUT ROWID;
INSERT INTO journal_of_turns (turn_id, key, person_id, kind, version, payload, at)
SELECT turn_id, key, person_id, kind, version, payload, at FROM journal;
DROP TABLE journal;
ALTER TABLE journal_of_turns RENAME TO journal;

CREATE TABLE model_calls_of_turns (
  turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  person_id TEXT NOT NULL,
  model TEXT NOT NULL,
  -- hashes of the prompt's parts, in order
  parts TEXT NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  seconds REAL NOT NULL,
  -- hash of the catalogue of tools that it was given
  catalog TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL,
  PRIMARY KEY (turn_id, key)
) WITHOUT ROWID;
INSERT INTO model_calls_of_turns
  (turn_id, key, person_id, model, parts, prompt_tokens, completion_tokens, cached_tokens, seconds, catalog, at)
SELECT turn_id, key, person_id, model, parts, prompt_tokens, completion_tokens, cached_tokens, seconds, catalog, at
FROM model_calls;
DROP TABLE model_calls;
ALTER TABLE model_calls_of_turns RENAME TO model_calls;
