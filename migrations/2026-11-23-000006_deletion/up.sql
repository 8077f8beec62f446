-- The time at which the deletion of an organization or a project began, else null. From then on readers and importers do not
-- find it, while its rows are deleted in batches.
ALTER TABLE organization ADD COLUMN deleted_at timestamptz;
ALTER TABLE project ADD COLUMN deleted_at timestamptz;
