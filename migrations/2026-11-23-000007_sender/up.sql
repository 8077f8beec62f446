-- Which CI job sent the content of a shard, so that another job does not replace it; null outside of CI and for what older
-- versions stored.
ALTER TABLE shard ADD COLUMN sender_job text;
ALTER TABLE shard ADD COLUMN sender_runner text;
-- The import that stored the content. An import whose commit was not answered recognises its own work by it.
ALTER TABLE shard ADD COLUMN import_id uuid;
