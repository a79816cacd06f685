-- The sentence of an alert with its values apart, as JSON, to be said in any language; "" for one without.
ALTER TABLE alerts ADD COLUMN said TEXT NOT NULL DEFAULT '';
