//! Identifies the content of files and recordings.

mod encoding;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use assay_domain::{recording::Recording, timestamp::Timestamp};
use assay_reports::SourceFile;
use sha2::{Digest as _, Sha256};

/// The properties of an import's files that count after reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The run key made from their content.
    pub(crate) key: String,
    /// The time of the newest file's last change, if known.
    pub(crate) modified: Option<Timestamp>,
    /// The path of the only file, or the common folder of several with a final `/`. None for standard input.
    pub(crate) path: Option<String>,
    /// Their number.
    pub(crate) count: u32,
}

impl Files {
    /// Computes the properties of files.
    pub fn of(files: &[SourceFile]) -> Self {
        Self {
            key: key_of(files),
            modified: files.iter().filter_map(|file| file.modified).max(),
            path: common_path(files),
            count: u32::try_from(files.len()).unwrap_or(u32::MAX),
        }
    }
}

/// The path of the only file, or the common folder of several.
fn common_path(files: &[SourceFile]) -> Option<String> {
    let mut names = files.iter().map(|file| file.name.replace('\\', "/"));
    let first = names.next().filter(|name| name != "-")?;
    let mut rest = names.peekable();
    if rest.peek().is_none() {
        return Some(first);
    }
    let mut folder = first;
    for name in std::iter::once(folder.clone()).chain(rest) {
        while !(folder.is_empty() || folder.ends_with('/') && name.starts_with(&folder)) {
            let end = folder.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
            folder.truncate(end);
        }
    }
    Some(folder)
}

/// The run key of files without one: for a single file the SHA-256 that `sha256sum` prints, for several files that of
/// their sorted sums. The order of the files does not matter.
fn key_of(files: &[SourceFile]) -> String {
    let mut sums: Vec<[u8; 32]> = files
        .iter()
        .map(|file| Sha256::digest(&file.bytes).into())
        .collect();
    sums.sort_unstable();
    let sum = match sums.as_slice() {
        [one] => *one,
        several => Sha256::digest(several.concat()).into(),
    };
    let mut key = String::from("content:");
    for byte in sum {
        // Writing to a String cannot fail.
        let _ = write!(key, "{byte:02x}");
    }
    key
}

/// Computes the content hash of a recording and stores it in it.
///
/// A start from the clock or the file's time is left out: the same report imported again an hour later has the same
/// content.
pub(crate) fn digest(recording: &mut Recording, repeatable_start: bool) {
    let start = repeatable_start.then_some(recording.started_at);
    let duration = recording
        .finished_at
        .map(|end| end.since_ms(recording.started_at));
    let mut hash = Sha256::new();
    encoding::encode(recording, start, duration, &mut |bytes| hash.update(bytes));
    recording.content = hash.finalize().into();
}
