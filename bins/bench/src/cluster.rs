//! The private Postgres that holds a data set.

use std::{
    fs,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use assay_local_postgres::{Cluster, Settings};
use diesel::{
    Connection as _, PgConnection, QueryableByName, RunQueryDsl as _, connection::SimpleConnection as _,
    sql_types,
};

/// The database of the data set. The cluster's own database is used for making and dropping it.
const DATABASE: &str = "bench";

/// A running cluster.
#[derive(Debug)]
pub(crate) struct Running {
    cluster: Cluster,
    settings: Settings,
    dir: PathBuf,
}

impl Running {
    /// Starts the cluster in this folder, and creates it if it is missing.
    ///
    /// It runs as it would for real data. An ephemeral cluster has too small caches and too old statistics for
    /// measurements, and begins empty at each start.
    pub(crate) fn start(dir: &Path, pg_bin: Option<&Path>) -> anyhow::Result<Self> {
        let settings = Settings::new(pg_bin.map(Path::to_path_buf), std::env::var_os("PATH"));
        let cluster = Cluster::start(dir, &settings)
            .with_context(|| format!("the private Postgres in {}", dir.display()))?;
        Ok(Self {
            cluster,
            settings,
            dir: dir.to_path_buf(),
        })
    }

    /// The connection string of the data set's database.
    pub(crate) fn url(&self) -> String {
        self.cluster.url(DATABASE)
    }

    /// The process id of Postgres.
    pub(crate) fn pid(&self) -> u32 {
        self.cluster.pid().unsigned_abs()
    }

    /// Makes the database anew, empty.
    pub(crate) fn recreate(&self) -> anyhow::Result<()> {
        let mut connection = PgConnection::establish(&self.cluster.url("postgres"))?;
        connection.batch_execute(&format!("DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)"))?;
        connection.batch_execute(&format!("CREATE DATABASE {DATABASE}"))?;
        Ok(())
    }

    /// A connection for statements of our own.
    pub(crate) fn connection(&self) -> anyhow::Result<PgConnection> {
        PgConnection::establish(&self.url()).context("connecting to the data set")
    }

    /// Restarts Postgres with empty caches. With `system_too`, empties the system's caches too, if this program may
    /// do that. Returns whether they were emptied.
    pub(crate) fn restart_cold(self, system_too: bool) -> anyhow::Result<(Self, bool)> {
        let Self {
            cluster,
            settings,
            dir,
        } = self;
        cluster.stop()?;
        // Dirty pages cannot be dropped.
        let synced = system_too && Command::new("sync").status().is_ok_and(|status| status.success());
        let dropped = synced && fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
        Ok((Self::start(&dir, settings.pg_bin.as_deref())?, dropped))
    }

    /// How long Postgres' log is now.
    pub(crate) fn log_length(&self) -> anyhow::Result<u64> {
        Ok(fs::metadata(self.log()).context("reading Postgres' log")?.len())
    }

    /// The part of Postgres' log after this length.
    pub(crate) fn log_since(&self, length: u64) -> anyhow::Result<String> {
        let mut file = fs::File::open(self.log()).context("reading Postgres' log")?;
        file.seek(SeekFrom::Start(length))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn log(&self) -> PathBuf {
        self.cluster.base().join("postgres.log")
    }
}

/// A connection string with settings of its sessions.
pub(crate) fn with_settings(url: &str, settings: &[(&str, &str)]) -> String {
    let options: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("-c%20{name}%3D{value}"))
        .collect();
    format!("{url}&options={}", options.join("%20"))
}

#[derive(QueryableByName)]
struct NumberRow {
    #[diesel(sql_type = sql_types::BigInt)]
    value: i64,
}

#[derive(QueryableByName)]
struct TextRow {
    #[diesel(sql_type = sql_types::Text)]
    value: String,
}

/// The number that a statement selects as `value`.
pub(crate) fn number(connection: &mut PgConnection, sql: &str) -> anyhow::Result<u64> {
    let row: NumberRow = diesel::sql_query(sql)
        .get_result(connection)
        .with_context(|| sql.to_owned())?;
    Ok(u64::try_from(row.value).unwrap_or(0))
}

/// The text that a statement selects as `value`.
pub(crate) fn text(connection: &mut PgConnection, sql: &str) -> anyhow::Result<String> {
    let row: TextRow = diesel::sql_query(sql)
        .get_result(connection)
        .with_context(|| sql.to_owned())?;
    Ok(row.value)
}

/// The bytes of the data set's database.
pub(crate) fn size(connection: &mut PgConnection) -> anyhow::Result<u64> {
    number(connection, "SELECT pg_database_size(current_database()) AS value")
}

/// The version of Postgres.
pub(crate) fn version(connection: &mut PgConnection) -> anyhow::Result<String> {
    text(connection, "SELECT current_setting('server_version') AS value")
}

/// A table of the schema, its partitions together.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub(crate) struct TableSize {
    #[diesel(sql_type = sql_types::Text)]
    pub(crate) name: String,
    /// With indexes and out-of-line storage.
    #[diesel(sql_type = sql_types::BigInt)]
    pub(crate) bytes: i64,
    #[diesel(sql_type = sql_types::BigInt)]
    pub(crate) indexes: i64,
    #[diesel(sql_type = sql_types::BigInt)]
    pub(crate) partitions: i64,
}

/// The tables, largest first.
pub(crate) fn tables(connection: &mut PgConnection) -> anyhow::Result<Vec<TableSize>> {
    diesel::sql_query(
        "SELECT coalesce(pg_partition_root(c.oid), c.oid)::regclass::text AS name, \
             sum(pg_total_relation_size(c.oid))::bigint AS bytes, sum(pg_indexes_size(c.oid))::bigint AS indexes, \
             count(*)::bigint AS partitions \
         FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' \
         GROUP BY 1 ORDER BY 2 DESC, 1",
    )
    .load(connection)
    .context("measuring the tables")
}
