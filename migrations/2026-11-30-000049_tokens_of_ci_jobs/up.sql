-- An ingest key without a secret: whose tokens stand for it, as an object of issuer, repository (its immutable id), ref,
-- environment and audience. The last three may be null. Its hash is of no text.
DO $$ BEGIN
    ALTER TABLE api_key ADD COLUMN trust jsonb;
    ALTER TABLE api_key ADD CONSTRAINT api_key_trust CHECK (trust IS NULL OR kind = 'ingest');
    CREATE INDEX api_key_of_tokens ON api_key ((trust ->> 'issuer'), (trust ->> 'repository')) WHERE trust IS NOT NULL;
    -- The job that sent it, as its token says. Null for a key with a secret.
    ALTER TABLE upload ADD COLUMN sender text;
    -- A session of a person who signed in at a provider has no key.
    ALTER TABLE ended_session ALTER COLUMN key_id DROP NOT NULL;
END $$;

-- The keys without a secret for tokens of this issuer and repository, in any state, oldest first. Runs with the rights of its
-- owner, as assay_ingest_key does.
CREATE FUNCTION assay_ingest_trust(presented_issuer text, presented_repository text)
RETURNS TABLE (
    id uuid, project_id uuid, project_name text, stable_branch text, name text, backfill boolean,
    pull_requests_only boolean, expires_at timestamptz, revoked_at timestamptz, trust jsonb
)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT api_key.id, project_entry.id, project_entry.name, project_entry.stable_branch, api_key.name, api_key.backfill,
        api_key.pull_requests_only, api_key.expires_at, api_key.revoked_at, api_key.trust
    FROM api_key
    JOIN project_entry ON project_entry.id = api_key.project_id
    JOIN organization ON organization.id = project_entry.organization_id
    WHERE api_key.trust IS NOT NULL AND api_key.trust ->> 'issuer' = presented_issuer
        AND api_key.trust ->> 'repository' = presented_repository
        AND project_entry.deleted_at IS NULL AND organization.deleted_at IS NULL
    ORDER BY api_key.created_at, api_key.id;
END;
REVOKE ALL ON FUNCTION assay_ingest_trust FROM PUBLIC;

DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc), 'assay_ingest_key, assay_note_ingest TO',
        'assay_ingest_key, assay_ingest_trust, assay_note_ingest TO');
END $$;
