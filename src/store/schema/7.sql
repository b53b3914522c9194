-- Version 7: files that are claimed together, what is the same as before, and what stays in the inbox.

ALTER TABLE inputs ADD COLUMN parcel     INTEGER;                    -- the row of the first file claimed with it
ALTER TABLE inputs ADD COLUMN role       TEXT;                       -- sentinel, sidecar; nothing for an input itself
ALTER TABLE inputs ADD COLUMN kept       INTEGER NOT NULL DEFAULT 0; -- 1: it stands in the inbox, and is not taken again
ALTER TABLE inputs ADD COLUMN on_success BLOB;                       -- keep, delete, move:FOLDER; nothing for processed/
ALTER TABLE inputs ADD COLUMN on_failure BLOB;
CREATE INDEX inputs_by_parcel ON inputs (parcel) WHERE parcel IS NOT NULL;
CREATE INDEX inputs_kept ON inputs (path) WHERE kept;

DROP INDEX inputs_waiting;
CREATE UNIQUE INDEX inputs_waiting ON inputs (path)
    WHERE state IN ('seen', 'settling', 'ready', 'ignored', 'blocked', 'incomplete', 'root_absent');

-- What each run of a drop was made from: the same again may be a duplicate.
CREATE TABLE taken (
    run      TEXT    PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    workflow TEXT    NOT NULL,
    place    BLOB    NOT NULL, -- of the file, or of the batch
    content  TEXT    NOT NULL,
    at       INTEGER NOT NULL
) STRICT;
CREATE INDEX taken_by_place ON taken (workflow, place);
CREATE INDEX taken_by_content ON taken (workflow, content);

-- Workflows whose files were watched for before.
CREATE TABLE watched (
    workflow TEXT    PRIMARY KEY,
    since    INTEGER NOT NULL
) STRICT;
