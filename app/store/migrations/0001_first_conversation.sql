-- Times are Unix seconds. Ids are made before the transaction. Payloads are JSON text.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE people (
  id TEXT PRIMARY KEY,
  realm TEXT NOT NULL CHECK (realm IN ('whatsapp', 'simulator', 'terminal')),
  name TEXT NOT NULL DEFAULT '',
  role TEXT NOT NULL DEFAULT 'member' CHECK (role IN ('member', 'owner')),
  -- 'listed': in for as long as the configuration names their number
  access TEXT NOT NULL DEFAULT 'listed' CHECK (access IN ('listed', 'allowed', 'blocked')),
  frozen TEXT NOT NULL DEFAULT '',
  language TEXT NOT NULL DEFAULT '',
  timezone TEXT NOT NULL DEFAULT '',
  country TEXT NOT NULL DEFAULT '',
  epoch INTEGER NOT NULL DEFAULT 0,
  created_at REAL NOT NULL
);

CREATE TABLE aliases (
  realm TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('phone', 'user_id')),
  value TEXT NOT NULL,
  -- the form that messages go to: a phone as WhatsApp delivered it, or as it was found to work
  address TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  created_at REAL NOT NULL,
  PRIMARY KEY (realm, kind, value)
) WITHOUT ROWID;
CREATE INDEX aliases_person ON aliases (person_id);

-- Names that came with a frozen person and wait, with the person, for an owner's word.
CREATE TABLE claimed_aliases (
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  value TEXT NOT NULL,
  address TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (person_id, kind, value)
) WITHOUT ROWID;

CREATE TABLE outsiders (
  realm TEXT NOT NULL,
  value TEXT NOT NULL,
  name TEXT NOT NULL DEFAULT '',
  messages INTEGER NOT NULL DEFAULT 0,
  first_at REAL NOT NULL,
  last_at REAL NOT NULL,
  PRIMARY KEY (realm, value)
) WITHOUT ROWID;

CREATE TABLE conversations (
  id TEXT PRIMARY KEY,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  channel TEXT NOT NULL,
  group_id TEXT NOT NULL DEFAULT '',
  history_from REAL NOT NULL DEFAULT 0,
  tools TEXT NOT NULL DEFAULT '[]',
  categories TEXT NOT NULL DEFAULT '[]',
  last_inbound_at REAL NOT NULL DEFAULT 0,
  created_at REAL NOT NULL,
  UNIQUE (person_id, channel, group_id)
);

-- Message ids that were taken in, as keyed hashes and without the person; swept after 30 days.
CREATE TABLE seen (
  key BLOB PRIMARY KEY,
  at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX seen_at ON seen (at);

CREATE TABLE turns (
  id TEXT PRIMARY KEY,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'parked', 'done')),
  outcome TEXT NOT NULL DEFAULT '',
  attempts INTEGER NOT NULL DEFAULT 0,
  -- how often it was cut off beside other turns, so that nothing spoke against it more than against them
  crowded INTEGER NOT NULL DEFAULT 0,
  reply TEXT NOT NULL DEFAULT '',
  prompt_tokens INTEGER NOT NULL DEFAULT 0,
  completion_tokens INTEGER NOT NULL DEFAULT 0,
  cached_tokens INTEGER NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT '',
  -- whether its journal and model calls are still kept
  traced INTEGER NOT NULL DEFAULT 1,
  created_at REAL NOT NULL,
  due_at REAL,
  done_at REAL
);
CREATE INDEX turns_traced ON turns (done_at) WHERE traced = 1;
CREATE INDEX turns_open ON turns (conversation_id, created_at) WHERE state <> 'done';
CREATE INDEX turns_due ON turns (due_at) WHERE state <> 'done';
CREATE INDEX turns_conversation ON turns (conversation_id, created_at);
CREATE INDEX turns_person ON turns (person_id);

CREATE TABLE messages (
  id INTEGER PRIMARY KEY,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  direction TEXT NOT NULL CHECK (direction IN ('in', 'out')),
  wamid TEXT,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  payload TEXT NOT NULL DEFAULT '{}',
  turn_id TEXT REFERENCES turns (id) ON DELETE SET NULL,
  at REAL NOT NULL
);
CREATE UNIQUE INDEX messages_wamid ON messages (wamid) WHERE wamid IS NOT NULL;
CREATE INDEX messages_conversation ON messages (conversation_id, id);
CREATE INDEX messages_turn ON messages (turn_id);
CREATE INDEX messages_person ON messages (person_id);

