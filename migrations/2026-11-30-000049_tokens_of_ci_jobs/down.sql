DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc), 'assay_ingest_key, assay_ingest_trust, assay_note_ingest TO',
        'assay_ingest_key, assay_note_ingest TO');
END $$;
DROP FUNCTION assay_ingest_trust;
DELETE FROM ended_session WHERE key_id IS NULL;
ALTER TABLE ended_session ALTER COLUMN key_id SET NOT NULL;
ALTER TABLE upload DROP COLUMN sender;
DELETE FROM api_key WHERE trust IS NOT NULL;
ALTER TABLE api_key DROP COLUMN trust;
