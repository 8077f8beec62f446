//! The state that the demonstration keeps between starts, in a file of its private database's folder. The file also
//! marks the database as one that the demonstration created.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use anyhow::Context as _;
use assay_domain::{id::KeyId, timestamp::Timestamp};
use serde::{Deserialize, Serialize};

const FILE: &str = "demo.json";

/// The content of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Note {
    /// The reference time of the samples.
    pub(crate) dated_at: Timestamp,
    /// The read key; none until it is created.
    pub(crate) key: Option<Key>,
    /// The first project's ingest key; none until it is created.
    #[serde(default)]
    pub(crate) ingest_key: Option<Key>,
}

/// A key with its text, so that a later start can print it again. The key gives access to sample data only.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Key {
    pub(crate) id: KeyId,
    pub(crate) text: String,
    pub(crate) expires_at: Timestamp,
}

impl Note {
    /// The note of a database that the demonstration is about to fill.
    pub(crate) const fn new(now: Timestamp) -> Self {
        Self {
            dated_at: now,
            key: None,
            ingest_key: None,
        }
    }

    /// The note in a folder, if there is one.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = folder.join(FILE);
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .with_context(|| format!("{} is not a note of the demonstration", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// Writes the note atomically, readable for its user only.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let (path, unfinished) = (folder.join(FILE), folder.join("demo.json.unfinished"));
        let write = || {
            let mut options = OpenOptions::new();
            options.create(true).write(true).truncate(true).mode(0o600);
            options.open(&unfinished)?.write_all(&serde_json::to_vec(self)?)?;
            fs::rename(&unfinished, &path)
        };
        write().with_context(|| format!("writing {}", path.display()))
    }
}
