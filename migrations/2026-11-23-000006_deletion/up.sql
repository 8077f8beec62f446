-- When the deletion of an organization or a project began; null for all others. Readers and importers do not find it from
-- then on, while its rows are deleted in batches.
ALTER TABLE organization ADD COLUMN deleted_at timestamptz;
ALTER TABLE project ADD COLUMN deleted_at timestamptz;
