-- Whoever is erased takes each of their messages along: none looks through all questions for its own.
CREATE INDEX approvals_outbox ON approvals (outbox_id) WHERE outbox_id IS NOT NULL;
