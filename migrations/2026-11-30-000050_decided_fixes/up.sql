-- What the stable branch showed of a fix when that was certain: whether it held, by how many clean runs, and the failed run.
-- Null while it is not known.
DO $$ BEGIN
    ALTER TABLE fix ADD COLUMN decided jsonb;
    CREATE INDEX fix_open ON fix (project_id, id)
        WHERE decided IS NULL AND coalesce(body #>> '{check,outcome}', 'proved') = 'proved';
    ALTER TABLE edge DROP CONSTRAINT edge_event_check;
    ALTER TABLE edge ADD CONSTRAINT edge_event_check CHECK (event IN ('run_failed', 'run_recovered', 'test_flaky', 'test_broken',
        'test_resolved', 'new_error', 'flake_budget_exceeded', 'flake_budget_met', 'fix_held', 'fix_did_not_hold'));
END $$;

DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc), 'GRANT INSERT, DELETE ON fix TO',
        'GRANT INSERT, UPDATE (decided), DELETE ON fix TO');
END $$;
