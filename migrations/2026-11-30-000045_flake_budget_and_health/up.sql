-- How many flaky tests a project may have: more than the first number exceed the budget, and at most the second one meet it
-- again. Null without a budget.
DO $$ BEGIN
    ALTER TABLE project ADD COLUMN flake_budget integer[];
    -- As of the last judgement.
    ALTER TABLE project ADD COLUMN is_budget_exceeded boolean NOT NULL DEFAULT false;
    -- Figures of the last judgement for the operators' metrics: the tests that are broken, failing, flaky, healthy and without
    -- enough data; the runs of the window, and those of them that failed; the milliseconds of failed attempts of flaky tests.
    ALTER TABLE project ADD COLUMN health bigint[];
    -- The number of flaky tests, where the edge is one of the budget.
    ALTER TABLE edge ADD COLUMN flaky_tests integer;
    ALTER TABLE edge DROP CONSTRAINT edge_event_check;
    ALTER TABLE edge ADD CONSTRAINT edge_event_check CHECK (event IN ('run_failed', 'run_recovered', 'test_flaky', 'test_broken',
        'test_resolved', 'new_error', 'flake_budget_exceeded', 'flake_budget_met'));
END $$;

-- An import stores whether the budget is exceeded, and the figures.
DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc), 'failed_suites, judged_signatures',
        'failed_suites, is_budget_exceeded, health, judged_signatures');
END $$;
