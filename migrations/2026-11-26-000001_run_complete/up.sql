-- Whether every expected shard has reported, and no report was cut short. Derived from the run's shards.
DO $$ BEGIN
    ALTER TABLE run ADD COLUMN complete boolean NOT NULL DEFAULT true;
END $$;
