-- What a search found and the files of a call stand in the row of its result.
UPDATE journal SET payload = json_set(payload, '$.facts.found', json((
    SELECT f.payload FROM journal f WHERE f.turn_id = journal.turn_id AND f.key = 'found' || substr(journal.key, 5))))
WHERE kind = 'tool' AND json_valid(payload) AND EXISTS (
    SELECT 1 FROM journal f WHERE f.turn_id = journal.turn_id AND f.key = 'found' || substr(journal.key, 5));
UPDATE journal SET payload = json_set(payload, '$.facts.files', json((
    SELECT f.payload FROM journal f WHERE f.turn_id = journal.turn_id AND f.key = 'files' || substr(journal.key, 5))))
WHERE kind = 'tool' AND json_valid(payload) AND EXISTS (
    SELECT 1 FROM journal f WHERE f.turn_id = journal.turn_id AND f.key = 'files' || substr(journal.key, 5));
DELETE FROM journal WHERE kind IN ('found', 'files');
-- Whether a result holds text of others is decided when it is recorded: what is unknown does.
UPDATE journal SET payload = json_set(payload, '$.facts.outside', json('true'))
WHERE kind = 'tool' AND json_valid(payload) AND turn_id IN (SELECT id FROM turns WHERE state <> 'done');
