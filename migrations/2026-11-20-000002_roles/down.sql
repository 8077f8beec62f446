-- The roles stay, because they belong to the whole cluster. Their rights on tables end with the tables.
DO $$
DECLARE
    role text;
BEGIN
    FOR role IN SELECT rolname FROM pg_roles WHERE rolname IN ('assay_server', 'assay_importer') LOOP
        EXECUTE format('REVOKE ALL ON SCHEMA %I FROM %I', current_schema(), role);
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM %I', current_schema(), role);
        EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %I FROM %I', current_schema(), role);
    END LOOP;
END $$;
DROP FUNCTION assay_grant_roles;
