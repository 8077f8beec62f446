-- Reports over HTTP: the permissions of ingest keys, the record of uploads, and the mark of a judgement that is due.

-- Ingest keys may expire.
ALTER TABLE api_key DROP CONSTRAINT api_key_check;
ALTER TABLE api_key
    ADD CONSTRAINT api_key_read_expires CHECK (kind <> 'read' OR expires_at IS NOT NULL),
    -- The name of an ingest key in lists.
    ADD COLUMN name text,
    -- Whether it may send runs that started long ago.
    ADD COLUMN backfill boolean NOT NULL DEFAULT false,
    -- Whether it may send runs of pull requests only. Such a key may be public.
    ADD COLUMN pull_requests_only boolean NOT NULL DEFAULT false;

-- Whether the engine uses the run: false for runs that a pull-request-only key sent.
ALTER TABLE run ADD COLUMN counts_in_verdicts boolean NOT NULL DEFAULT true;

-- The value of `observed` at the judgement behind the stored verdicts. If the two differ, a judgement is due. Null if the
-- former version created the project.
ALTER TABLE project ADD COLUMN judged uuid;
UPDATE project SET judged = observed WHERE evaluated_at IS NOT NULL;

-- Which ingest key sent which report. Rows are kept for 90 days.
CREATE TABLE upload (
    project_id uuid NOT NULL REFERENCES project (id),
    at timestamptz NOT NULL,
    id uuid NOT NULL,
    -- Not a foreign key, because the row remains after the key is deleted.
    key_id uuid NOT NULL,
    -- The run's id. The run may be pruned earlier.
    run_id uuid NOT NULL,
    bytes bigint NOT NULL,
    run_number integer NOT NULL,
    files integer NOT NULL,
    effect text NOT NULL CHECK (effect IN ('added', 'replaced', 'unchanged')),
    -- The client's User-Agent.
    client text,
    PRIMARY KEY (project_id, at, id)
);

-- The ingest key with this hash, in any state; no row for a read key's hash. Runs with the rights of its owner, so that the
-- ingest listener needs no right to read keys.
CREATE FUNCTION assay_ingest_key(presented bytea)
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
REVOKE ALL ON FUNCTION assay_ingest_key FROM PUBLIC;

-- Records the day on which an ingest key was used.
CREATE FUNCTION assay_note_ingest(used uuid, day date) RETURNS void
LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    UPDATE api_key SET last_used_on = day
    WHERE id = used AND kind = 'ingest' AND (last_used_on IS NULL OR last_used_on < day);
END;
REVOKE ALL ON FUNCTION assay_note_ingest FROM PUBLIC;

-- As before, with the role of the ingest listener: the rights of the importer, the look-up of ingest keys, and `upload`.
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
