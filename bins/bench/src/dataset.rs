//! A generated data set: its place and its content.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use assay_domain::{
    id::{OrganizationId, ProjectId},
    plan::Plan,
    project::{Caller, Project},
    store::Store,
    timestamp::{DAY_MS, Timestamp},
};
use assay_repository::{Database, PoolOptions};
use serde::{Deserialize, Serialize};

use crate::{clock, cluster::Running, generate::Role, number::float, progress::step, shape::Shape};

/// The description of a data set, as in `dataset.json` of the data folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Dataset {
    pub(crate) shape: Shape,
    /// The end of the history: when it was made.
    pub(crate) until: Timestamp,
    pub(crate) organization: OrganizationId,
    /// The read key. The database is reachable from this machine alone.
    pub(crate) key: String,
    pub(crate) projects: Vec<Made>,
    pub(crate) seconds: f64,
    /// Bytes of the database.
    pub(crate) bytes: u64,
    /// Whether a month of it was pruned since.
    pub(crate) pruned: bool,
}

/// A project of the data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Made {
    pub(crate) id: ProjectId,
    pub(crate) role: Role,
    pub(crate) tests: u64,
    pub(crate) runs: u64,
    pub(crate) results: u64,
    /// Attempts with an error.
    pub(crate) errors: u64,
    /// Results in the engine's window.
    pub(crate) window: u64,
}

/// How large it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) projects: u64,
    pub(crate) runs: u64,
    pub(crate) results: u64,
    pub(crate) errors: u64,
    /// Results of the large project in the engine's window.
    pub(crate) window: u64,
    pub(crate) bytes: u64,
}

impl Summary {
    /// Counts another one in.
    pub(crate) fn add(&mut self, other: &Self) {
        self.projects += other.projects;
        self.runs += other.runs;
        self.results += other.results;
        self.errors += other.errors;
        self.window += other.window;
        self.bytes += other.bytes;
    }

    /// In a clause.
    pub(crate) fn told(&self) -> String {
        let many = |count: u64| crate::table::shown(float(count));
        format!(
            "{} results of {} runs in {} projects, {} of them in the large project's last 14 days, {} failed attempts, \
             {} MB",
            many(self.results),
            many(self.runs),
            self.projects,
            many(self.window),
            many(self.errors),
            many(self.bytes / 1_000_000),
        )
    }
}

impl Dataset {
    pub(crate) fn summary(&self) -> Summary {
        let sum = |of: fn(&Made) -> u64| self.projects.iter().map(of).sum();
        Summary {
            projects: u64::try_from(self.projects.len()).unwrap_or(u64::MAX),
            runs: sum(|made| made.runs),
            results: sum(|made| made.results),
            errors: sum(|made| made.errors),
            window: self.of(Role::Large).map_or(0, |made| made.window),
            bytes: self.bytes,
        }
    }

    /// The first project of a role.
    pub(crate) fn of(&self, role: Role) -> Option<&Made> {
        self.projects.iter().find(|made| made.role == role)
    }

    /// The large project.
    pub(crate) fn large(&self) -> anyhow::Result<&Made> {
        self.of(Role::Large).context("the data set has no large project")
    }

    /// The data set in this folder, if any.
    pub(crate) fn load(dir: &Path) -> anyhow::Result<Option<Self>> {
        let path = manifest(dir);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).with_context(|| {
                format!(
                    "{} is not of this version; run generate --replace",
                    path.display()
                )
            })?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    pub(crate) fn store(&self, dir: &Path) -> anyhow::Result<()> {
        let path = manifest(dir);
        fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("writing {}", path.display()))
    }

    /// Removes the description of the data set in this folder, before it changes.
    pub(crate) fn forget(dir: &Path) -> anyhow::Result<()> {
        match fs::remove_file(manifest(dir)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).context("replacing the data set")
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// A project as a request would look it up.
    pub(crate) fn project(
        &self,
        store: &dyn Store,
        id: ProjectId,
        now: Timestamp,
    ) -> anyhow::Result<Project> {
        let caller = Caller {
            organization: self.organization,
            plan: Plan::Pro,
        };
        store
            .project(&caller, id, now)?
            .context("the data set's project is gone; run generate --replace")
    }
}

fn manifest(dir: &Path) -> PathBuf {
    dir.join("dataset.json")
}

/// A data set whose database runs.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) dir: PathBuf,
    pub(crate) data: Dataset,
    pub(crate) running: Running,
}

impl Opened {
    /// Starts the database of the data set in this folder.
    pub(crate) fn open(dir: &Path, pg_bin: Option<&Path>) -> anyhow::Result<Self> {
        let Some(data) = Dataset::load(dir)? else {
            bail!(
                "there is no data set in {}; run `assay-bench generate` first",
                dir.display()
            );
        };
        if data.pruned {
            step("a month of this data set was pruned: figures are of the rest");
        }
        let age = clock::now().since_ms(data.until) / DAY_MS;
        if age > 1 {
            step(&format!(
                "this data set ends {age} days ago: windows that end now hold less of it"
            ));
        }
        let running = Running::start(dir, pg_bin)?;
        let pending = assay_repository::pending(&running.url())?;
        if !pending.is_empty() {
            bail!("the data set was made with an older schema; run `assay-bench generate --replace`");
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            data,
            running,
        })
    }

    /// The store over it, with this number of connections.
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
