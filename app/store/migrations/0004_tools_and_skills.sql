-- Skills whose texts a conversation has taken in, oldest first: they stay in its prompts.
ALTER TABLE conversations ADD COLUMN skills TEXT NOT NULL DEFAULT '[]';

-- What a model call was offered, by content: the definitions of every tool there was.
ALTER TABLE model_calls ADD COLUMN catalog TEXT NOT NULL DEFAULT '';
CREATE TABLE catalogs (
  hash TEXT PRIMARY KEY,
  body TEXT NOT NULL,
  at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX catalogs_at ON catalogs (at);

-- Calls of tools, of everybody together: a row for each tool, day (UTC), outcome and step of duration.
CREATE TABLE tool_statistics (
  tool TEXT NOT NULL,
  day TEXT NOT NULL,
  -- 'ok', or the code of the failure
  code TEXT NOT NULL,
  -- duration as a power of 1.25 of a millisecond, rounded up
  step INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  PRIMARY KEY (tool, day, code, step)
) WITHOUT ROWID;
CREATE INDEX tool_statistics_day ON tool_statistics (day);
