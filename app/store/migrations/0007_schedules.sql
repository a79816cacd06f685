-- What a person is to be told, and when. `due_at` is the next time, also of one that is over (active = 0).
CREATE TABLE schedules (
  id TEXT PRIMARY KEY,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  -- what the person calls it
  number INTEGER NOT NULL,
  text TEXT NOT NULL,
  -- '' for once; see app/calendar/rules.py
  rule TEXT NOT NULL DEFAULT '',
  -- the first time by the clock of `zone`, as ISO 8601 without an offset
  start TEXT NOT NULL,
  zone TEXT NOT NULL,
  due_at REAL NOT NULL,
  active INTEGER NOT NULL DEFAULT 1,
  -- where text of others in the turn that made it came from, a source a line
  taint TEXT NOT NULL DEFAULT '',
  -- the last time that was told: when it was due, when it was told, and the source of its outbox row
  told_due REAL,
  told_at REAL,
  told_as TEXT NOT NULL DEFAULT '',
  -- since when it is due and cannot be sent: it is told once the person has written after this
  held_at REAL,
  -- how often a message with it failed; the next one is another
  resends INTEGER NOT NULL DEFAULT 0,
  -- the call that changed it last: the same call again changes nothing more
  changed_by TEXT NOT NULL DEFAULT '',
  changed_at REAL NOT NULL,
  created_at REAL NOT NULL,
  UNIQUE (person_id, number)
);
CREATE INDEX schedules_due ON schedules (due_at) WHERE active = 1 AND held_at IS NULL;
CREATE INDEX schedules_held ON schedules (person_id) WHERE held_at IS NOT NULL;
CREATE INDEX schedules_told ON schedules (told_as) WHERE told_as <> '';
-- Those that a clock which was set back since has told too early.
CREATE INDEX schedules_told_at ON schedules (told_at) WHERE told_at IS NOT NULL;
CREATE INDEX schedules_over ON schedules (changed_at) WHERE active = 0;
CREATE INDEX schedules_conversation ON schedules (conversation_id);

-- Reminders that could not be sent.
CREATE INDEX outbox_untold ON outbox (source) WHERE state = 'failed' AND source >= 'sched:' AND source < 'sched;';
