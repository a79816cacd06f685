"""SQL conditions that several modules share: what waits, what is open, and who may be talked to."""

# a message that no turn has taken up
UNCLAIMED = "inbox.turn_id IS NULL AND inbox.done_at IS NULL"
# a turn that a lane has to run; "state <> 'done'" is what the index of open turns knows
RUNNABLE = "turns.state <> 'done' AND turns.state <> 'parked'"
RUNNING = "turns.state <> 'done' AND turns.state = 'running'"
# a row of the outbox that is not at its end
UNSENT = "outbox.state IN ('ready', 'sending', 'unknown', 'held') AND outbox.due_at IS NOT NULL"
# a message of the person's own: it opens WhatsApp's window of 24 hours
WRITTEN = "messages.direction = 'in' AND messages.kind NOT IN ('system', 'scheduled')"
# a person who is answered and told something
MAY_TALK = "people.frozen = '' AND people.access <> 'blocked'"
# the conversations that a person of the business answers; its parameter is the time
SILENT = "SELECT conversation_id FROM handovers WHERE state = 'human' AND until > ?"
