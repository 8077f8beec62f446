//! The private Postgres of a data set.

use std::path::Path;

use anyhow::Context as _;
use assay_local_postgres::{Cluster, Settings};
use diesel::{
    Connection as _, PgConnection, QueryableByName, RunQueryDsl as _, connection::SimpleConnection as _,
    sql_types,
};

/// The database of the data set. The cluster's own database is used for creating and dropping it.
const DATABASE: &str = "bench";

/// A running cluster.
#[derive(Debug)]
pub(crate) struct Running {
    cluster: Cluster,
}

impl Running {
    /// Starts the cluster in this folder, and creates it if it is missing.
    ///
    /// It has the settings for real data. An ephemeral cluster has too small caches and too old statistics for
    /// measurements, and is empty at each start.
    #[expect(
        clippy::disallowed_methods,
        reason = "a program reads the environment, here only"
    )]
    pub(crate) fn start(dir: &Path, pg_bin: Option<&Path>) -> anyhow::Result<Self> {
        let settings = Settings::new(pg_bin.map(Path::to_path_buf), std::env::var_os("PATH"));
        let cluster = Cluster::start(dir, &settings)
            .with_context(|| format!("the private Postgres in {}", dir.display()))?;
        Ok(Self { cluster })
    }

    /// The connection string of the data set's database.
    pub(crate) fn url(&self) -> String {
        self.cluster.url(DATABASE)
    }

    /// Creates the database again, empty.
    pub(crate) fn recreate(&self) -> anyhow::Result<()> {
        let mut connection = PgConnection::establish(&self.cluster.url("postgres"))?;
        connection.batch_execute(&format!("DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)"))?;
        connection.batch_execute(&format!("CREATE DATABASE {DATABASE}"))?;
        Ok(())
    }

    /// A connection for the program's own statements.
    pub(crate) fn connection(&self) -> anyhow::Result<PgConnection> {
        PgConnection::establish(&self.url()).context("connecting to the data set")
    }
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

/// The number that a statement returns as `value`.
pub(crate) fn number(connection: &mut PgConnection, sql: &str) -> anyhow::Result<u64> {
    let row: NumberRow = diesel::sql_query(sql)
        .get_result(connection)
        .with_context(|| sql.to_owned())?;
    Ok(u64::try_from(row.value).unwrap_or(0))
}

/// The bytes of the data set's database.
pub(crate) fn size(connection: &mut PgConnection) -> anyhow::Result<u64> {
    number(connection, "SELECT pg_database_size(current_database()) AS value")
}

/// The version of Postgres.
pub(crate) fn version(connection: &mut PgConnection) -> anyhow::Result<String> {
    let row: TextRow =
        diesel::sql_query("SELECT current_setting('server_version') AS value").get_result(connection)?;
    Ok(row.value)
}
