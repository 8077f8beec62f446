-- The former names are not known any more; the former version reads the new ones as well.
SELECT 1;
