-- The former names are lost. The former version can read the new ones.
SELECT 1;
