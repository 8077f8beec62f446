DROP FUNCTION assay_hold_room;
CREATE OR REPLACE FUNCTION assay_ingest_key(presented bytea)
RETURNS TABLE (
    id uuid, project_id uuid, project_name text, stable_branch text, name text, backfill boolean,
    pull_requests_only boolean, expires_at timestamptz, revoked_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT api_key.id, project.id, project.name, project.stable_branch, api_key.name, api_key.backfill,
        api_key.pull_requests_only, api_key.expires_at, api_key.revoked_at
    FROM api_key
    JOIN project ON project.id = api_key.project_id
    JOIN organization ON organization.id = project.organization_id
    WHERE api_key.hash = presented AND api_key.kind = 'ingest'
        AND project.deleted_at IS NULL AND organization.deleted_at IS NULL;
END;
CREATE INDEX project_of_organization ON project (organization_id, created_at, id);
ALTER TABLE project
    ADD CONSTRAINT project_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization (id);
ALTER TABLE api_key
    DROP CONSTRAINT api_key_project_id_fkey,
    ADD CONSTRAINT api_key_project_id_fkey FOREIGN KEY (project_id) REFERENCES project (id);
DROP TABLE project_entry;
CREATE OR REPLACE FUNCTION assay_grant_roles() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['assay_server', 'assay_importer', 'assay_ingester'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO assay_server, assay_importer, assay_ingester', current_schema());

    GRANT SELECT ON __diesel_schema_migrations, organization, project, run, run_day, branch, part, test, browser,
        signature, signature_alias, result, attempt, run_pack, verdict TO assay_server, assay_importer, assay_ingester;
    -- The server alone reads keys. The ingest listener looks up ingest keys through a function.
    GRANT SELECT, UPDATE (last_used_on) ON api_key TO assay_server;

    GRANT INSERT ON run, run_day, branch, part, test, browser, signature, result, attempt, run_pack, verdict TO assay_importer, assay_ingester;
    GRANT UPDATE ON run, run_day, branch, part, result, attempt, run_pack, verdict TO assay_importer, assay_ingester;
    GRANT UPDATE (runs, tests, signatures, browsers, evaluated_at, observed, judged) ON project TO assay_importer, assay_ingester;
    GRANT DELETE ON run_day, branch, result, attempt TO assay_importer, assay_ingester;
    GRANT EXECUTE ON FUNCTION assay_make_room TO assay_importer, assay_ingester;
    GRANT EXECUTE ON FUNCTION assay_ingest_key, assay_note_ingest TO assay_ingester;
    GRANT INSERT ON upload TO assay_ingester;
    RETURN NULL;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'the group roles are not complete: %', SQLERRM;
    RETURN 'SELECT assay_grant_roles();';
END
$$;
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION assay_grant_roles SET search_path = %I, pg_temp', current_schema());
END $$;
