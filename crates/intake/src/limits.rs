//! How much an upload, and all uploads together, may take.

use std::time::Duration;

/// The limits of uploads. [`Limits::default`] has those of the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a body on the wire.
    pub wire_bytes: u64,
    /// Bytes of a body's files and fields after unpacking.
    pub unpacked_bytes: u64,
    /// Files of an upload.
    pub files: usize,
    /// Bytes of temporary files, those of all uploads together.
    pub spool_bytes: u64,
    /// Bytes of memory for parsing, that of all uploads together.
    pub memory_bytes: u64,
    /// How long an upload waits for memory.
    pub memory_within: Duration,
    /// Uploads of one project that wait for their turn.
    pub waiting: usize,
    /// How long an upload waits for its turn.
    pub turn_within: Duration,
    /// Projects that are written at the same time.
    pub writers: usize,
    /// How long a body may take in all.
    pub body_within: Duration,
    /// How many bytes must arrive in each `PACE`.
    pub bytes_a_pace: u64,
}

/// The time in which a part of a body must arrive.
pub(crate) const PACE: Duration = Duration::from_secs(10);
/// How many times its unpacked size an upload needs while it is parsed: its files, and four times as much to read them.
pub(crate) const PARSING_FACTOR: u64 = 5;
/// Characters of a field.
pub(crate) const FIELD_CHARACTERS: usize = 2_000;
/// Characters of the field `message`, as for `assay import`.
pub(crate) const MESSAGE_CHARACTERS: usize = assay_ingest::values::LONGEST_MESSAGE;
/// Bytes of the field `ci`.
pub(crate) const CI_BYTES: usize = 64 << 10;
/// Bytes of the field `knownFiles`.
pub(crate) const KNOWN_FILES_BYTES: usize = 4 << 20;
/// Fields of an upload: more than there are names.
pub(crate) const FIELDS: usize = 64;
/// Characters of a file's name.
pub(crate) const NAME_CHARACTERS: usize = 300;

impl Default for Limits {
    fn default() -> Self {
        Self {
            wire_bytes: 64 << 20,
            unpacked_bytes: 256 << 20,
            files: 2_000,
            spool_bytes: 2 << 30,
            memory_bytes: 1 << 30,
            memory_within: Duration::from_secs(30),
            waiting: 200,
            turn_within: Duration::from_secs(60),
            writers: 4,
            body_within: Duration::from_secs(600),
            bytes_a_pace: 100_000,
        }
    }
}
