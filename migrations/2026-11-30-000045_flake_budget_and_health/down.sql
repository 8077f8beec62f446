DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc), 'failed_suites, is_budget_exceeded, health, judged_signatures',
        'failed_suites, judged_signatures');
END $$;
DO $$ BEGIN
    DELETE FROM edge WHERE event IN ('flake_budget_exceeded', 'flake_budget_met');
    ALTER TABLE edge DROP CONSTRAINT edge_event_check;
    ALTER TABLE edge ADD CONSTRAINT edge_event_check CHECK (event IN ('run_failed', 'run_recovered', 'test_flaky', 'test_broken',
        'test_resolved', 'new_error'));
    ALTER TABLE edge DROP COLUMN flaky_tests;
    ALTER TABLE project DROP COLUMN health;
    ALTER TABLE project DROP COLUMN is_budget_exceeded;
    ALTER TABLE project DROP COLUMN flake_budget;
END $$;
