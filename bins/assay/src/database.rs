//! Finding the database: the one that is named, else the private cluster.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use assay_domain::store::StoreError;
use assay_local_postgres::{Cluster, Found, Settings, look};
use assay_repository::{Database, PoolOptions};

use crate::{cli::Global, environment, upload::retry::Backoff};

/// How many connections a command needs.
const CONNECTIONS: u32 = 1;
/// How long one statement may take; importing a large report, or pruning, is no request that someone waits for.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// An open database. Dropping it closes the connections, then leaves the private cluster.
pub(crate) struct Opened {
    /// The database.
    pub(crate) database: Database,
    /// The private cluster, kept running as long as it is used.
    _cluster: Option<Cluster>,
}

/// Opens the database, whose schema must be up to date; a private one is brought up to date on the way.
pub(crate) fn open(global: &Global) -> anyhow::Result<Opened> {
    open_with(global, options())
}

/// The same for an import. Where all connections are in use, one is waited for, and a database that is lost meanwhile is
/// tried again, each for this long.
pub(crate) fn open_for_import(global: &Global, retry_for: Duration) -> anyhow::Result<Opened> {
    let options = PoolOptions {
        reconnect_for: retry_for,
        ..options()
    };
    let (began, mut backoff) = (Instant::now(), Backoff::new(retry_for));
    loop {
        let error = match open_with(global, options) {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        let passes = error.chain().any(assay_repository::is_passing);
        let Some(pause) = passes.then(|| backoff.pause(None)).flatten() else {
            return Err(error);
        };
        eprintln!(
            "assay: waiting for a connection to the database, {} s",
            began.elapsed().as_secs()
        );
        thread::sleep(pause);
    }
}

fn open_with(global: &Global, options: PoolOptions) -> anyhow::Result<Opened> {
    let (url, cluster) = locate(global)?;
    if cluster.is_some() {
        assay_repository::migrate(&url)?;
    } else {
        let standing = assay_repository::schema_standing(&url)?;
        if !standing.pending.is_empty() {
            bail!("the database's schema is not up to date; run `assay migrate`");
        }
        if let Some(newest) = standing.unknown.last() {
            log::warn!(
                "the database's schema is newer than this program (it has {newest}); use the newer version of assay"
            );
        }
    }
    let database = Database::connect(&url, options)?;
    Ok(Opened {
        database,
        _cluster: cluster,
    })
}

/// How a command connects.
pub(crate) fn options() -> PoolOptions {
    PoolOptions {
        size: CONNECTIONS,
        statement_timeout: PATIENCE,
        ..PoolOptions::default()
    }
}

/// How the private cluster is run.
pub(crate) fn private_settings() -> Settings {
    Settings::new(environment::pg_bin(), environment::path())
}

/// What migrating came to.
pub(crate) struct Migrated {
    /// The migrations that were applied.
    pub(crate) applied: Vec<String>,
    /// What somebody with more rights is to run, so that the roles for server and importer exist.
    pub(crate) roles: Option<String>,
}

/// Brings the schema up to date, grants the roles, and says what was done.
pub(crate) fn migrate(global: &Global) -> anyhow::Result<Migrated> {
    let (url, _cluster) = locate(global)?;
    let applied = assay_repository::migrate(&url).map_err(|error| match error {
        unreachable @ StoreError::Unreachable(_) => anyhow::Error::from(unreachable),
        failed @ (StoreError::Failed { .. } | StoreError::Corrupt { .. }) => anyhow::Error::from(failed)
            .context("a migration waits no more than 5 s for other work on the database; if that was it, run `assay migrate` again"),
    })?;
    let roles = assay_repository::grant_roles(&url)?;
    Ok(Migrated { applied, roles })
}

/// The address of the database, and the private cluster where that is it.
fn locate(global: &Global) -> anyhow::Result<(String, Option<Cluster>)> {
    if let Some(url) = global.database_url() {
        return Ok((url.to_owned(), None));
    }
    let (dir, settings) = (global.data_dir(), private_settings());
    let start = || {
        if matches!(look(&dir, &settings)?, Found::Nothing { .. }) {
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
