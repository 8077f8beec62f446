-- Two group roles with the rights that the server and an importer need. Logins are members of them. The owner of the tables
-- migrates and administers, and needs neither.

-- Creates both roles if they are missing, and grants each its rights in this database. Returns null, or the statement that a
-- role with more rights must run, with a notice.
--
-- Roles belong to the whole cluster, so another database may have them already, or create them at the same time. Call it
-- after each migration, and again when roles or rights were lost, as after restoring a dump elsewhere.
CREATE FUNCTION assay_grant_roles() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['assay_server', 'assay_importer'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO assay_server, assay_importer', current_schema());

    GRANT SELECT ON __diesel_schema_migrations, organization, project, run, branch, part, test, browser,
        signature, signature_alias, result, attempt, run_pack, verdict TO assay_server, assay_importer;
    -- The server alone checks keys.
    GRANT SELECT, UPDATE (last_used_on) ON api_key TO assay_server;

    GRANT INSERT ON run, branch, part, test, browser, signature, result, attempt, run_pack, verdict TO assay_importer;
    GRANT UPDATE ON run, branch, part, result, attempt, run_pack, verdict TO assay_importer;
    GRANT UPDATE (runs, tests, signatures, browsers, evaluated_at) ON project TO assay_importer;
    GRANT DELETE ON branch, result, attempt TO assay_importer;
    GRANT EXECUTE ON FUNCTION assay_make_room TO assay_importer;
    RETURN NULL;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'the group roles are not complete: %', SQLERRM;
    RETURN 'SELECT assay_grant_roles();';
END
$$;
REVOKE ALL ON FUNCTION assay_grant_roles FROM PUBLIC;
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION assay_grant_roles SET search_path = %I, pg_temp', current_schema());
END $$;
