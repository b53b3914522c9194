-- Version 5: the versions of workflows that are in force, and what became of a schedule's instants.

CREATE TABLE workflow_versions (
    workflow TEXT    PRIMARY KEY,
    bundle   TEXT    NOT NULL,  -- what new runs are pinned to
    since    INTEGER NOT NULL,
    broken   TEXT               -- a report in JSON: why the script as it stands is not in force
) STRICT;

-- Instants that made no run. A row is a row of instants with one reason; the newest are kept.
CREATE TABLE schedule_skips (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule   TEXT    NOT NULL,
    first_at   INTEGER NOT NULL,
    last_at    INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    reason     TEXT    NOT NULL
) STRICT;
CREATE INDEX schedule_skips_by_schedule ON schedule_skips (schedule, last_at);
