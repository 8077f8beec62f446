-- With the status, so that counting the runs of a period, all or those that failed, reads no rows.
DROP INDEX run_by_start;
CREATE INDEX run_by_start ON run (project_id, started_at DESC, number DESC) INCLUDE (status);
