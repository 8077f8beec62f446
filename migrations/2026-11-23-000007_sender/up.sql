-- The CI job that sent the content of a shard, so that another job does not replace it. Null outside of CI and for rows of
-- older versions.
ALTER TABLE shard ADD COLUMN sender_job text;
ALTER TABLE shard ADD COLUMN sender_runner text;
-- The import that stored the content. If the answer to its commit was lost, the import recognises its own rows by it.
ALTER TABLE shard ADD COLUMN import_id uuid;
