DO $$ BEGIN
    ALTER TABLE attempt DROP COLUMN skip_reason;
END $$;
