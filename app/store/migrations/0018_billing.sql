-- What Meta says about the price of a sent message: each once, however often its statuses come.
CREATE TABLE billed (
  wamid TEXT PRIMARY KEY,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  country TEXT NOT NULL,
  category TEXT NOT NULL,
  -- 'regular', 'free_customer_service' or 'free_entry_point' (Meta, 2026-10)
  kind TEXT NOT NULL,
  -- YYYY-MM-DD, UTC
  day TEXT NOT NULL
);
CREATE INDEX billed_person ON billed (person_id, day);
CREATE INDEX billed_day ON billed (day);
-- JSON of a status that came before its message's id was known.
ALTER TABLE statuses ADD COLUMN pricing TEXT NOT NULL DEFAULT '';
