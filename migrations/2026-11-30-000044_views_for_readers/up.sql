-- The views of the group role assay_reader, for people and tools with SQL. Their columns are those of the files of
-- `assay-admin export`. They have every project that is not being deleted, of every organization, and no error texts.

CREATE VIEW reader_run AS
SELECT project.id AS project_id, project.name AS project, run.number AS run, run.id, run.suite, run.branch, run.commit_sha,
    run.tested_revision, run.pull_request_number, run.run_url, coalesce(run.status, 'incomplete') AS status,
    run.counts_in_verdicts AS trusted, run.started_at, run.finished_at, run.duration_ms, run.total AS tests, run.passed,
    run.failed, run.skipped, run.recovered, CASE WHEN run.sharded THEN run.shards_received END AS shards_received,
    CASE WHEN run.sharded THEN run.shards_expected END AS shards_expected
FROM run
JOIN project ON project.id = run.project_id
WHERE project.deleted_at IS NULL;

CREATE VIEW reader_result AS
SELECT project.id AS project_id, project.name AS project, result.run_number AS run, result.started_at AS run_started_at,
    result.test, test.name AS test_name, test.file_path,
    (ARRAY['passed', 'failed', 'timedOut', 'skipped', 'interrupted'])[result.status + 1] AS status,
    result.started_at + result.start_offset_ms * interval '1 millisecond' AS started_at, result.duration_ms,
    greatest(result.attempts, 1) AS attempts, browser.name AS browser
FROM result
JOIN project ON project.id = result.project_id
JOIN test ON test.project_id = result.project_id AND test.ordinal = result.test
LEFT JOIN browser ON browser.project_id = result.project_id AND browser.ordinal = result.browser
WHERE project.deleted_at IS NULL;

CREATE VIEW reader_test AS
SELECT project.id AS project_id, project.name AS project, test.ordinal AS test, test.name AS test_name, test.file_path,
    verdict.status, verdict.reason, verdict.body::jsonb ->> 'explanation' AS explanation, verdict.flake_score,
    verdict.flake_rate, verdict.broken_probability, verdict.impact, verdict.time_lost_ms,
    CASE WHEN verdict.status IS NOT NULL THEN project.evaluated_at END AS evaluated_at
FROM test
JOIN project ON project.id = test.project_id
LEFT JOIN verdict ON verdict.project_id = test.project_id AND verdict.test = test.ordinal
WHERE project.deleted_at IS NULL;

-- The function also creates the group role, and grants it the views and nothing else.
DO $$ BEGIN
    EXECUTE replace(replace(pg_get_functiondef('assay_grant_roles'::regproc), '''assay_notifier''] LOOP',
        '''assay_notifier'', ''assay_reader''] LOOP'), 'RETURN NULL;',
        'EXECUTE format(''GRANT USAGE ON SCHEMA %I TO assay_reader'', current_schema());
    GRANT SELECT ON reader_run, reader_result, reader_test TO assay_reader;
    RETURN NULL;');
END $$;
