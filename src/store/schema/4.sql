-- Version 4: who carries a run out and by which right, when it is tried again, and what people ask of the queue.

ALTER TABLE runs ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;   -- counts who had it: what comes with an older one is refused
ALTER TABLE runs ADD COLUMN holder TEXT;                        -- machine/boot/pid/start of the process that has it now
ALTER TABLE runs ADD COLUMN by_hand INTEGER NOT NULL DEFAULT 0; -- 1: it belongs to the process that started it
ALTER TABLE runs ADD COLUMN run_at INTEGER;                     -- not before
ALTER TABLE runs ADD COLUMN again TEXT;                         -- JSON: why it is tried again, and how often it was
ALTER TABLE runs ADD COLUMN retry_of TEXT;                      -- the run it does over
ALTER TABLE runs ADD COLUMN cancel_at INTEGER;                  -- since when it is to stop
ALTER TABLE runs ADD COLUMN content TEXT;                       -- hash of workflow, inputs and params, where there are any

UPDATE runs SET by_hand = 1 WHERE trigger = 'manual';

-- Those that wait for a worker, by workflow: ten thousand of one do not hide another's.
CREATE INDEX runs_waiting ON runs (workflow, number) WHERE state = 'queued' AND holder IS NULL AND by_hand = 0;
CREATE INDEX runs_cancelled ON runs (number) WHERE cancel_at IS NOT NULL;
CREATE INDEX runs_by_content ON runs (content, number) WHERE content IS NOT NULL;

CREATE TABLE controls (
    word   TEXT    NOT NULL,            -- pause, drain
    target TEXT    NOT NULL,            -- a workflow, '' for all; the process that is to end
    at     INTEGER NOT NULL,
    PRIMARY KEY (word, target)
) STRICT;
