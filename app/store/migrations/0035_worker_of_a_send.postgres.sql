-- The worker that sends a row.
ALTER TABLE outbox ADD COLUMN worker bigint;

-- The job that brings a conversation to a worker, one at a time, in the transaction that makes it wait; and a
-- hint for the worker that has it already.
CREATE FUNCTION defer_conversation(conversation text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW('conversations', 'attend', 0, conversation, NULL,
    jsonb_build_object('conversation', conversation), NULL)::procrastinate_job_to_defer_v1]);
  PERFORM pg_notify('recado', 'turn ' || conversation);
END $$;

CREATE FUNCTION defer_its_conversation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM defer_conversation(NEW.conversation_id);
  RETURN NEW;
END $$;

CREATE TRIGGER message_waits AFTER INSERT ON inbox
  FOR EACH ROW WHEN (NEW.turn_id IS NULL AND NEW.done_at IS NULL) EXECUTE FUNCTION defer_its_conversation();
CREATE TRIGGER turn_goes_on AFTER UPDATE OF state ON turns
  FOR EACH ROW WHEN (OLD.state = 'parked' AND NEW.state = 'queued') EXECUTE FUNCTION defer_its_conversation();
