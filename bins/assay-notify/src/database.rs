//! Opens the database: the named one, else the private cluster.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use assay_local_postgres::{Cluster, Settings};
use assay_repository::{Database, PoolOptions};

use crate::cli::Cli;

/// The database, and what it needs. Dropping it closes the connections, then leaves the private cluster.
pub(crate) struct OpenDatabase {
    pub(crate) database: Database,
    /// The connection string.
    pub(crate) url: String,
    _cluster: Option<Cluster>,
}

/// Opens the database, whose schema must be current.
pub(crate) fn open(cli: &Cli) -> anyhow::Result<OpenDatabase> {
    let (url, cluster) = match cli.database_url() {
        Some(url) => (url.to_owned(), None),
        None => {
            let folder = private_folder(cli);
            let cluster = Cluster::start(&folder, &private_settings())
                .with_context(|| format!("the private database in {}", folder.display()))?;
            (cluster.url("assay"), Some(cluster))
        }
    };
    if cluster.is_some() {
        assay_repository::migrate(&url)?;
    } else if !assay_repository::compare_schema(&url)?.pending.is_empty() {
        bail!(
            "the database's schema is not up to date; run `assay-admin migrate` as the owner of its tables first"
        );
    }
    let options = PoolOptions {
        size: 2,
        ..PoolOptions::default()
    };
    Ok(OpenDatabase {
        database: Database::connect(&url, options)?,
        url,
        _cluster: cluster,
    })
}

fn private_folder(cli: &Cli) -> PathBuf {
    match &cli.data_dir {
        Some(folder) if !folder.as_os_str().is_empty() => folder.clone(),
        Some(_) | None => {
            let current = std::env::current_dir().unwrap_or_default();
            assay_local_postgres::nearest(".assay", &current)
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a program reads its environment, here only"
)]
fn private_settings() -> Settings {
    Settings::new(
        std::env::var_os("PG_BIN").map(PathBuf::from),
        std::env::var_os("PATH"),
    )
}
