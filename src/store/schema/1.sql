-- Version 1: runs with their events, and the ledger of inputs.
-- Times are microseconds since 1970 in UTC; paths are bytes.

CREATE TABLE inputs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    path         BLOB    NOT NULL,  -- relative to the inbox
    size         INTEGER NOT NULL,
    mtime_ns     INTEGER NOT NULL,
    inode        INTEGER NOT NULL,
    device       INTEGER NOT NULL,
    digest       TEXT,
    state        TEXT    NOT NULL,
    reason       TEXT,
    workflows    TEXT    NOT NULL DEFAULT '[]',
    first_seen   INTEGER NOT NULL,
    changed_at   INTEGER NOT NULL,
    claimed_path BLOB,              -- relative to the state folder
    final_path   BLOB               -- relative to the project
) STRICT;

-- A file that stands in the inbox has one row; the same name may come again once it was claimed.
CREATE UNIQUE INDEX inputs_waiting ON inputs (path)
    WHERE state IN ('seen', 'settling', 'ready', 'ignored', 'blocked');
CREATE INDEX inputs_by_path ON inputs (path, id);
CREATE INDEX inputs_by_state ON inputs (state, id);

CREATE TABLE input_changes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    input      INTEGER NOT NULL REFERENCES inputs (id),
    at         INTEGER NOT NULL,
    from_state TEXT,
    to_state   TEXT    NOT NULL,
    reason     TEXT
) STRICT;
CREATE INDEX input_changes_by_input ON input_changes (input, id);

CREATE TABLE runs (
    number           INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT    NOT NULL UNIQUE,
    workflow         TEXT    NOT NULL,
    trigger          TEXT    NOT NULL,
    state            TEXT    NOT NULL,
    model            TEXT    NOT NULL,
    script           TEXT    NOT NULL,
    inputs           TEXT    NOT NULL,
    input            INTEGER REFERENCES inputs (id),
    queued_at        INTEGER NOT NULL,
    started_at       INTEGER,
    ended_at         INTEGER,
    turns            INTEGER NOT NULL DEFAULT 0,
    usage            TEXT    NOT NULL,
    cost_usd         REAL,
    published        TEXT,
    report           TEXT,
    attempts         INTEGER NOT NULL DEFAULT 0,
    last_seq         INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX runs_by_state ON runs (state, number);
CREATE INDEX runs_by_workflow ON runs (workflow, number);
-- A file becomes one run of a workflow, whatever happens in between.
CREATE UNIQUE INDEX runs_once ON runs (input, workflow) WHERE input IS NOT NULL;

CREATE TABLE events (
    run  TEXT    NOT NULL REFERENCES runs (id),
    seq  INTEGER NOT NULL,
    at   INTEGER NOT NULL,
    what TEXT    NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;
