-- The text of each applied migration as a hash: a database whose migrations were changed afterwards is recognised.
CREATE TABLE __migration_checksum (
    version text PRIMARY KEY,
    -- SHA-256 of its up.sql.
    sha256 bytea NOT NULL
);

-- The path of the part's report file. Of several files, their common folder with a final slash. It separates legs of a matrix.
DO $$ BEGIN ALTER TABLE part ADD COLUMN report_path text; END $$;
-- An import also stores the renames file of a checkout and the tests that it joins, and reads what was told of a test.
CREATE OR REPLACE FUNCTION assay_grant_roles() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['assay_server', 'assay_importer', 'assay_ingester', 'assay_notifier'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO assay_server, assay_importer, assay_ingester, assay_notifier', current_schema());

    GRANT SELECT ON __diesel_schema_migrations, __migration_checksum, organization, project, project_entry, run, daily_count, branch, part, test, browser,
        signature, signature_alias, result_block, result, attempt, attempt_texts, run_pack, verdict_block,
        verdict_evidence, verdict TO assay_server, assay_importer, assay_ingester, assay_notifier;
    -- The server alone reads keys. The ingest listener looks up ingest keys through a function.
    GRANT SELECT, UPDATE (last_used_on) ON api_key TO assay_server;
    GRANT SELECT, INSERT, DELETE ON ended_session TO assay_server;

    GRANT INSERT ON run, daily_count, branch, part, test, browser, signature, result_block, attempt, attempt_texts, run_pack, verdict_block,
        verdict_evidence TO assay_importer, assay_ingester;
    GRANT UPDATE ON run, daily_count, branch, part, result_block, attempt, attempt_texts, run_pack TO assay_importer, assay_ingester;
    GRANT UPDATE (runs, tests, signatures, browsers, evaluated_at, observed, judged, test_changes, owners_path, owners_text,
        owners_files, owners_at, renames_text, renames_at, joined_tests, failed_suites, judged_signatures, edges) ON project TO assay_importer, assay_ingester;
    GRANT UPDATE (file_path, written_name, shown_at) ON test TO assay_importer, assay_ingester;
    GRANT DELETE ON daily_count, branch, part, result_block, attempt, attempt_texts, verdict_block, verdict_evidence TO assay_importer, assay_ingester;
    GRANT EXECUTE ON FUNCTION assay_create_partition, assay_hold_partition, assay_count_projects TO assay_importer, assay_ingester;
    GRANT EXECUTE ON FUNCTION assay_ingest_key, assay_note_ingest TO assay_ingester;
    GRANT INSERT ON upload TO assay_ingester;
    -- The decisions of gates, without the keys and the clients. The server lists uploads with the names of their keys.
    GRANT SELECT (project_id, at, id, run_number, shard_id, effect, decision) ON upload TO assay_server, assay_ingester;
    GRANT SELECT (key_id, run_id, bytes, files) ON upload TO assay_server;
    GRANT UPDATE (decision) ON upload TO assay_ingester;
    GRANT SELECT, INSERT, UPDATE ON upload_day TO assay_ingester;
    GRANT INSERT, SELECT (project_id, number, test, event, is_cancelled) ON edge TO assay_importer, assay_ingester;
    -- assay-notify reads results for its texts, and no key.
    GRANT SELECT, UPDATE (settled, settled_at, is_cancelled), DELETE ON edge TO assay_notifier;
    GRANT SELECT, INSERT, UPDATE, DELETE ON message TO assay_notifier;
    GRANT UPDATE (chat_served, chat_served_at) ON project TO assay_notifier;
    RETURN NULL;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'the group roles are not complete: %', SQLERRM;
    RETURN 'SELECT assay_grant_roles();';
END
$$;
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION assay_grant_roles SET search_path = %I, pg_temp', current_schema());
END $$;
