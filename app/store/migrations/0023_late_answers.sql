-- What failed because its person had not written for a day: it may be sent once they write.
CREATE INDEX outbox_window_closed ON outbox (person_id) WHERE state = 'failed' AND code = 131047;
