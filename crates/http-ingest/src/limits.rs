//! Limits of one upload and of all uploads together.

use std::time::Duration;

use assay_domain::rules::DailyLimits;

/// The limits of uploads. [`Limits::default`] returns the documented ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a body on the wire.
    pub wire_bytes: u64,
    /// Unpacked bytes of a body's files and fields.
    pub unpacked_bytes: u64,
    /// Files of an upload.
    pub files: usize,
    /// Bytes of temporary files of all uploads together.
    pub spool_bytes: u64,
    /// Bytes of memory for parsing of all uploads together.
    pub memory_bytes: u64,
    /// Time limit for waiting for memory.
    pub memory_within: Duration,
    /// Waiting uploads of one project.
    pub waiting: usize,
    /// Time limit for waiting for a turn.
    pub turn_within: Duration,
    /// Uploads that are stored in parallel, each into a different project.
    pub writers: usize,
    /// Time limit for receiving a body.
    pub body_within: Duration,
    /// What a key may store on a day.
    pub of_day: DailyLimits,
    /// What a key for pull requests only may store on a day.
    pub of_public_day: DailyLimits,
    /// The fewest bytes that must arrive in each interval of 10 seconds.
    pub least_bytes_per_interval: u64,
}

/// Default limit of the tests that a key for pull requests only stores on a day.
pub const PUBLIC_DAY_TESTS: u64 = 200_000;
/// Default limit of the MiB of report files that such a key stores on a day.
pub const PUBLIC_DAY_MIB: u64 = 256;

/// The interval in which a minimum of bytes must arrive.
pub(crate) const PACE_INTERVAL: Duration = Duration::from_secs(10);
/// Bytes of a gate's decision, on the wire and unpacked.
pub(crate) const DECISION_BYTES: u64 = 1 << 20;
/// Most fields of an upload. The pass that measures counts repeated ones; the one that reads rejects them.
pub(crate) const FIELDS: usize = 64;

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
            of_day: DailyLimits::default(),
            of_public_day: DailyLimits {
                tests: Some(PUBLIC_DAY_TESTS),
                bytes: Some(PUBLIC_DAY_MIB << 20),
            },
            least_bytes_per_interval: 100_000,
        }
    }
}
