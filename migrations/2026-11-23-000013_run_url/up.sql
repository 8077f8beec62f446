-- The page of the CI run; null where neither CI's variables nor the report name it, and for what older versions stored.
ALTER TABLE run ADD COLUMN run_url text;
