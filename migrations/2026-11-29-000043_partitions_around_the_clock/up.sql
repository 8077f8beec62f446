-- Only the owner of the tables names the time around which partitions are weeks. For any other login it is the time of Postgres,
-- so that no login creates weeks of arbitrary years. Reports of other years are stored in the parts of calendar years, of which
-- there are about a hundred.
DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_create_partition'::regproc), 'date_trunc(''week'', now)',
        'date_trunc(''week'', CASE WHEN pg_has_role(session_user, current_user, ''USAGE'') THEN now ELSE clock_timestamp() END)');
END $$;
