ALTER TABLE shard DROP COLUMN import_id;
ALTER TABLE shard DROP COLUMN sender_runner;
ALTER TABLE shard DROP COLUMN sender_job;
