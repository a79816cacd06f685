-- Who a message of ours comes from: what may be sent while a person of the business answers, or when little may.
ALTER TABLE outbox ADD COLUMN origin TEXT NOT NULL DEFAULT 'assistant';
UPDATE outbox SET origin = CASE
    WHEN source LIKE 'sched:%' THEN 'reminder'
    WHEN source LIKE 'approval:%' THEN 'question'
    WHEN source LIKE 'back:%' THEN 'callback'
    WHEN source LIKE 'limit:%' THEN 'alert'
    WHEN source LIKE 'human:%' OR source LIKE 'api:%' OR source LIKE '%:human:%' OR source LIKE '%:api:%'
        THEN 'business'
    ELSE 'assistant' END;
