-- Version 3: what a trigger tells a run besides its files.

ALTER TABLE runs ADD COLUMN params TEXT NOT NULL DEFAULT '{}'; -- a JSON object
