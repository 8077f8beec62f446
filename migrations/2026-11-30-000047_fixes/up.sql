-- Fixes of flaky tests: what repetitions of a job show, and claims that a commit fixed a test. At most 20 of a test.
CREATE TABLE fix (
    project_id uuid NOT NULL REFERENCES project (id),
    test integer NOT NULL,
    -- Ordered by time.
    id uuid NOT NULL,
    -- Time, commit, rate before, and what repetitions show.
    body jsonb NOT NULL,
    PRIMARY KEY (project_id, test, id)
);

DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc), 'RETURN NULL;',
        'GRANT SELECT ON fix TO assay_server, assay_importer, assay_ingester;
    GRANT INSERT, DELETE ON fix TO assay_importer, assay_ingester;
    RETURN NULL;');
END $$;
