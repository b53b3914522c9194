-- Version 6: requests that made runs, and messages about runs on their way to others.

-- A request makes one run, however often it comes.
CREATE TABLE hook_requests (
    hook TEXT    NOT NULL, -- the webhook's path
    key  TEXT    NOT NULL, -- hash of the sender's id for it, or of all of it
    run  TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    at   INTEGER NOT NULL,
    PRIMARY KEY (hook, key)
) STRICT;
CREATE INDEX hook_requests_by_run ON hook_requests (run);

-- Who is told of runs that are pinned to a script.
CREATE TABLE targets (
    script TEXT    NOT NULL,
    place  INTEGER NOT NULL, -- from 1, in the order of the script
    target TEXT    NOT NULL, -- JSON
    PRIMARY KEY (script, place)
) STRICT;

-- Targets that said they are gone: nothing is sent there any more.
CREATE TABLE gone_targets (
    workflow TEXT    NOT NULL,
    url      TEXT    NOT NULL, -- as declared: an address or the name of a secret, JSON
    at       INTEGER NOT NULL,
    PRIMARY KEY (workflow, url)
) STRICT;

-- A row stands in the same transaction as the event it tells of.
CREATE TABLE deliveries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    run        TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq        INTEGER NOT NULL, -- the event
    place      INTEGER NOT NULL, -- the target
    workflow   TEXT    NOT NULL,
    moment     TEXT    NOT NULL,
    target     TEXT    NOT NULL, -- JSON, as the run's script declared it
    url        TEXT    NOT NULL, -- part of it, as in gone_targets
    at         INTEGER NOT NULL, -- when it happened
    state      TEXT    NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    due        INTEGER NOT NULL, -- when it is tried next
    changed_at INTEGER NOT NULL,
    status     INTEGER,          -- what the target answered last
    answer     TEXT,             -- the beginning of its body
    error      TEXT,             -- why there was no good answer
    UNIQUE (run, seq, place)
) STRICT;
CREATE INDEX deliveries_waiting ON deliveries (due) WHERE state = 'waiting';
CREATE INDEX deliveries_by_run ON deliveries (run, place, seq);
