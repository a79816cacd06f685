-- What an address is to be sent is found beside a long backlog of another one.
DROP INDEX webhook_deliveries_due;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (url, due_at);
