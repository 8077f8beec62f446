-- The entries of the projects: a copy of the columns by which a project is found and listed. A distributed database keeps it
-- on the coordinator with organizations and keys, and everything else of a project on the project's worker. So a lost worker
-- hides no other project. The transaction that changes a project writes its entry, too.
CREATE TABLE project_entry (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organization (id),
    name text NOT NULL,
    stable_branch text NOT NULL,
    created_at timestamptz NOT NULL,
    deleted_at timestamptz
);
INSERT INTO project_entry SELECT id, organization_id, name, stable_branch, created_at, deleted_at FROM project;
CREATE INDEX project_entry_of_organization ON project_entry (organization_id, created_at, id);

-- No foreign key leads from one machine to another.
ALTER TABLE api_key
    DROP CONSTRAINT api_key_project_id_fkey,
    ADD CONSTRAINT api_key_project_id_fkey FOREIGN KEY (project_id) REFERENCES project_entry (id);
ALTER TABLE project DROP CONSTRAINT project_organization_id_fkey;
DROP INDEX project_of_organization;

-- As before, from the entries.
CREATE OR REPLACE FUNCTION assay_ingest_key(presented bytea)
RETURNS TABLE (
    id uuid, project_id uuid, project_name text, stable_branch text, name text, backfill boolean,
    pull_requests_only boolean, expires_at timestamptz, revoked_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT api_key.id, project_entry.id, project_entry.name, project_entry.stable_branch, api_key.name, api_key.backfill,
        api_key.pull_requests_only, api_key.expires_at, api_key.revoked_at
    FROM api_key
    JOIN project_entry ON project_entry.id = api_key.project_id
    JOIN organization ON organization.id = project_entry.organization_id
    WHERE api_key.hash = presented AND api_key.kind = 'ingest'
        AND project_entry.deleted_at IS NULL AND organization.deleted_at IS NULL;
END;

-- Whether runs that start at a time have partitions. Keeps these from being dropped until the caller's transaction ends. With
-- the rights of its owner, so that an importer needs none to lock periods.
CREATE FUNCTION assay_hold_room(at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM FROM period WHERE starts_at <= at AND at < ends_at FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- The row of a new period is visible shortly before its partitions are, to other sessions and on other machines.
    -- assay_make_room has this lock until they are.
    PERFORM pg_advisory_lock_shared(x'617373617979'::bigint);
    PERFORM pg_advisory_unlock_shared(x'617373617979'::bigint);
    RETURN true;
END
$$;
REVOKE ALL ON FUNCTION assay_hold_room FROM PUBLIC;
DO $$ BEGIN EXECUTE format('ALTER FUNCTION assay_hold_room SET search_path = %I, pg_temp', current_schema()); END $$;

-- As before, with the rights in the entries and the right to hold partitions.
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
    GRANT UPDATE (runs, tests, signatures, browsers, evaluated_at, observed, judged) ON project TO assay_importer, assay_ingester;
    GRANT DELETE ON run_day, branch, result, attempt TO assay_importer, assay_ingester;
    GRANT EXECUTE ON FUNCTION assay_make_room, assay_hold_room TO assay_importer, assay_ingester;
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
