//! Opens the database: the named one, else the private cluster.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use assay_domain::store::StoreError;
use assay_local_postgres::{Cluster, ClusterState, Settings, inspect};
use assay_repository::{Database, PoolOptions};

use crate::{cli::Global, environment, upload::retry::Backoff};

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

/// Opens the database. Its schema must be current; a private database is migrated first.
pub(crate) fn open(global: &Global) -> anyhow::Result<OpenDatabase> {
    open_with(global, options())
}

/// How long an import retries, unless a flag says so, while no server answers. The address may be wrong, so it is short.
const WITHOUT_SERVER: Duration = Duration::from_secs(30);
/// How long an import retries, unless a flag says so, while all connections are in use or the database was lost.
const WITHOUT_CONNECTION: Duration = Duration::from_secs(5 * 60);

/// The same for an import. Waits this long for a free connection, and retries for this long when the database does not
/// answer or is lost.
pub(crate) fn open_for_import(global: &Global, retry_for: Option<Duration>) -> anyhow::Result<OpenDatabase> {
    let options = PoolOptions {
        reconnect_for: retry_for.unwrap_or(WITHOUT_CONNECTION),
        ..options()
    };
    let began = Instant::now();
    let mut backoff = Backoff::new(options.reconnect_for);
    let mut without_server = Backoff::new(retry_for.unwrap_or(WITHOUT_SERVER));
    loop {
        let error = match open_with(global, options) {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        let pause = if error.chain().any(assay_repository::is_transient) {
            backoff.pause(None)
        } else if error.chain().any(assay_repository::is_down) {
            without_server.pause(None)
        } else {
            None
        };
        let Some(pause) = pause else {
            return Err(error);
        };
        eprintln!(
            "assay: waiting for a connection to the database, {} s: {error:#}",
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
            bail!("the database's schema is not up to date; run `assay migrate`");
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
    let applied = assay_repository::migrate(&url).map_err(|error| match error {
        unreachable @ StoreError::Unreachable(_) => anyhow::Error::from(unreachable),
        failed @ (StoreError::Failed { .. } | StoreError::Corrupt { .. }) => anyhow::Error::from(failed)
            .context("a migration waits no more than 5 s for other work on the database; if that was it, run `assay migrate` again"),
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
            eprintln!(
                "assay: making a private database in {} (about 50 MB); --data-dir or ASSAY_DATA_DIR names another folder",
                dir.display()
            );
        }
        Cluster::start(&dir, &settings)
    };
    let cluster = start().with_context(|| format!("the private database in {}", dir.display()))?;
    Ok((cluster.url("assay"), Some(cluster)))
}
