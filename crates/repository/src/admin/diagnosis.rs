//! The checks of `assay-admin doctor` on a database that may be faulty. They only read, and each is independent, so that a
//! failing check does not affect the others.
//!
//! The statements are raw SQL, because they read Postgres' catalogs, which `schema.rs` does not describe.

use assay_domain::{
    id::{OrganizationId, ProjectId},
    store::StoreError,
    timestamp::Timestamp,
};
use diesel::{connection::SimpleConnection, prelude::*, query_dsl::LoadQuery};
use uuid::Uuid;

use crate::{
    admin::migrate::{self, SchemaComparison},
    db::{
        column::At,
        connection_string::establish,
        sql_statement::{SqlRow, SqlStatement, sql_row},
    },
    read::pack::Pack,
};

/// Time limit of one check, in milliseconds.
const CHECK_TIMEOUT_MS: u32 = 60_000;

/// A read-only connection to a database whose schema may be missing, old or newer.
pub struct Inspection(PgConnection);

impl std::fmt::Debug for Inspection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inspection")
    }
}

sql_row! {
    /// The server, the connected role and the database.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ServerFacts {
        /// The database's name.
        pub database: String,
        /// The role that is connected.
        pub role: String,
        /// The server's version, such as `15.12 (Debian 15.12-0+deb12u2)`.
        pub version: String,
        /// The same as a number: 150012.
        pub version_number: i32,
        /// The encoding that texts are stored in.
        pub encoding: String,
        /// Whether it is a standby, which accepts no writes.
        pub is_standby: bool,
        /// Size of the whole database on disk, in bytes.
        pub size_bytes: i64,
    }
}

sql_row! {
    /// The rights of a role.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Rights {
        /// Its name.
        pub role: String,
        /// Whether it is the connected role.
        pub is_connected: bool,
        /// Whether it is a superuser, for which Postgres checks no rights.
        pub superuser: bool,
        /// Whether it may read the tables of the read API.
        pub reads: bool,
        /// Whether it may store results.
        pub records: bool,
        /// Whether it may create organizations and keys.
        pub administers: bool,
        /// Whether it may change the schema.
        pub migrates: bool,
    }
}

sql_row! {
    /// Size of one table on disk, with indexes and partitions.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TableSize {
        /// The table's name.
        pub name: String,
        /// Its size in bytes.
        pub bytes: i64,
    }
}

sql_row! {
    /// The blocks of results, those of verdicts with the rows of evidence, or the attempts with errors.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct BlockCounts {
        /// All of them.
        pub blocks: i64,
        /// Those that no import writes.
        pub unsound: i64,
        /// The run of one of these.
        pub example: Option<String>,
    }
}

sql_row! {
    /// The messages of a project to a target that were not delivered.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct UndeliveredMessages {
        /// The project's name.
        pub project: String,
        /// The target's name.
        pub target: String,
        /// How many failed at least once.
        pub messages: i64,
        /// How many of them are given up.
        pub given_up: i64,
        /// Why the last attempt failed.
        pub error: Option<String>,
    }
}

/// A project with events for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagedProject {
    /// Its name.
    pub name: String,
    /// When `assay-notify` last registered a target for it.
    pub served_at: Option<Timestamp>,
}

/// The stored rows of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectState {
    /// Its name.
    pub name: String,
    /// Its runs.
    pub runs: i64,
    /// Runs that count in verdicts, without the pack that the engine reads.
    pub without_pack: i64,
    /// When the stored verdicts were judged, if they ever were.
    pub evaluated_at: Option<Timestamp>,
}

impl Inspection {
    /// Connects to the database of this connection string. Its schema is not checked.
    pub fn connect(url: &str) -> Result<Self, StoreError> {
        let mut connection = establish(url)?;
        // Read-only, so that no check can change the database.
        connection
            .batch_execute(&format!(
                "SET statement_timeout = {CHECK_TIMEOUT_MS}; SET default_transaction_read_only = on; \
                 SET client_min_messages = warning; SET timezone = 'UTC'"
            ))
            .map_err(|error| failed("connecting", error))?;
        Ok(Self(connection))
    }

