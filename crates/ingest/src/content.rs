//! What tells one content from another.

use std::fmt::{self, Write as _};

use assay_domain::{recording::Recording, timestamp::Timestamp};
use assay_reports::SourceFile;
use sha2::{Digest as _, Sha256};

/// What counts of an import's files once they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The run key that their content makes.
    pub(crate) key: String,
    /// When the newest was last written, where known.
    pub(crate) modified: Option<Timestamp>,
}

impl Files {
    /// Sums up files.
    pub fn of(files: &[SourceFile]) -> Self {
        Self {
            key: key_of(files),
            modified: files.iter().filter_map(|file| file.modified).max(),
        }
    }
}

/// The run key of files without one: for a single file the SHA-256 that `sha256sum` prints, for several that of
/// their sorted sums, so that the order in which they are named does not matter.
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

/// The sum of everything that a store would keep of a recording.
///
/// A start that was taken from the clock or the file's time counts for nothing: the same report imported again an
/// hour later is still the same.
pub(crate) fn sum_of(recording: &Recording, repeatable_start: bool) -> [u8; 32] {
    let mut sum = Summing(Sha256::new());
    // The derived debug form spells out every field. A compiler that spelled it otherwise would only make a
    // repeated import replace equal content.
    let start = repeatable_start.then_some(recording.started_at);
    let duration = recording
        .finished_at
        .map(|end| end.since_ms(recording.started_at));
    let _ = write!(
        sum,
        "{:?}",
        (
            &recording.run_key,
            &recording.shard,
            &recording.context,
            start,
            duration,
            &recording.state,
            &recording.report_errors,
            &recording.tests,
        )
    );
    sum.0.finalize().into()
}

/// Sums up what is written to it.
struct Summing(Sha256);

impl fmt::Write for Summing {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &str) -> SourceFile {
        SourceFile {
            name: "r.xml".into(),
            bytes: bytes.into(),
            modified: None,
        }
    }

    #[test]
    fn one_file_has_the_sum_that_the_shell_prints() {
        assert_eq!(
            key_of(&[file("abc")]),
            "content:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn the_order_of_files_does_not_matter() {
        assert_eq!(key_of(&[file("a"), file("b")]), key_of(&[file("b"), file("a")]));
        assert_ne!(key_of(&[file("a"), file("b")]), key_of(&[file("ab")]));
    }
}
