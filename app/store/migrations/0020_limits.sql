-- How much was used in an hour (UTC, YYYY-MM-DDTHH) of what has a limit: 'guests' (answers to all guests),
-- 'tokens', 'sent' (messages), 'cost' (millionths of the rate table's currency).
CREATE TABLE used (
  what TEXT NOT NULL,
  hour TEXT NOT NULL,
  amount INTEGER NOT NULL,
  PRIMARY KEY (what, hour)
);
-- The limit for which a message waits, '' for none.
ALTER TABLE inbox ADD COLUMN waits_for TEXT NOT NULL DEFAULT '';
