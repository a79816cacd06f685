-- The worker that sends a row, where several work on one database.
ALTER TABLE outbox ADD COLUMN worker INTEGER;
