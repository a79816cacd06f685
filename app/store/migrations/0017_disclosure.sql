-- 1: this conversation was told that an automatic assistant answers.
ALTER TABLE conversations ADD COLUMN disclosed INTEGER NOT NULL DEFAULT 0;
