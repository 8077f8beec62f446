-- An import compares each judgement with what the last edges of its tests say, so its roles read these columns.
DO $$ BEGIN
    EXECUTE replace(
        pg_get_functiondef('assay_grant_roles'::regproc),
        'GRANT INSERT ON edge TO',
        'GRANT INSERT, SELECT (project_id, number, test, event, is_cancelled) ON edge TO'
    );
END $$;
