-- What one person may have in a day in place of what the settings say, NULL for that; 0: no limit.
ALTER TABLE people ADD COLUMN daily_answers INTEGER;
ALTER TABLE people ADD COLUMN daily_tokens INTEGER;
