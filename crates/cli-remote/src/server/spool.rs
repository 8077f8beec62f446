//! Uploads that could not be sent, kept in a folder until they can be.
//!
//! An entry is a file: a line of JSON with the boundary of its parts and the identifier of its key, then the body. It
//! is written under another name and then renamed, so that a killed program leaves no incomplete entry.

use std::{
    fs::{self, File, TryLockError},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use assay_domain::timestamp::Timestamp;
use assay_reports::shown_path;
use serde::{Deserialize, Serialize};

use crate::server::body::Body;

/// The end of an entry's name.
const ENTRY: &str = "upload";
/// The end of the name of an entry that the server refused.
const REFUSED: &str = "refused";
/// The maximum size of a spool, in bytes.
const MOST_BYTES: u64 = 1 << 30;
/// The maximum length of an entry's first line, in bytes.
const LONGEST_HEAD: u64 = 4_096;

/// A folder of uploads.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
}

/// The first line of an entry.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    boundary: String,
    /// The identifier of the key that the upload was to be sent with. Older versions did not write it.
    key: Option<String>,
}

/// What an upload is sent with.
#[derive(Debug, Clone, Copy)]
pub struct SentWith<'a> {
    /// The identifier of the job's key.
    pub key: &'a str,
    /// Whether uploads of other keys are sent with this key, too.
    pub any_key: bool,
}

/// The result of opening an entry.
pub enum Claim {
    /// No other process sends it.
    Entry(Entry),
    /// It is sent with another key.
    OfAnotherKey,
    /// Another process sends it or has sent it.
    Taken,
}

/// An upload that waits. No other process sends it while this value exists.
pub struct Entry {
    path: PathBuf,
    /// The body.
    pub body: Body,
    /// Whether it was to be sent with this job's key.
    pub is_of_this_key: bool,
    /// Holds the lock.
    _file: File,
}

impl Spool {
    /// Opens the spool in this folder. Creates the folder if it is missing.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let context = || format!("--spool {}", shown_path(folder));
        fs::create_dir_all(folder).with_context(context)?;
        ensure!(folder.is_dir(), "--spool {}: not a folder", shown_path(folder));
        Ok(Self {
            folder: folder.to_path_buf(),
        })
    }

    /// The folder, for messages.
    pub fn name(&self) -> String {
        shown_path(&self.folder)
    }

    /// The paths of the entries, the oldest first.
    pub fn entries(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.folder).with_context(|| format!("--spool {}", self.name()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == ENTRY) {
                paths.push(path);
            }
        }
        // Names begin with the time.
        paths.sort_unstable();
        Ok(paths)
    }

    /// Locks and reads an entry that may be sent.
    pub fn claim(&self, path: &Path, with: SentWith<'_>) -> anyhow::Result<Claim> {
        let name = shown_path(path);
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Claim::Taken),
            Err(error) => return Err(error).context(name),
        };
        let mut reader = BufReader::new(&file);
        let mut head = String::new();
        reader
            .by_ref()
            .take(LONGEST_HEAD)
            .read_line(&mut head)
            .with_context(|| name.clone())?;
        let head: Head = serde_json::from_str(&head)
            .with_context(|| format!("{name}: not an upload of this program; remove the file"))?;
        // An entry of another key is not locked, because the lock would hide it from a job with its key.
        let is_of_this_key = head.key.as_deref() == Some(with.key);
        if !is_of_this_key && !with.any_key {
            return Ok(Claim::OfAnotherKey);
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Claim::Taken),
            Err(TryLockError::Error(error)) => return Err(error).context(name),
        }
        // Another process may have sent and removed it between the opening and the lock.
        if !path.exists() {
            return Ok(Claim::Taken);
        }
        let mut bytes = Vec::new();
        reader.take(MOST_BYTES).read_to_end(&mut bytes).context(name)?;
        Ok(Claim::Entry(Entry {
            path: path.to_path_buf(),
            body: Body {
                boundary: head.boundary,
                bytes,
            },
            is_of_this_key,
            _file: file,
        }))
    }

    /// Writes a body to the spool, to be sent with the key of this identifier.
    pub fn add(&self, body: &Body, key: &str, now: Timestamp) -> anyhow::Result<()> {
        let mut used = 0;
        let context = || format!("--spool {}", self.name());
        for entry in fs::read_dir(&self.folder).with_context(context)? {
            used += entry
                .with_context(context)?
                .metadata()
                .map_or(0, |metadata| metadata.len());
        }
        ensure!(
            used.saturating_add(u64::try_from(body.bytes.len())?) <= MOST_BYTES,
            "--spool {}: it would exceed {} MiB; remove its .{REFUSED} files after reading them",
            self.name(),
            MOST_BYTES >> 20
        );
        let mut file = tempfile::Builder::new()
            .prefix(".upload-")
            .tempfile_in(&self.folder)
            .with_context(context)?;
        let head = Head {
            boundary: body.boundary.clone(),
            key: Some(key.to_owned()),
        };
        writeln!(file, "{}", serde_json::to_string(&head)?).with_context(context)?;
        file.write_all(&body.bytes).with_context(context)?;
        file.as_file().sync_all().with_context(context)?;
        let name = format!("{:015}-{}.{ENTRY}", now.unix_ms(), body.boundary);
        file.persist(self.folder.join(name)).with_context(context)?;
        Ok(())
    }
}

impl Entry {
    /// Its name for messages.
    pub fn name(&self) -> String {
        shown_path(&self.path)
    }

    /// Removes the entry after it was stored.
    pub fn remove(&self) -> anyhow::Result<()> {
        fs::remove_file(&self.path).with_context(|| self.name())
    }

    /// Renames the entry so that it is not sent again, because the server refused it permanently.
    pub fn set_aside(&self) -> anyhow::Result<String> {
        let path = self.path.with_extension(REFUSED);
        fs::rename(&self.path, &path).with_context(|| self.name())?;
        Ok(shown_path(&path))
    }
}
