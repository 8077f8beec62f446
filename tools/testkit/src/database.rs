//! A database per test, copied from a migrated template.

use std::{
    fs::{self, OpenOptions},
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::OnceLock,
};

use anyhow::{Context, Result};
use assay_repository::{Database, PoolOptions};
use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl, connection::SimpleConnection, sql_types,
};
use walkdir::WalkDir;

use crate::cluster;

/// An empty, migrated database for one test. Dropping the value drops it.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    url: String,
}

impl TestDatabase {
    /// A new database.
    ///
    /// # Panics
    ///
    /// If there is no Postgres, with the reason.
    #[expect(
        clippy::new_without_default,
        reason = "a default value should not create a database"
    )]
    pub fn new() -> Self {
        Self::from_template(template()).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// A new database without migrations.
    pub fn unmigrated() -> Self {
        Self::from_template("template1").unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// Another database with the same state. This one must have no connections.
    pub fn copy(&self) -> Self {
        Self::from_template(&self.name).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// The connection string.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The store over this database, with a pool of four connections.
    pub fn connect(&self) -> Database {
        let options = PoolOptions {
            size: 4,
            ..PoolOptions::default()
        };
        Database::connect(&self.url, options).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// The same as a login that imports, with the rights that `deploy/roles.sql` gives it.
    pub fn connect_as_importer(&self) -> Database {
        self.connect_as("assay_test_importer")
    }

    /// The same as a login that sends messages.
    pub fn connect_as_notifier(&self) -> Database {
        self.connect_as("assay_test_notifier")
    }

    fn connect_as(&self, login: &str) -> Database {
        let url = cluster::url_as(&self.url, login);
        Database::connect(&url, 4).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// A connection for the test's own statements.
    pub fn connection(&self) -> PgConnection {
        connection(&self.url)
    }

    /// Runs the test's own statements.
    pub fn execute(&self, sql: &str) {
        execute(&self.url, sql);
    }

    /// The only value of a query as text; none if it is null.
    pub fn text(&self, sql: &str) -> Option<String> {
        self.texts(sql).pop().flatten()
    }

    /// The first column of a query's rows, as text.
    pub fn texts(&self, sql: &str) -> Vec<Option<String>> {
        texts(&self.url, sql)
    }

    fn from_template(template: &str) -> Result<Self> {
        let name = format!("test_{}", uuid::Uuid::now_v7().simple());
        // Copying files costs half as much as writing each page to the log, which nothing reads here.
        administer(&format!(
            "CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"
        ))?;
        let url = cluster::url(&name)?;
        Ok(Self { name, url })
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if let Err(error) = administer(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)) {
            // The next start of the cluster begins with empty data, so leftovers are bounded.
            eprintln!("the database {} was not dropped: {error:?}", self.name);
        }
    }
}

fn connection(url: &str) -> PgConnection {
    PgConnection::establish(url).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs statements in the database of this connection string.
pub fn execute(url: &str, sql: &str) {
    connection(url)
        .batch_execute(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The first column of a query's rows, as text, from the database of this connection string.
pub fn texts(url: &str, sql: &str) -> Vec<Option<String>> {
    diesel::sql_query(format!(
        "SELECT rows.value::text AS value FROM ({sql}) AS rows (value)"
    ))
    .load::<TextRow>(&mut connection(url))
    .unwrap_or_else(|error| panic!("{sql}: {error}"))
    .into_iter()
    .map(|row| row.value)
    .collect()
}

#[derive(QueryableByName)]
struct TextRow {
    #[diesel(sql_type = sql_types::Nullable<sql_types::Text>)]
    value: Option<String>,
}

/// The name of the template, which is created once for each state of the migrations.
fn template() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| make_template().unwrap_or_else(|error| panic!("{error:?}")))
}

fn make_template() -> Result<String> {
    let name = format!("template_{:016x}", state_of_migrations()?);
    administer("SELECT")?; // starts the cluster, which creates the folder of the lock
    let lock_file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(cluster::folder().join("template.lock"))?;
    lock_file.lock()?;
    let mut connection = PgConnection::establish(&cluster::url("postgres")?)?;
    let rows: Vec<TextRow> = diesel::sql_query(format!(
        "SELECT datname::text AS value FROM pg_database WHERE datname = '{name}'"
    ))
    .load(&mut connection)?;
    if rows.is_empty() {
        // It is renamed when it is complete, so that a killed process leaves no half-migrated template.
        let unfinished = format!("{name}_unfinished");
        administer(&format!("DROP DATABASE IF EXISTS {unfinished} WITH (FORCE)"))?;
        administer(&format!("CREATE DATABASE {unfinished}"))?;
        assay_repository::migrate(&cluster::url(&unfinished)?)?;
        assay_repository::grant_roles(&cluster::url(&unfinished)?)?;
        for (login, group) in cluster::LOGINS {
            administer(&format!(
                "DO $$ BEGIN CREATE ROLE {login} LOGIN IN ROLE {group}; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
            ))?;
        }
        administer(&format!("ALTER DATABASE {unfinished} RENAME TO {name}"))?;
    }
    Ok(name)
}

/// A hash of every migration's text.
fn state_of_migrations() -> Result<u64> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let mut hasher = DefaultHasher::new();
    for entry in WalkDir::new(&folder).sort_by_file_name() {
        let entry = entry.context("the migrations can be read")?;
        if entry.file_type().is_file() {
            entry.file_name().hash(&mut hasher);
            fs::read(entry.path())?.hash(&mut hasher);
        }
    }
    Ok(hasher.finish())
}

/// Runs a statement in the cluster's own database.
fn administer(sql: &str) -> Result<()> {
    let url = cluster::url("postgres")?;
    PgConnection::establish(&url)
        .context("the test cluster is gone; run the tests again")?
        .batch_execute(sql)
        .with_context(|| sql.to_owned())
}

/// SQL that stores the results which a query returns, in blocks. The query's columns are project, start of the run, duration,
/// number of the run, test, start offset, browser, attempts, part and status, as in the view `result`.
pub fn insert_results(query: &str) -> String {
    format!(
        "INSERT INTO result_block (project_id, started_at, run_number, block, present, status, duration_ms, \
             long_duration_ms, start_step_ms, browser, attempts, part) \
         SELECT project_id, started_at, run_number, block, \
             CASE WHEN last >= tests THEN (SELECT string_agg(set_byte('\\x00', 0, ( \
                     SELECT coalesce(sum(1 << place % 8), 0)::integer FROM unnest(places) AS place WHERE place / 8 = byte)), \
                 ''::bytea ORDER BY byte) FROM generate_series(0, 63) AS byte) END, \
             status, duration_ms, long_duration_ms, start_step_ms, browser, attempts, part \
         FROM (SELECT project_id, started_at, run_number, test / 512 AS block, count(*) AS tests, max(test % 512) AS last, \
             array_agg(test % 512) AS places, \
             string_agg(set_byte('\\x00', 0, status), ''::bytea ORDER BY test) AS status, \
             array_agg(short_ms ORDER BY test) AS duration_ms, \
             CASE WHEN bool_or(long_ms IS NOT NULL) THEN array_agg(long_ms ORDER BY test) END AS long_duration_ms, \
             CASE WHEN bool_or(step IS NOT NULL) THEN array_agg(step ORDER BY test) END AS start_step_ms, \
             CASE WHEN bool_or(browser <> 0) THEN array_agg(browser ORDER BY test) END AS browser, \
             CASE WHEN bool_or(attempts <> 0) THEN array_agg(attempts ORDER BY test) END AS attempts, \
             CASE WHEN bool_or(part <> 0) THEN array_agg(part ORDER BY test) END AS part \
         FROM (SELECT *, (base - coalesce(lag(base) OVER (PARTITION BY project_id, started_at, run_number, test / 512, \
                 base IS NULL ORDER BY test), 0))::integer AS step \
             FROM (SELECT *, start_offset_ms::integer - coalesce(sum(short_ms) OVER (PARTITION BY project_id, started_at, run_number, \
                     test / 512 ORDER BY test ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW), 0) AS base \
                 FROM (SELECT *, CASE WHEN duration_ms < 32768 THEN duration_ms END::smallint AS short_ms, \
                     CASE WHEN duration_ms >= 32768 THEN duration_ms END::bigint AS long_ms \
                     FROM ({query}) AS result (project_id, started_at, duration_ms, run_number, test, start_offset_ms, browser, \
                         attempts, part, status)) AS measured) AS placed) AS stepped \
         GROUP BY project_id, started_at, run_number, test / 512) AS block;"
    )
}

/// SQL that changes stored results: the rest of an `UPDATE` of the view `result`, from `SET` on.
pub fn update_results(change: &str) -> String {
    format!(
        "CREATE TEMP TABLE changed AS SELECT * FROM result; UPDATE changed {change}; DELETE FROM result_block; {} DROP TABLE changed;",
        insert_results("SELECT * FROM changed")
    )
}
