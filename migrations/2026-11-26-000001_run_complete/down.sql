DO $$ BEGIN
    ALTER TABLE run DROP COLUMN complete;
END $$;
