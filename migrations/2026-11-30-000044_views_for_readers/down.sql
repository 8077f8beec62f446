DO $$ BEGIN
    EXECUTE replace(replace(pg_get_functiondef('assay_grant_roles'::regproc), '''assay_notifier'', ''assay_reader''] LOOP',
        '''assay_notifier''] LOOP'),
        'EXECUTE format(''GRANT USAGE ON SCHEMA %I TO assay_reader'', current_schema());
    GRANT SELECT ON reader_run, reader_result, reader_test TO assay_reader;
    RETURN NULL;', 'RETURN NULL;');
END $$;
DROP VIEW reader_test, reader_result, reader_run;
