DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc),
        'GRANT SELECT ON fix TO assay_server, assay_importer, assay_ingester;
    GRANT INSERT, DELETE ON fix TO assay_importer, assay_ingester;
    RETURN NULL;', 'RETURN NULL;');
END $$;
DROP TABLE fix;
