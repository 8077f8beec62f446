-- Includes the status, so that counting all or failed runs of a period reads no rows.
DROP INDEX run_by_start;
CREATE INDEX run_by_start ON run (project_id, started_at DESC, number DESC) INCLUDE (status);
