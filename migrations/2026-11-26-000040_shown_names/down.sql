ALTER TABLE test DROP COLUMN written_name, DROP COLUMN shown_at;
ALTER TABLE project DROP COLUMN stable_names, DROP COLUMN test_changes;
