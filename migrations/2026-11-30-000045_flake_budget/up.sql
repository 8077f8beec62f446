-- How many flaky tests a project may have: more than `flake_budget` exceed it, and `flake_budget_met_at` or fewer meet it again.
-- Null without a budget.
DO $$ BEGIN
    ALTER TABLE project ADD COLUMN flake_budget integer;
    ALTER TABLE project ADD COLUMN flake_budget_met_at integer;
    -- As of the last judgement.
    ALTER TABLE project ADD COLUMN is_budget_exceeded boolean NOT NULL DEFAULT false;
    -- The number of flaky tests, where the edge is one of the budget.
    ALTER TABLE edge ADD COLUMN flaky_tests integer;
    ALTER TABLE edge DROP CONSTRAINT edge_event_check;
    ALTER TABLE edge ADD CONSTRAINT edge_event_check CHECK (event IN ('run_failed', 'run_recovered', 'test_flaky', 'test_broken',
        'test_resolved', 'new_error', 'flake_budget_exceeded', 'flake_budget_met'));
END $$;

-- An import stores whether the budget is exceeded.
DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc), 'failed_suites, judged_signatures',
        'failed_suites, is_budget_exceeded, judged_signatures');
END $$;
