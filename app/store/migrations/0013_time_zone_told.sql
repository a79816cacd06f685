-- The call whose receipt told the person which time zone was guessed for them; '' before the first.
ALTER TABLE people ADD COLUMN zone_told_by TEXT NOT NULL DEFAULT '';
