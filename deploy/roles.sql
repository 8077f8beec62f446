-- Creates the logins of Assay: the owner of the tables, and one login for each program with the rights that it needs.
--
-- Run it once as a superuser, connected to the database that Assay will use, with three passwords in the environment:
--   ASSAY_OWNER_PASSWORD=… ASSAY_SERVER_PASSWORD=… ASSAY_IMPORTER_PASSWORD=… psql --dbname=assay --file=deploy/roles.sql
-- With ASSAY_INGESTER_PASSWORD it also creates the login of the ingest listener, with ASSAY_NOTIFIER_PASSWORD that of
-- assay-notify, with ASSAY_READER_PASSWORD one for people with SQL, with ASSAY_BACKUP_PASSWORD one for pg_dump.
-- Then run `assay-admin migrate` as assay_owner.
\set ON_ERROR_STOP on
\getenv owner_password ASSAY_OWNER_PASSWORD
\getenv server_password ASSAY_SERVER_PASSWORD
\getenv importer_password ASSAY_IMPORTER_PASSWORD
\getenv ingester_password ASSAY_INGESTER_PASSWORD
\getenv notifier_password ASSAY_NOTIFIER_PASSWORD
\getenv reader_password ASSAY_READER_PASSWORD
\getenv backup_password ASSAY_BACKUP_PASSWORD

-- Group roles. `assay-admin migrate` grants them their rights. Another database of the cluster may have created them already.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['assay_server', 'assay_importer', 'assay_ingester', 'assay_notifier', 'assay_reader'] LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', name);
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
      NULL;
    END;
  END LOOP;
END $$;

-- `assay-admin migrate`, `org`, `project`, `key`, `prune`.
CREATE ROLE assay_owner LOGIN PASSWORD :'owner_password';
-- `assay-server`: reads results, checks keys.
CREATE ROLE assay_web LOGIN PASSWORD :'server_password' IN ROLE assay_server;
-- `assay-admin import`: stores results, reads no key. The limit leaves connections for others while a large CI matrix imports.
CREATE ROLE assay_ci LOGIN PASSWORD :'importer_password' IN ROLE assay_importer CONNECTION LIMIT 20;
\if :{?ingester_password}
-- The ingest listener of `assay-server`: stores results, looks up ingest keys, reads no read key.
CREATE ROLE assay_uploads LOGIN PASSWORD :'ingester_password' IN ROLE assay_ingester;
\endif
\if :{?notifier_password}
-- `assay-notify`: reads results and the outbox, marks what is sent, reads no key.
CREATE ROLE assay_notify LOGIN PASSWORD :'notifier_password' IN ROLE assay_notifier;
\endif
\if :{?reader_password}
-- People and tools with SQL: reads three views with the runs, results and verdicts of all organizations, and no error texts
-- (docs/export.md). The limits keep a heavy question from the service.
CREATE ROLE assay_analyst LOGIN PASSWORD :'reader_password' IN ROLE assay_reader CONNECTION LIMIT 4;
ALTER ROLE assay_analyst SET statement_timeout = '5min';
\endif
\if :{?backup_password}
-- `pg_dump`: reads the tables of Assay, and changes nothing. The role pg_read_all_data would also read the passwords' hashes.
CREATE ROLE assay_backup LOGIN PASSWORD :'backup_password';
\endif

SELECT format('ALTER DATABASE %I OWNER TO assay_owner', current_database()) \gexec
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()) \gexec
SELECT format('GRANT CONNECT ON DATABASE %I TO assay_server, assay_importer, assay_ingester, assay_notifier, assay_reader', current_database()) \gexec
\if :{?backup_password}
SELECT format('GRANT CONNECT ON DATABASE %I TO assay_backup', current_database()) \gexec
GRANT USAGE ON SCHEMA public TO assay_backup;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO assay_backup;
ALTER DEFAULT PRIVILEGES FOR ROLE assay_owner IN SCHEMA public GRANT SELECT ON TABLES TO assay_backup;
\endif
