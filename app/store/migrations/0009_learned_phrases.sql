-- In which words a person asked for what a tool then did: the stems of a message, without the message.
CREATE TABLE learned_phrases (
  id INTEGER PRIMARY KEY,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  tool TEXT NOT NULL,
  -- sorted, a space between two
  stems TEXT NOT NULL,
  -- when it was said last
  at REAL NOT NULL,
  UNIQUE (person_id, tool, stems)
);
CREATE INDEX learned_phrases_at ON learned_phrases (at);

-- The same by stem. `share`: of the phrase's stems.
CREATE TABLE learned_stems (
  stem TEXT NOT NULL,
  tool TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  phrase_id INTEGER NOT NULL REFERENCES learned_phrases (id) ON DELETE CASCADE,
  share REAL NOT NULL,
  PRIMARY KEY (stem, tool, person_id, phrase_id)
) WITHOUT ROWID;
CREATE INDEX learned_stems_person ON learned_stems (person_id, stem);
CREATE INDEX learned_stems_phrase ON learned_stems (phrase_id);
