ALTER TABLE project DROP COLUMN deleted_at;
ALTER TABLE organization DROP COLUMN deleted_at;
