DO $$ BEGIN
    DELETE FROM edge WHERE event = 'revert_candidate';
    ALTER TABLE edge DROP CONSTRAINT edge_event_check;
    ALTER TABLE edge ADD CONSTRAINT edge_event_check CHECK (event IN ('run_failed', 'run_recovered', 'test_flaky', 'test_broken',
        'test_resolved', 'new_error', 'flake_budget_exceeded', 'flake_budget_met', 'fix_held', 'fix_did_not_hold'));
END $$;
