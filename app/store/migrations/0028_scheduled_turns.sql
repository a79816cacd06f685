-- A reminder tells its text; a task or a watch runs a turn with its text (see app/store/schedules.py).
ALTER TABLE schedules ADD COLUMN kind TEXT NOT NULL DEFAULT 'reminder';
-- Since when it is paused: it keeps its times and tells nothing.
ALTER TABLE schedules ADD COLUMN paused_at REAL;
-- When a task or a watch may run that was due in its person's quiet hours.
ALTER TABLE schedules ADD COLUMN put_off_until REAL;
DROP INDEX schedules_due;
CREATE INDEX schedules_due ON schedules (due_at) WHERE active = 1 AND held_at IS NULL AND paused_at IS NULL;
-- The hours of a person's clock in which no task or watch runs, such as '22:00-07:00'.
ALTER TABLE people ADD COLUMN quiet_hours TEXT NOT NULL DEFAULT '';
