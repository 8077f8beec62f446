DROP TABLE ended_session;
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

    GRANT SELECT ON __diesel_schema_migrations, organization, project, project_entry, run, run_day, branch, part, test, browser,
        signature, signature_alias, result, attempt, run_pack, verdict TO assay_server, assay_importer, assay_ingester;
    -- The server alone reads keys. The ingest listener looks up ingest keys through a function.
    GRANT SELECT, UPDATE (last_used_on) ON api_key TO assay_server;

    GRANT INSERT ON run, run_day, branch, part, test, browser, signature, result, attempt, run_pack, verdict TO assay_importer, assay_ingester;
    GRANT UPDATE ON run, run_day, branch, part, result, attempt, run_pack, verdict TO assay_importer, assay_ingester;
    GRANT UPDATE (runs, tests, signatures, browsers, evaluated_at, observed, judged, test_changes) ON project TO assay_importer, assay_ingester;
    GRANT UPDATE (file_path, written_name, shown_at) ON test TO assay_importer, assay_ingester;
    GRANT DELETE ON run_day, branch, part, result, attempt TO assay_importer, assay_ingester;
    GRANT EXECUTE ON FUNCTION assay_make_room, assay_hold_room, assay_count_projects TO assay_importer, assay_ingester;
    GRANT EXECUTE ON FUNCTION assay_ingest_key, assay_note_ingest TO assay_ingester;
    GRANT INSERT ON upload TO assay_ingester;
    -- The decisions of gates, without the keys and the clients.
    GRANT SELECT (project_id, at, id, run_number, shard_id, effect, decision) ON upload TO assay_server, assay_ingester;
    GRANT UPDATE (decision) ON upload TO assay_ingester;
    RETURN NULL;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'the group roles are not complete: %', SQLERRM;
    RETURN 'SELECT assay_grant_roles();';
END
$$;
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION assay_grant_roles SET search_path = %I, pg_temp', current_schema());
END $$;
