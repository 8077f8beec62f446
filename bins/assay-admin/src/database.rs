//! Opens the database: the named one, else the private cluster.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use assay_cli_terminal::{message, retry::Backoff};
use assay_domain::{
    store::{Administration, StoreError},
    timestamp::Timestamp,
};
use assay_local_postgres::{Cluster, ClusterState, Settings, inspect};
use assay_repository::{Database, PoolOptions};

use crate::{clock, environment, global::Global};

/// The number of connections of a command.
const CONNECTIONS: u32 = 1;
/// The time limit of a statement. It is long because importing a large report and pruning are not interactive requests.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// An open database. Dropping it closes the connections, then leaves the private cluster.
pub(crate) struct OpenDatabase {
    /// The connection pool.
    pub(crate) database: Database,
    /// The private cluster, which runs until this value is dropped.
    _cluster: Option<Cluster>,
}

/// A command of administration: its output, its database and its time.
pub(crate) struct Admin<'a> {
    /// Whether it prints JSON.
    pub(crate) json: bool,
    /// The database.
    pub(crate) store: &'a dyn Administration,
    /// The time of the command.
    pub(crate) now: Timestamp,
}

impl OpenDatabase {
    /// The command that opened the database.
    pub(crate) fn admin(&self, global: &Global) -> Admin<'_> {
        Admin {
            json: global.json,
            store: &self.database,
            now: clock::now(),
        }
    }
}

/// How long a command retries its first connection.
#[derive(Debug, Clone, Copy)]
struct ConnectPatience {
    /// While no server answers. The address may be wrong, so it is short.
    without_server: Duration,
    /// While the server starts or stops, or all connections are in use.
    without_connection: Duration,
}

impl ConnectPatience {
    /// Of a command that a person may have typed with a wrong address.
    const OF_COMMANDS: Self = Self {
        without_server: Duration::ZERO,
        without_connection: Duration::from_secs(30),
    };

    /// Of an import in CI, unless a flag says so.
    const OF_IMPORTS: Self = Self {
        without_server: Duration::from_secs(30),
        without_connection: Duration::from_secs(5 * 60),
    };

    /// Of an import with `--retry-for`.
    const fn both(within: Duration) -> Self {
        Self {
            without_server: within,
            without_connection: within,
        }
    }
}

/// Opens the database. Its schema must be current; a private database is migrated first.
pub(crate) fn open(global: &Global) -> anyhow::Result<OpenDatabase> {
    until_connected(ConnectPatience::OF_COMMANDS, || open_with(global, options()))
}

/// The same for an import. Waits this long for a free connection, and retries for this long when the database does not
/// answer or is lost.
pub(crate) fn open_for_import(global: &Global, retry_for: Option<Duration>) -> anyhow::Result<OpenDatabase> {
    let patience = retry_for.map_or(ConnectPatience::OF_IMPORTS, ConnectPatience::both);
    let options = PoolOptions {
        reconnect_for: patience.without_connection,
        ..options()
    };
    until_connected(patience, || open_with(global, options))
}

/// Repeats an attempt that begins with a connection until it has one, fails for another reason, or the time is over.
/// Before each repetition it prints the reason on standard error.
fn until_connected<T>(
    patience: ConnectPatience,
    mut attempt: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let began = Instant::now();
    let mut without_connection = Backoff::new(patience.without_connection);
    let mut without_server = Backoff::new(patience.without_server);
    loop {
        let error = match attempt() {
            Ok(connected) => return Ok(connected),
            Err(error) => error,
        };
        let pause = if error.chain().any(assay_repository::is_transient) {
            without_connection.pause(None)
        } else if error.chain().any(assay_repository::is_down) {
            without_server.pause(None)
        } else {
            None
        };
        let Some(pause) = pause else {
            return Err(error);
        };
        message!(
            "waiting for a connection to the database, {} s: {error:#}",
            began.elapsed().as_secs()
        );
        thread::sleep(pause);
    }
}

fn open_with(global: &Global, options: PoolOptions) -> anyhow::Result<OpenDatabase> {
    let (url, cluster) = locate(global)?;
    if cluster.is_some() {
        assay_repository::migrate(&url)?;
    } else {
        let schema = assay_repository::compare_schema(&url)?;
        if !schema.pending.is_empty() {
            bail!("the database's schema is not up to date; run `assay-admin migrate`");
        }
        if let Some(newest) = schema.unknown.last() {
            log::warn!(
                "the database's schema is newer than this program (it has {newest}); use the newer version of assay"
            );
        }
    }
    let database = Database::connect(&url, options)?;
    Ok(OpenDatabase {
        database,
        _cluster: cluster,
    })
}

/// The connection options of a command.
pub(crate) fn options() -> PoolOptions {
    PoolOptions {
        size: CONNECTIONS,
        statement_timeout: PATIENCE,
        ..PoolOptions::default()
    }
}

/// The options of the private cluster.
pub(crate) fn private_settings() -> Settings {
    Settings::new(environment::pg_bin(), environment::path())
}

/// The result of a migration.
pub(crate) struct MigrationReport {
    /// The applied migrations.
    pub(crate) applied: Vec<String>,
    /// The tables that are distributed over several machines from now on.
    pub(crate) distributed: Vec<String>,
    /// The statement that a more privileged user has to run, so that the roles exist and have their rights.
    pub(crate) roles: Option<String>,
}

/// Migrates the schema, distributes its tables, and grants the roles. Returns the changes.
pub(crate) fn migrate(global: &Global) -> anyhow::Result<MigrationReport> {
    let (url, _cluster) = locate(global)?;
    // The schema is compared only to have had a connection: a migration itself is not repeated.
    until_connected(ConnectPatience::OF_COMMANDS, || {
        Ok(assay_repository::compare_schema(&url)?)
    })?;
    let applied = assay_repository::migrate(&url).map_err(|error| match error {
        unreachable @ StoreError::Unreachable(_) => anyhow::Error::from(unreachable),
        plain @ (StoreError::Exhausted { .. } | StoreError::NotPermitted { .. }) => anyhow::Error::from(plain),
        failed @ (StoreError::Failed { .. } | StoreError::Corrupt { .. }) => anyhow::Error::from(failed)
            .context("a migration waits no more than 5 s for other work on the database; if that was it, run `assay-admin migrate` again"),
    })?;
    let distributed = assay_repository::distribute(&url)?;
    let roles = assay_repository::grant_roles(&url)?;
    Ok(MigrationReport {
        applied,
        distributed,
        roles,
    })
}

/// The address of the database, and the private cluster if that is the database.
fn locate(global: &Global) -> anyhow::Result<(String, Option<Cluster>)> {
    if let Some(url) = global.database_url() {
        return Ok((url.to_owned(), None));
    }
    let (dir, settings) = (global.data_dir(), private_settings());
    let start = || {
        if matches!(inspect(&dir, &settings)?, ClusterState::Nothing { .. }) {
            message!(
                "making a private database in {} (about 50 MB); --data-dir or ASSAY_DATA_DIR names another folder",
                dir.display()
            );
        }
        Cluster::start(&dir, &settings)
    };
    let cluster = start().with_context(|| format!("the private database in {}", dir.display()))?;
    Ok((cluster.url("assay"), Some(cluster)))
}
