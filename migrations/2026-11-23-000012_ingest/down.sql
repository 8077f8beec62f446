DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'assay_ingester') THEN
        EXECUTE format('REVOKE ALL ON SCHEMA %I FROM assay_ingester', current_schema());
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM assay_ingester', current_schema());
        EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %I FROM assay_ingester', current_schema());
    END IF;
END $$;
DROP FUNCTION assay_note_ingest;
DROP FUNCTION assay_ingest_key;
DROP TABLE upload;
ALTER TABLE project DROP COLUMN judged;
ALTER TABLE run DROP COLUMN counts_in_verdicts;
-- The former version has no ingest keys that expire, that accept old runs, or that are for pull requests only.
DELETE FROM api_key WHERE kind = 'ingest' AND (expires_at IS NOT NULL OR pull_requests_only);
ALTER TABLE api_key
    DROP CONSTRAINT api_key_read_expires,
    DROP COLUMN name,
    DROP COLUMN backfill,
    DROP COLUMN pull_requests_only,
    ADD CONSTRAINT api_key_check CHECK ((kind = 'read') = (expires_at IS NOT NULL));
CREATE OR REPLACE FUNCTION assay_grant_roles() RETURNS text
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

    GRANT SELECT ON __diesel_schema_migrations, organization, project, run, run_day, branch, part, test, browser,
        signature, signature_alias, result, attempt, run_pack, verdict TO assay_server, assay_importer;
    -- The server alone checks keys.
    GRANT SELECT, UPDATE (last_used_on) ON api_key TO assay_server;

    GRANT INSERT ON run, run_day, branch, part, test, browser, signature, result, attempt, run_pack, verdict TO assay_importer;
    GRANT UPDATE ON run, run_day, branch, part, result, attempt, run_pack, verdict TO assay_importer;
    GRANT UPDATE (runs, tests, signatures, browsers, evaluated_at, observed) ON project TO assay_importer;
    GRANT DELETE ON run_day, branch, result, attempt TO assay_importer;
    GRANT EXECUTE ON FUNCTION assay_make_room TO assay_importer;
    RETURN NULL;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'the group roles are not complete: %', SQLERRM;
    RETURN 'SELECT assay_grant_roles();';
END
$$;
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION assay_grant_roles SET search_path = %I, pg_temp', current_schema());
END $$;
