//! Which reports of a history are stored, so that an import that was interrupted goes on where it stopped.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use assay_reports::shown_path;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// The stored reports of one history in one project.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    content: Content,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    /// The history and the project.
    of: String,
    /// The ids of the stored reports.
    stored: BTreeSet<String>,
}

impl State {
    /// Reads the state of a history, `of`. Without a file, nothing is stored.
    pub fn open(path: &Path, of: &str) -> anyhow::Result<Self> {
        let name = shown_path(path);
        let empty = || Content {
            of: of.to_owned(),
            ..Content::default()
        };
        let content = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => empty(),
            Err(error) => return Err(error).context(format!("the state {name}")),
            Ok(file) => {
                ensure!(
                    file.is_file() && file.len() <= LARGEST,
                    "{name} is no state of a backfill"
                );
                let text = fs::read_to_string(path).with_context(|| format!("the state {name}"))?;
                serde_json::from_str(&text).with_context(|| {
                    format!("{name} is no state of a backfill; remove it to begin again, which stores nothing twice")
                })?
            }
        };
        ensure!(
            content.of == of,
            "{name} is the state of another backfill ({}); name another file with --state",
            assay_reports::shown_name(&content.of)
        );
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).with_context(|| format!("the state {name}"))?;
        }
        Ok(Self {
            path: path.to_owned(),
            content,
        })
    }

    /// Whether a report is stored.
    pub fn has(&self, id: &str) -> bool {
        self.content.stored.contains(id)
    }

    /// The number of stored reports.
    pub fn len(&self) -> usize {
        self.content.stored.len()
    }

    /// Whether no report is stored.
    pub fn is_empty(&self) -> bool {
        self.content.stored.is_empty()
    }

    /// Remembers that a report is stored. The file is replaced as a whole.
    pub fn add(&mut self, id: &str) -> anyhow::Result<()> {
        self.content.stored.insert(id.to_owned());
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let written = NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).and_then(|mut file| {
            serde_json::to_writer(&mut file, &self.content).map_err(io::Error::from)?;
            file.persist(&self.path).map_err(|error| error.error)
        });
        written
            .map(drop)
            .with_context(|| format!("the state {} cannot be written", shown_path(&self.path)))
    }
}
