//! Archives of organizations: a folder with a compressed file of rows for each table, and a manifest.
//!
//! The manifest is written last and renamed into place, so that a folder without one is never taken for an archive.

mod read;
mod write;

use std::{
    io,
    path::{Path, PathBuf},
};

use assay_domain::{store::ArchiveContents, timestamp::Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub(crate) use read::ArchiveReader;
pub(crate) use write::{ArchiveWriter, create};

/// The name of the manifest.
const MANIFEST: &str = "manifest.json";
/// Its name until the export is complete.
const UNFINISHED: &str = "manifest.json.unfinished";
/// The name of the format in a manifest.
const FORMAT: &str = "assay-organization";
/// The version of the format that this program writes and reads.
const VERSION: u32 = 1;

/// The first fields of a manifest, the same in every version of the format.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: String,
    version: u32,
    /// The version of the program that wrote it.
    assay: String,
}

/// What an archive holds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(flatten)]
    head: Head,
    exported_at: Timestamp,
    #[serde(flatten)]
    contents: ArchiveContents,
    files: Vec<ArchivedFile>,
}

/// A file of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ArchivedFile {
    file: String,
    bytes: u64,
    /// In hexadecimal.
    sha256: String,
}

/// The name of a table's file.
fn file_of(table: &str) -> String {
    format!("{table}.copy.zst")
}

/// A digest in hexadecimal.
fn hexadecimal(hasher: Sha256) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in hasher.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// An error with the file that it is about.
fn about(path: &Path, doing: &str, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("could not {doing} {}: {error}", path.display()),
    )
}

/// A reader whose errors name its file.
struct NamedFile<R> {
    path: PathBuf,
    inner: R,
}

impl<R: io::Read> io::Read for NamedFile<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner
            .read(buffer)
            .map_err(|error| about(&self.path, "read", &error))
    }
}
