DO $$ BEGIN
    -- The stable branches beside the main one, such as `release/*`: names with at most one `*`.
    ALTER TABLE project ADD COLUMN release_branches text[] NOT NULL DEFAULT '{}';
    -- The branch into which the change of a run is to be merged, if CI names it.
    ALTER TABLE run ADD COLUMN base_branch text COLLATE "C";
END $$;
