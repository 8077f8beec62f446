//! Preparation before the server listens: opens, starts, migrates and fills the database.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use assay_http_ingest::CONNECTIONS_BESIDE_WRITERS;
use assay_local_postgres::{Cluster, ClusterState, Settings, inspect};
use assay_repository::{Database, PoolOptions};

use crate::demo::Demo;
use crate::settings::{Config, Place, Sizes};

use crate::clock;

/// How long a request waits for a connection. A lost database is tried again at least every half of this, so that the
/// server finds it soon after its return.
const CONNECTED_WITHIN: Duration = Duration::from_secs(2);
/// The time limit of a statement: as long as a request may take.
const STATEMENT_WITHIN: Duration = Duration::from_secs(10);
/// The time limit of a statement of an import, which waits for the lock of a busy project.
const STORED_WITHIN: Duration = Duration::from_secs(300);
/// How far the clocks of this machine and of Postgres may differ while reports are stored.
const CLOCKS_WITHIN: Duration = Duration::from_secs(120);

/// The server's dependencies, ready for use.
pub(crate) struct Resources {
    /// The database, with a current schema.
    pub(crate) database: Arc<Database>,
    /// The same database for reports, if the server takes them.
    pub(crate) ingest: Option<Arc<Database>>,
    /// The private cluster, if it is used. Drop it last, because the database needs it.
    pub(crate) cluster: Option<Cluster>,
    /// The demonstration, if it is requested.
    pub(crate) demo: Option<Demo>,
}

/// Opens the database and prepares it. Blocks.
pub(crate) fn start(config: &Config, sizes: Sizes) -> anyhow::Result<Resources> {
    let replica_url = config.replica_url();
    let (url, cluster) = match config.database_url() {
        Some(url) => (url.to_owned(), None),
        None => {
            let cluster = private_cluster(config)?;
            (cluster.url("assay"), Some(cluster))
        }
    };
    if cluster.is_some() {
        let applied = assay_repository::migrate(&url)?;
        if !applied.is_empty() {
            log::info!(
                "brought the schema of the private database up to date: {}",
                applied.join(", ")
            );
        }
    } else {
        let schema = assay_repository::compare_schema(&url).context("ASSAY_DATABASE_URL")?;
        if !schema.pending.is_empty() {
            bail!(
                "the database's schema is not up to date; run `assay-admin migrate` as the owner of its tables first"
            );
        }
        // A newer schema is accepted, so that the old version keeps serving while the next one is rolled out.
        if let Some(newest) = schema.unknown.last() {
            log::warn!(
                "the database's schema is newer than this program (it has {newest}); use the newer version soon"
            );
        }
    }
    let options = PoolOptions {
        size: sizes.pool,
        wait: CONNECTED_WITHIN,
        statement_timeout: STATEMENT_WITHIN,
        ..PoolOptions::default()
    };
    let database = Database::connect(&url, options)?;
    let database = Arc::new(match replica_url {
        Some(replica_url) => database.with_standbys(replica_url, options)?,
        None => database,
    });
    let ingest = match config.ingest_listen() {
        Place::Off => None,
        Place::WithApi | Place::At(_) => Some(Arc::new(ingest_database(config, &url)?)),
    };
    let demo = match &cluster {
        Some(cluster) if config.demo => Some(
            crate::demo::load(database.as_ref(), cluster.base(), clock::now())
                .context("the demonstration")?,
        ),
        Some(_) | None => None,
    };
    Ok(Resources {
        database,
        ingest,
        cluster,
        demo,
    })
}

/// The database for reports, with a connection for each thread that uses it.
fn ingest_database(config: &Config, url: &str) -> anyhow::Result<Database> {
    let url = config.ingest_database_url().unwrap_or(url);
    let options = PoolOptions {
        size: config.uploads.ingest_writers + u32::try_from(CONNECTIONS_BESIDE_WRITERS)?,
        wait: CONNECTED_WITHIN,
        statement_timeout: STORED_WITHIN,
        clocks_within: Some(CLOCKS_WITHIN),
        ..PoolOptions::default()
    };
    Database::connect(url, options).context("ASSAY_INGEST_DATABASE_URL")
}

/// Starts the private cluster.
fn private_cluster(config: &Config) -> anyhow::Result<Cluster> {
    let (dir, settings) = (config.data_dir(), cluster_settings());
    let start = || {
        if matches!(inspect(&dir, &settings)?, ClusterState::Nothing { .. }) {
            eprintln!(
                "assay-server: making a private database in {} (about 50 MB); --data-dir or ASSAY_DATA_DIR names another \
                 folder",
                dir.display()
            );
        }
        Cluster::start(&dir, &settings)
    };
    let cluster = start().with_context(|| format!("the private database in {}", dir.display()))?;
    log::info!(
        "{} the private database in {}",
        if cluster.started_here() {
            "started"
        } else {
            "found running"
        },
        cluster.base().display()
    );
    Ok(cluster)
}

/// Whether a job of CI runs the program.
#[expect(
    clippy::disallowed_methods,
    reason = "a program reads the environment, here only"
)]
pub(crate) fn is_in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// The settings of the private cluster, with the values of `PG_BIN` and `PATH`.
#[expect(
    clippy::disallowed_methods,
    reason = "a program reads the environment, here only"
)]
pub(crate) fn cluster_settings() -> Settings {
    Settings::new(
        std::env::var_os("PG_BIN").map(PathBuf::from),
        std::env::var_os("PATH"),
    )
}
