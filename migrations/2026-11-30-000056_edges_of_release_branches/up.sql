DO $$ BEGIN
    -- The release branch that an edge of a suite is about; null for the stable branch.
    ALTER TABLE edge ADD COLUMN release_branch text;
    -- The failed suites of release branches as of the last judgement: an array of pairs of branch and suite.
    ALTER TABLE project ADD COLUMN failed_release_suites jsonb NOT NULL DEFAULT '[]';
END $$;

-- An import stores them.
DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc), 'failed_suites, is_budget_exceeded',
        'failed_suites, failed_release_suites, is_budget_exceeded');
END $$;
