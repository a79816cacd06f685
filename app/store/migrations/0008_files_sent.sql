-- The file that a message brings, as a path below DATA_DIR/media; '' for a message without one.
ALTER TABLE outbox ADD COLUMN media TEXT NOT NULL DEFAULT '';
CREATE INDEX outbox_media ON outbox (media) WHERE media <> '';
