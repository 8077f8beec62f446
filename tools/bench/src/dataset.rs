//! A generated data set: its folder and its content.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use assay_domain::{
    id::ProjectId,
    timestamp::{DAY_MS, Timestamp},
};
use assay_repository::{Database, PoolOptions};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::{clock, cluster::Running, number::float, shape::Shape, table::shown};

/// The description of a data set, as in `dataset.json` of the data folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Dataset {
    pub(crate) shape: Shape,
    /// The end of the history, which is the time of its generation.
    pub(crate) until: Timestamp,
    /// The read key. The database is reachable only from this machine.
    pub(crate) key: String,
    pub(crate) projects: Vec<DatasetProject>,
    pub(crate) seconds: f64,
    /// Bytes of the database.
    pub(crate) bytes: u64,
}

/// The role of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Role {
    /// Most of the data.
    Large,
    /// As many tests, each of which fails sometimes.
    Storm,
    /// One of the others.
    Small,
}

/// A project of the data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DatasetProject {
    pub(crate) id: ProjectId,
    pub(crate) role: Role,
    pub(crate) tests: u64,
    pub(crate) runs: u64,
    pub(crate) results: u64,
}

impl Dataset {
    /// The sum of a number over all projects.
    pub(crate) fn sum(&self, of: fn(&DatasetProject) -> u64) -> f64 {
        float(self.projects.iter().map(of).sum::<u64>())
    }

    /// Its size as text.
    pub(crate) fn description(&self) -> String {
        format!(
            "{} results of {} runs in {} projects, {} MB",
            shown(self.sum(|made| made.results)),
            shown(self.sum(|made| made.runs)),
            self.projects.len(),
            shown(float(self.bytes / 1_000_000)),
        )
    }

    /// The first project of a role.
    pub(crate) fn of(&self, role: Role) -> Option<&DatasetProject> {
        self.projects.iter().find(|made| made.role == role)
    }

    /// The large project.
    pub(crate) fn large(&self) -> anyhow::Result<&DatasetProject> {
        self.of(Role::Large).context("the data set has no large project")
    }

    /// The data set in this folder, if any.
    pub(crate) fn load(dir: &Path) -> anyhow::Result<Option<Self>> {
        let path = manifest(dir);
        if !path.exists() {
            return Ok(None);
        }
        let data = serde_json::from_slice(&fs::read(&path)?);
        data.map(Some)
            .with_context(|| format!("{} has the format of another version; remove it", path.display()))
    }

    pub(crate) fn store(&self, dir: &Path) -> anyhow::Result<()> {
        let path = manifest(dir);
        fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("writing {}", path.display()))
    }
}

fn manifest(dir: &Path) -> PathBuf {
    dir.join("dataset.json")
}

/// A data set with a running database.
#[derive(Debug)]
pub(crate) struct OpenDataset {
    pub(crate) dir: PathBuf,
    pub(crate) data: Dataset,
    pub(crate) running: Running,
}

impl OpenDataset {
    /// Starts the database of the data set in this folder.
    pub(crate) fn open(dir: &Path, pg_bin: Option<&Path>) -> anyhow::Result<Self> {
        let Some(data) = Dataset::load(dir)? else {
            bail!(
                "there is no data set in {}; run `assay-bench generate` first",
                dir.display()
            );
        };
        let age = clock::now().since_ms(data.until) / DAY_MS;
        if age > 1 {
            eprintln!("assay-bench: this data set ends {age} days ago: windows that end now hold less of it");
        }
        let running = Running::start(dir, pg_bin)?;
        let pending = assay_repository::pending(&running.url())?;
        if !pending.is_empty() {
            bail!(
                "the data set was made with an older schema; remove {}",
                dir.display()
            );
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            data,
            running,
        })
    }

    /// The store, with this number of connections.
    pub(crate) fn store(&self, connections: u32) -> anyhow::Result<Database> {
        connect(&self.running.url(), connections)
    }
}

/// A store for long work.
pub(crate) fn connect(url: &str, connections: u32) -> anyhow::Result<Database> {
    let options = PoolOptions {
        size: connections,
        statement_timeout: std::time::Duration::from_secs(3600),
        ..PoolOptions::default()
    };
    Ok(Database::connect(url, options)?)
}
