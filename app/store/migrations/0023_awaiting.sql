-- Replies that wait for their person to write again.
CREATE INDEX outbox_awaiting ON outbox (person_id) WHERE state = 'held' AND due_at IS NULL;
