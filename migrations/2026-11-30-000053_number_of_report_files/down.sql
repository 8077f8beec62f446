DO $$ BEGIN
    ALTER TABLE part DROP COLUMN report_files;
END $$;
