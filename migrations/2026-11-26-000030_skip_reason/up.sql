-- Why an attempt was skipped. Null if it was not, or if the report gives no reason.
DO $$ BEGIN
    ALTER TABLE attempt ADD COLUMN skip_reason text;
END $$;
