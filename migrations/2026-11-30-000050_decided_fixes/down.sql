DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc), 'GRANT INSERT, UPDATE (decided), DELETE ON fix TO',
        'GRANT INSERT, DELETE ON fix TO');
END $$;
DO $$ BEGIN
    DELETE FROM edge WHERE event IN ('fix_held', 'fix_did_not_hold');
    ALTER TABLE edge DROP CONSTRAINT edge_event_check;
    ALTER TABLE edge ADD CONSTRAINT edge_event_check CHECK (event IN ('run_failed', 'run_recovered', 'test_flaky', 'test_broken',
        'test_resolved', 'new_error', 'flake_budget_exceeded', 'flake_budget_met'));
    DROP INDEX fix_open;
    ALTER TABLE fix DROP COLUMN decided;
END $$;
