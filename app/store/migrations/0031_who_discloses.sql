-- 1 for a message that holds the sentence that an automatic assistant answers.
ALTER TABLE outbox ADD COLUMN discloses INTEGER NOT NULL DEFAULT 0;