    /// The server's clock.
    pub fn clock(&mut self) -> Result<Timestamp, StoreError> {
        let statement = SqlStatement::new("SELECT clock_timestamp()");
        let At(now) = self.one("reading the clock", statement)?;
        Ok(now)
    }

    /// The server, the connected role and the database.
    pub fn server(&mut self) -> Result<ServerFacts, StoreError> {
        let statement = SqlStatement::new(
            "SELECT current_database()::text AS database, current_user::text AS role,
                    current_setting('server_version') AS version,
                    current_setting('server_version_num')::integer AS version_number,
                    current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS is_standby,
                    pg_database_size(current_database()) AS size_bytes",
        );
        self.one("reading the server's version", statement)
    }

    /// The database's schema compared with this program's.
    pub fn schema(&mut self) -> Result<SchemaComparison, StoreError> {
        migrate::compare(&mut self.0)
    }

    /// The rights of the connected role and of each existing one of the named roles. The tables must exist.
    pub fn rights(&mut self, roles: &[&str]) -> Result<Vec<Rights>, StoreError> {
        let statement = SqlStatement::new(
            "SELECT role.rolname::text AS role, role.rolname = current_user AS is_connected,
                    role.rolsuper AS superuser,
                    has_table_privilege(role.oid, 'result_block', 'SELECT')
                        AND has_table_privilege(role.oid, 'verdict_block', 'SELECT') AS reads,
                    has_table_privilege(role.oid, 'result_block', 'INSERT') AS records,
                    has_table_privilege(role.oid, 'organization', 'INSERT')
                        AND has_table_privilege(role.oid, 'api_key', 'INSERT') AS administers,
                    pg_has_role(role.oid, tables.relowner, 'USAGE') AS migrates
             FROM pg_roles AS role CROSS JOIN pg_class AS tables
             WHERE tables.oid = 'result_block'::regclass AND (role.rolname = current_user OR role.rolname = ANY ({roles}))
             ORDER BY is_connected DESC, role.rolname",
        ).bind("roles", roles);
        self.all("reading roles", statement)
    }

    /// The logins that may read every table of this database, and are neither superusers nor the owner of the tables.
    pub fn backup_logins(&mut self) -> Result<Vec<String>, StoreError> {
        let statement = SqlStatement::new(
            "SELECT role.rolname::text AS name FROM pg_roles AS role CROSS JOIN pg_class AS tables
             WHERE tables.oid = 'result_block'::regclass AND role.rolcanlogin AND NOT role.rolsuper
                 AND NOT pg_has_role(role.oid, tables.relowner, 'USAGE')
                 AND NOT has_table_privilege(role.oid, tables.oid, 'INSERT')
                 AND NOT EXISTS (SELECT FROM pg_class AS other WHERE other.relnamespace = tables.relnamespace
                     AND other.relkind IN ('r', 'p') AND NOT has_table_privilege(role.oid, other.oid, 'SELECT'))
                 AND has_database_privilege(role.oid, current_database(), 'CONNECT')
             ORDER BY role.rolname",
        );
        self.names("reading the logins for backups", statement)
    }

    /// The tables among these that the connected role may not read.
    pub fn unreadable(&mut self, tables: &[&str]) -> Result<Vec<String>, StoreError> {
        let statement = SqlStatement::new(
            "SELECT name FROM unnest({tables}) AS asked (name)
             WHERE NOT has_table_privilege(name::regclass, 'SELECT') ORDER BY name",
        )
        .bind("tables", tables);
        self.names("reading rights", statement)
    }

