-- The number of report files of a part; 0 if it is unknown.
DO $$ BEGIN
    ALTER TABLE part ADD COLUMN report_files integer NOT NULL DEFAULT 0;
END $$;
