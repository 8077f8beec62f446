//! The result of a measurement: its tables, its machine and its data.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use assay_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{dataset::Summary, machine::Machine, table::Table};

/// The outcome of one subcommand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Section {
    /// The subcommand.
    pub(crate) name: String,
    /// The whole command line.
    pub(crate) command: String,
    pub(crate) at: Timestamp,
    pub(crate) machine: Machine,
    pub(crate) postgres: String,
    pub(crate) data: Summary,
    pub(crate) tables: Vec<Table>,
}

impl Section {
    /// The table of this id.
    pub(crate) fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }

    /// Saves it in the data folder, for `report`, and prints it.
    pub(crate) fn publish(&self, dir: &Path, json: bool) -> anyhow::Result<()> {
        let path = place(dir, &self.name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("writing {}", path.display()))?;
        let mut out = io::stdout().lock();
        if json {
            writeln!(out, "{}", serde_json::to_string(self)?)?;
        } else {
            writeln!(out, "{}", self.told())?;
            for table in &self.tables {
                write!(out, "{}", table.terminal())?;
            }
        }
        Ok(out.flush()?)
    }

    /// The machine and the data, in a few sentences.
    pub(crate) fn told(&self) -> String {
        format!(
            "{}; PostgreSQL {}; {}. Measured {}.",
            self.machine.told(),
            self.postgres,
            self.data.told(),
            self.at
        )
    }

    /// The section that an earlier `publish` saved, if any.
    pub(crate) fn kept(dir: &Path, name: &str) -> anyhow::Result<Option<Self>> {
        let path = place(dir, name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(
                serde_json::from_slice(&bytes).with_context(|| format!("reading {}", path.display()))?,
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }
}

fn place(dir: &Path, name: &str) -> PathBuf {
    dir.join("results").join(format!("{name}.json"))
}
