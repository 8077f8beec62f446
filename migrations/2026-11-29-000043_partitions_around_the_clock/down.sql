DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_create_partition'::regproc),
        'CASE WHEN pg_has_role(session_user, current_user, ''USAGE'') THEN now ELSE clock_timestamp() END', 'now');
END $$;