    /// The programs' groups that the connected role belongs to.
    pub fn groups(&mut self, groups: &[&str]) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT rolname::text AS name FROM pg_roles
                   WHERE rolname = ANY ({groups}) AND pg_has_role(oid, 'USAGE') ORDER BY rolname";
        self.names("reading groups", SqlStatement::new(sql).bind("groups", groups))
    }

    /// The statements of `assay_grant_roles` that are not in force for these groups, one for each right.
    pub fn missing_grants(&mut self, groups: &[String]) -> Result<Vec<String>, StoreError> {
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let statement = SqlStatement::new(
            r#"SELECT format('GRANT %s%s ON %s%s TO %I', of[1], ' (' || nullif("column", '') || ')', parts[2], object,
                   roles.rolname) AS name
               FROM pg_proc
               CROSS JOIN regexp_matches(prosrc, '\mGRANT ([^;%]+?) ON (FUNCTION )?([^;%]+) TO ([^;%]+);', 'g')
                   AS statement (parts)
               CROSS JOIN regexp_matches(parts[1], '(\w+)(?: \(([^)]*)\))?', 'g') AS privilege (of)
               CROSS JOIN regexp_split_to_table(coalesce(of[2], ''), ',\s*') AS "column"
               CROSS JOIN regexp_split_to_table(parts[3], ',\s*') AS object
               JOIN pg_roles AS roles ON roles.rolname = ANY (regexp_split_to_array(parts[4], ',\s*'))
               WHERE pg_proc.oid = to_regproc('assay_grant_roles') AND roles.rolname = ANY ({groups}) AND NOT CASE
                   WHEN parts[2] IS NOT NULL THEN has_function_privilege(roles.oid, object::regproc, of[1])
                   WHEN "column" = '' THEN has_table_privilege(roles.oid, object, of[1])
                   ELSE has_column_privilege(roles.oid, object, "column", of[1]) END
               ORDER BY name"#,
        )
        .bind("groups", &*groups);
        self.names("reading grants", statement)
    }

    /// The tables that the connected role may not read, each with the statement that lets it; none if it may read none.
    pub fn missing_reads(&mut self) -> Result<Vec<String>, StoreError> {
        let statement = SqlStatement::new(
            "SELECT format('GRANT SELECT ON %s TO %I', name, current_user) AS name
             FROM (SELECT oid::regclass AS name, has_table_privilege(oid, 'SELECT') AS reads,
                       bool_or(has_table_privilege(oid, 'SELECT')) OVER () AS reads_some
                   FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v')) AS tables
             WHERE NOT reads AND reads_some ORDER BY name",
        );
        self.names("reading grants", statement)
    }

    /// The project with the fewest runs, with its organization.
    pub fn smallest_project(&mut self) -> Result<Option<(OrganizationId, ProjectId)>, StoreError> {
        let sql =
            "SELECT organization_id, id FROM project WHERE deleted_at IS NULL ORDER BY runs, id LIMIT 1";
        let statement = SqlStatement::new(sql);
        let found: Vec<(Uuid, Uuid)> = self.all("reading projects", statement)?;
        let ids = found.first();
        Ok(ids.map(|(organization, project)| (OrganizationId(*organization), ProjectId(*project))))
    }

    /// The largest tables, the largest first.
    pub fn largest_tables(&mut self) -> Result<Vec<TableSize>, StoreError> {
        let sql =
            "SELECT coalesce(pg_partition_root(tables.oid)::regclass, tables.oid::regclass)::text AS name,
                          sum(pg_total_relation_size(tables.oid))::bigint AS bytes
                   FROM pg_class AS tables
                   WHERE tables.relkind = 'r' AND tables.relnamespace = 'public'::regnamespace
                   GROUP BY 1 ORDER BY bytes DESC, name LIMIT 3";
        self.all("reading sizes", SqlStatement::new(sql))
    }

    /// The projects with events for messages, oldest first. The schema must be this program's.
    pub fn messaged_projects(&mut self) -> Result<Vec<MessagedProject>, StoreError> {
        let sql = "SELECT name, chat_served_at AS served_at FROM project
                   WHERE chat_events IS NOT NULL AND deleted_at IS NULL ORDER BY created_at, id";
        let statement = SqlStatement::new(sql);
        let rows: Vec<(String, Option<At>)> = self.all("reading projects with messages", statement)?;
        let projects = rows.into_iter().map(|(name, served_at)| MessagedProject {
            name,
            served_at: served_at.map(|At(at)| at),
        });
        Ok(projects.collect())
    }

    /// The messages that were tried and not delivered. The schema must be this program's.
    pub fn undelivered_messages(&mut self) -> Result<Vec<UndeliveredMessages>, StoreError> {
        let sql = "SELECT project.name AS project, message.target, count(*) AS messages,
                       count(*) FILTER (WHERE message.next_attempt_at IS NULL) AS given_up,
                       (array_agg(message.error ORDER BY message.number))[1] AS error
                   FROM message JOIN project ON project.id = message.project_id
                   WHERE message.content IS NOT NULL AND message.delivered_at IS NULL AND message.attempts > 0
                   GROUP BY project.id, message.target ORDER BY project.name, project.id, message.target";
        let statement = SqlStatement::new(sql);
        self.all("reading messages", statement)
    }

    /// Every project, oldest first. The schema must be this program's.
    pub fn projects(&mut self) -> Result<Vec<ProjectState>, StoreError> {
        // This statement reads the runs of all projects. Only the operator waits for it.
        let sql = "SELECT project.name, count(run.number),
                       count(run.number) FILTER (WHERE run_pack.run_number IS NULL AND run.counts_in_verdicts),
                       project.evaluated_at
                   FROM project
                   LEFT JOIN run ON run.project_id = project.id
                   LEFT JOIN run_pack ON run_pack.project_id = run.project_id AND run_pack.run_number = run.number
                   WHERE project.deleted_at IS NULL
                   GROUP BY project.id
                   ORDER BY project.created_at, project.id";
        let statement = SqlStatement::new(sql);
        let rows: Vec<(String, i64, i64, Option<At>)> = self.all("reading projects", statement)?;
        let states = rows
            .into_iter()
            .map(|(name, runs, without_pack, evaluated_at)| ProjectState {
                name,
                runs,
                without_pack,
                evaluated_at: evaluated_at.map(|At(at)| at),
            });
        Ok(states.collect())
    }

    /// The number of blocks of results, and of those whose columns differ in length, that have a test whose number the
    /// project never used or that have a status that does not exist. The schema must be this program's.
    pub fn blocks(&mut self) -> Result<BlockCounts, StoreError> {
        // This statement reads the blocks of all projects. Only the operator waits for it.
        self.counts(
            "checking results",
            "SELECT count(*) AS blocks, count(*) FILTER (WHERE NOT is_sound) AS unsound,
                   min(format('run %s of \"%s\"', run_number, name)) FILTER (WHERE NOT is_sound) AS example
             FROM (SELECT block.run_number, project.name, (
                       CASE WHEN block.present IS NULL THEN length(block.status) BETWEEN 1 AND 512
                           AND block.block * 512 + length(block.status) <= project.tests
                       ELSE length(block.present) = 64 AND bit_count(block.present) = length(block.status)
                           AND block.block * 512 < project.tests
                           AND (block.block < project.tests / 512 OR NOT EXISTS (
                               SELECT FROM generate_series(project.tests % 512, 511) AS place
                               WHERE get_bit(block.present, place) = 1)) END
                       AND encode(block.status, 'hex') ~ '^(0[0-4])*$'
                       AND length(block.status) = ALL (ARRAY[cardinality(block.duration_ms),
                           coalesce(cardinality(block.long_duration_ms), length(block.status)),
                           coalesce(cardinality(block.start_step_ms), length(block.status)),
                           coalesce(cardinality(block.browser), length(block.status)),
                           coalesce(cardinality(block.attempts), length(block.status)),
                           coalesce(cardinality(block.part), length(block.status))])) AS is_sound
                   FROM result_block AS block JOIN project ON project.id = block.project_id) AS block",
        )
    }

    /// The number of attempts with errors, and of those whose errors are missing. The schema must be this program's.
    pub fn errors(&mut self) -> Result<BlockCounts, StoreError> {
        // This statement reads the attempts of all projects. Only the operator waits for it.
        self.counts(
            "checking errors",
            "SELECT count(*) AS blocks,
                    count(*) FILTER (WHERE texts.errors[attempt.texts_place] IS NULL) AS unsound, NULL AS example
             FROM attempt LEFT JOIN attempt_texts AS texts
                 ON texts.project_id = attempt.project_id AND texts.run_number = attempt.run_number
                 AND texts.started_at = attempt.started_at AND texts.part = attempt.part
                 AND texts.number = attempt.texts
             WHERE attempt.texts IS NOT NULL",
        )
    }

    /// The number of blocks of verdicts and rows of evidence. Unsound are blocks like those of results, and evidence
    /// without a verdict. The schema must be this program's.
    pub fn verdicts(&mut self) -> Result<BlockCounts, StoreError> {
        self.counts(
            "checking verdicts",
            "SELECT (SELECT count(*) FROM verdict_block) + (SELECT count(*) FROM verdict_evidence) AS blocks,
                    (SELECT count(*) FROM verdict_block AS block JOIN project ON project.id = block.project_id
                     WHERE NOT (cardinality(block.status) BETWEEN 1 AND 128
                       AND block.block * 128 + cardinality(block.status) <= project.tests
                       AND 0 <= ALL (block.body) AND cardinality(block.bodies) >= ALL (block.body)
                       AND cardinality(block.status) = ALL (ARRAY[cardinality(block.reason),
                           cardinality(block.in_window), cardinality(block.last_run), cardinality(block.last_status),
                           cardinality(block.last_offset_ms), cardinality(block.newest),
                           cardinality(block.time_lost_ms), cardinality(block.flake_score),
                           cardinality(block.flake_rate), cardinality(block.broken_probability),
                           cardinality(block.impact), cardinality(block.body)])))
                    + (SELECT count(*) FROM verdict_evidence AS evidence
                       LEFT JOIN verdict_block AS block ON block.project_id = evidence.project_id
                           AND block.block = evidence.test / 128
                       WHERE block.status[evidence.test % 128 + 1] IS NULL) AS unsound, NULL AS example",
        )
    }

    /// The number of attempts, and of those with a status that does not exist.
    pub fn attempts(&mut self) -> Result<BlockCounts, StoreError> {
        self.counts(
            "checking attempts",
            "SELECT count(*) AS blocks, count(*) FILTER (WHERE status NOT BETWEEN 0 AND 4) AS unsound,
                    min(format('run %s of \"%s\"', run_number, name)) FILTER (WHERE status NOT BETWEEN 0 AND 4) AS example
             FROM attempt JOIN project ON project.id = attempt.project_id",
        )
    }

    /// The runs whose packs cannot be read, each with the reason. The schema must be this program's.
    pub fn unreadable_packs(&mut self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT project.name, project.tests, run_pack.run_number, run_pack.pack
                   FROM run_pack JOIN project ON project.id = run_pack.project_id";
        let rows = SqlStatement::<(String, i32, i32, Vec<u8>)>::new(sql)
            .load_iter(&mut self.0)
            .map_err(|error| failed("checking packs", error))?;
        let mut unreadable = Vec::new();
        for row in rows {
            let (name, tests, run, pack) = row.map_err(|error| failed("checking packs", error))?;
            if let Err(bad) = Pack::decode(&pack, u32::try_from(tests).unwrap_or_default()) {
                unreadable.push(format!("run {run} of {name:?}: {bad}"));
            }
        }
        Ok(unreadable)
    }

    fn counts(&mut self, doing: &'static str, sql: &'static str) -> Result<BlockCounts, StoreError> {
        self.one(doing, SqlStatement::new(sql))
    }

    fn names(
        &mut self,
        doing: &'static str,
        statement: SqlStatement<'_, String>,
    ) -> Result<Vec<String>, StoreError> {
        self.all(doing, statement)
    }

    fn one<'a, 'query, T: SqlRow>(
        &mut self,
        doing: &'static str,
        statement: SqlStatement<'a, T>,
    ) -> Result<T, StoreError>
    where
        SqlStatement<'a, T>: LoadQuery<'query, PgConnection, T>,
    {
        let row = statement.get_result(&mut self.0);
        row.map_err(|error| failed(doing, error))
    }

    fn all<'a, 'query, T: SqlRow>(
        &mut self,
        doing: &'static str,
        statement: SqlStatement<'a, T>,
    ) -> Result<Vec<T>, StoreError>
    where
        SqlStatement<'a, T>: LoadQuery<'query, PgConnection, T>,
    {
        let rows = statement.load(&mut self.0);
        rows.map_err(|error| failed(doing, error))
    }
}

fn failed(doing: &'static str, error: diesel::result::Error) -> StoreError {
    StoreError::Failed {
        doing,
        source: Box::new(error),
    }
}
