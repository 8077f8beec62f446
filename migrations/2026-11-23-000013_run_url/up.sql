-- The page of the CI run. Null if neither CI's variables nor the report have it, and for runs of older versions.
ALTER TABLE run ADD COLUMN run_url text;
