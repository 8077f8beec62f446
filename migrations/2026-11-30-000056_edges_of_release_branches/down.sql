DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc), 'failed_suites, failed_release_suites, is_budget_exceeded',
        'failed_suites, is_budget_exceeded');
END $$;
DO $$ BEGIN
    DELETE FROM edge WHERE release_branch IS NOT NULL;
    ALTER TABLE project DROP COLUMN failed_release_suites;
    ALTER TABLE edge DROP COLUMN release_branch;
END $$;
