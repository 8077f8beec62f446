//! Finding the database: the one that is named, else the private cluster.

use std::time::Duration;

use anyhow::{Context as _, bail};
use assay_local_postgres::{Cluster, Settings};
use assay_repository::{Database, PoolOptions};

use crate::{cli::Global, environment};

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
    let (url, cluster) = locate(global)?;
    if cluster.is_some() {
        assay_repository::migrate(&url)?;
    } else if !assay_repository::pending(&url)?.is_empty() {
        bail!("the database's schema is not up to date; run `assay migrate`");
    }
    let database = Database::connect(&url, options())?;
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

/// Brings the schema up to date and says what was done.
pub(crate) fn migrate(global: &Global) -> anyhow::Result<Vec<String>> {
    let (url, _cluster) = locate(global)?;
    Ok(assay_repository::migrate(&url)?)
}

/// The address of the database, and the private cluster where that is it.
fn locate(global: &Global) -> anyhow::Result<(String, Option<Cluster>)> {
    if let Some(url) = global.database_url() {
        return Ok((url.to_owned(), None));
    }
    let cluster = Cluster::start(&global.data_dir, &private_settings())
        .with_context(|| format!("the private database in {}", global.data_dir.display()))?;
    Ok((cluster.url("assay"), Some(cluster)))
}