CREATE TABLE inbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  -- 'message', or the name of a command ('help', 'stop', 'new')
  kind TEXT NOT NULL,
  received_at REAL NOT NULL,
  due_at REAL NOT NULL,
  turn_id TEXT REFERENCES turns (id) ON DELETE SET NULL,
  done_at REAL
);
CREATE INDEX inbox_unclaimed ON inbox (conversation_id, seq) WHERE turn_id IS NULL AND done_at IS NULL;
CREATE INDEX inbox_due ON inbox (due_at) WHERE turn_id IS NULL AND done_at IS NULL;
CREATE INDEX inbox_turn ON inbox (turn_id);
CREATE INDEX inbox_rate ON inbox (person_id, due_at);
CREATE INDEX inbox_message ON inbox (message_id);
CREATE INDEX inbox_done ON inbox (done_at);

CREATE TABLE journal (
  turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 1,
  payload TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (turn_id, key)
) WITHOUT ROWID;
CREATE INDEX journal_person ON journal (person_id);

CREATE TABLE outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  source TEXT NOT NULL,
  part INTEGER NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  payload TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('ready', 'sending', 'sent', 'unknown', 'held', 'failed')),
  due_at REAL,
  attempts INTEGER NOT NULL DEFAULT 0,
  resends INTEGER NOT NULL DEFAULT 0,
  wamid TEXT,
  code INTEGER NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT '',
  created_at REAL NOT NULL,
  sending_at REAL,
  sent_at REAL,
  UNIQUE (source, part)
);
CREATE INDEX outbox_open ON outbox (person_id, seq) WHERE state IN ('ready', 'sending', 'unknown', 'held');
CREATE INDEX outbox_due ON outbox (due_at) WHERE state IN ('ready', 'sending', 'unknown', 'held');
CREATE INDEX outbox_wamid ON outbox (wamid);
CREATE INDEX outbox_message ON outbox (message_id);

CREATE TABLE statuses (
  wamid TEXT NOT NULL,
  status TEXT NOT NULL,
  outbox_id TEXT NOT NULL DEFAULT '',
  person_id TEXT REFERENCES people (id) ON DELETE CASCADE,
  errors TEXT NOT NULL DEFAULT '[]',
  at REAL NOT NULL,
  received_at REAL NOT NULL,
  PRIMARY KEY (wamid, status)
) WITHOUT ROWID;
CREATE INDEX statuses_person ON statuses (person_id);
CREATE INDEX statuses_received ON statuses (received_at);

CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  call_key TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments TEXT NOT NULL,
  arguments_hash TEXT NOT NULL,
  tool_hash TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'yes', 'no', 'expired', 'failed')),
  outbox_id TEXT REFERENCES outbox (id) ON DELETE SET NULL,
  created_at REAL NOT NULL,
  due_at REAL,
  answered_at REAL,
  answered_by TEXT,
  UNIQUE (turn_id, call_key)
);
CREATE INDEX approvals_open ON approvals (conversation_id) WHERE state = 'open';
CREATE INDEX approvals_due ON approvals (due_at) WHERE state = 'open';
CREATE INDEX approvals_person ON approvals (person_id);

CREATE TABLE dead_letters (
  id INTEGER PRIMARY KEY,
  source TEXT NOT NULL,
  reason TEXT NOT NULL,
  payload TEXT NOT NULL,
  person_id TEXT REFERENCES people (id) ON DELETE CASCADE,
  at REAL NOT NULL
);
CREATE INDEX dead_letters_person ON dead_letters (person_id);
CREATE INDEX dead_letters_at ON dead_letters (at);

-- What the operator must know; one row a cause, opened again when it comes back.
CREATE TABLE alerts (
  code TEXT PRIMARY KEY,
  text TEXT NOT NULL,
  times INTEGER NOT NULL DEFAULT 1,
  first_at REAL NOT NULL,
  last_at REAL NOT NULL,
  mended_at REAL
) WITHOUT ROWID;

CREATE TABLE token_use (
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  day TEXT NOT NULL,
  tokens INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (person_id, day)
) WITHOUT ROWID;

-- Prompts by content: each message of a prompt is kept once a person, a call lists the hashes.
CREATE TABLE prompt_parts (
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  hash TEXT NOT NULL,
  body TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (person_id, hash)
) WITHOUT ROWID;

CREATE INDEX prompt_parts_at ON prompt_parts (at);

CREATE TABLE model_calls (
  turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  model TEXT NOT NULL,
  parts TEXT NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  seconds REAL NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (turn_id, key)
) WITHOUT ROWID;
CREATE INDEX model_calls_person ON model_calls (person_id);

CREATE TABLE skill_data (
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  skill TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  updated_at REAL NOT NULL,
  PRIMARY KEY (person_id, skill, key)
) WITHOUT ROWID;
