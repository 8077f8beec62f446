DO $$ BEGIN
    EXECUTE replace(
        pg_get_functiondef('assay_grant_roles'::regproc),
        'GRANT INSERT, SELECT (project_id, number, test, event, is_cancelled) ON edge TO',
        'GRANT INSERT ON edge TO'
    );
END $$;
