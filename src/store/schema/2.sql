-- Version 2: schedules, and the instants of theirs that made runs.

CREATE TABLE schedules (
    id       TEXT    PRIMARY KEY,  -- workflow and place: energy/1
    workflow TEXT    NOT NULL,
    plan     TEXT    NOT NULL,     -- its instants in words; when they change, it counts from then
    decided  INTEGER NOT NULL,     -- what became of every instant up to here is known
    held     INTEGER,              -- an instant that waits for a run to end
    missed   INTEGER NOT NULL DEFAULT 0
) STRICT;

-- An instant makes one run, whatever happens in between. Rows outlive their schedule.
CREATE TABLE fires (
    schedule     TEXT    NOT NULL,
    scheduled_at INTEGER NOT NULL,
    run          TEXT    NOT NULL UNIQUE,
    previous     INTEGER,
    missed       INTEGER NOT NULL,
    timezone     TEXT    NOT NULL,
    start_by     INTEGER,
    takes_turns  INTEGER NOT NULL, -- 1: it starts when the runs of its schedule before it have ended
    PRIMARY KEY (schedule, scheduled_at)
) STRICT;

-- Few of many runs have not ended, and they are asked for often.
CREATE INDEX runs_unended ON runs (number) WHERE ended_at IS NULL;
