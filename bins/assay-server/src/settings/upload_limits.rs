//! The limits of uploads as settings.

use std::time::Duration;

use assay_access::limit::DEFAULT_UPLOAD_LIMIT;
use assay_domain::rules::DailyLimits;
use assay_http_ingest::{Limits, PUBLIC_DAY_MIB, PUBLIC_DAY_TESTS};
use clap::{Args, value_parser};

/// The limits of uploads.
#[derive(Debug, Clone, Args)]
pub(crate) struct UploadLimits {
    /// Uploads a minute and ingest key; 0 if a proxy in front sets the limit
    #[arg(long, value_name = "N", env = "ASSAY_INGEST_RATE_LIMIT", default_value_t = DEFAULT_UPLOAD_LIMIT)]
    pub(crate) ingest_rate_limit: u32,

    /// Size of an upload on the wire, in MiB
    #[arg(long, value_name = "MIB", env = "ASSAY_INGEST_BODY_MIB", default_value_t = 64, value_parser = value_parser!(u32).range(1..=1_024))]
    ingest_body_mib: u32,

    /// Size of an upload after unpacking, in MiB
    #[arg(long, value_name = "MIB", env = "ASSAY_INGEST_UNPACKED_MIB", default_value_t = 256, value_parser = value_parser!(u32).range(1..=1_024))]
    ingest_unpacked_mib: u32,

    /// Report files of an upload
    #[arg(long, value_name = "N", env = "ASSAY_INGEST_FILES", default_value_t = 2_000, value_parser = value_parser!(u32).range(1..=50_000))]
    ingest_files: u32,

    /// Disk space for temporary files of uploads under way, in MiB; one ingest key may hold half of it
    #[arg(long, value_name = "MIB", env = "ASSAY_INGEST_SPOOL_MIB", default_value_t = 2_048, value_parser = value_parser!(u32).range(1..=1_048_576))]
    ingest_spool_mib: u32,

    /// Memory for reading uploads, in MiB; one ingest key may hold half of it
    #[arg(long, value_name = "MIB", env = "ASSAY_INGEST_MEMORY_MIB", default_value_t = 1_024, value_parser = value_parser!(u32).range(16..=1_048_576))]
    ingest_memory_mib: u32,

    /// Uploads of one project that may wait for their turn; one ingest key may have half of them
    #[arg(long, value_name = "N", env = "ASSAY_INGEST_WAITING", default_value_t = 200, value_parser = value_parser!(u32).range(1..=10_000))]
    ingest_waiting: u32,

    /// How long an upload waits for its turn, in seconds
    #[arg(long, value_name = "S", env = "ASSAY_INGEST_TURN_WITHIN", default_value_t = 60, value_parser = value_parser!(u32).range(1..=600))]
    ingest_turn_within: u32,

    /// Tests that an ingest key may store on a day, each attempt counted; 0 for no limit
    #[arg(long, value_name = "N", env = "ASSAY_INGEST_DAY_TESTS", default_value_t = 0)]
    ingest_day_tests: u64,

    /// MiB of report files, unpacked, that an ingest key may store on a day; 0 for no limit
    #[arg(long, value_name = "MIB", env = "ASSAY_INGEST_DAY_MIB", default_value_t = 0)]
    ingest_day_mib: u64,

    /// Tests that a key for pull requests only may store on a day; 0 for no limit
    #[arg(long, value_name = "N", env = "ASSAY_INGEST_PUBLIC_DAY_TESTS", default_value_t = PUBLIC_DAY_TESTS)]
    ingest_public_day_tests: u64,

    /// MiB of report files, unpacked, that a key for pull requests only may store on a day; 0 for no limit
    #[arg(long, value_name = "MIB", env = "ASSAY_INGEST_PUBLIC_DAY_MIB", default_value_t = PUBLIC_DAY_MIB)]
    ingest_public_day_mib: u64,

    /// Projects that are written at the same time
    #[arg(long, value_name = "N", env = "ASSAY_INGEST_WRITERS", default_value_t = 4, value_parser = value_parser!(u32).range(1..=64))]
    pub(crate) ingest_writers: u32,
}

impl UploadLimits {
    /// The limits for the ingest listener.
    pub(crate) fn limits(&self) -> anyhow::Result<Limits> {
        let bytes = |mib: u32| u64::from(mib) << 20;
        Ok(Limits {
            wire_bytes: bytes(self.ingest_body_mib),
            unpacked_bytes: bytes(self.ingest_unpacked_mib),
            files: usize::try_from(self.ingest_files)?,
            spool_bytes: bytes(self.ingest_spool_mib),
            memory_bytes: bytes(self.ingest_memory_mib),
            waiting: usize::try_from(self.ingest_waiting)?,
            turn_within: Duration::from_secs(u64::from(self.ingest_turn_within)),
            writers: usize::try_from(self.ingest_writers)?,
            of_day: daily(self.ingest_day_tests, self.ingest_day_mib),
            of_public_day: daily(self.ingest_public_day_tests, self.ingest_public_day_mib),
            ..Limits::default()
        })
    }
}

/// The limits of a day, where 0 is none.
fn daily(tests: u64, mib: u64) -> DailyLimits {
    DailyLimits {
        tests: (tests > 0).then_some(tests),
        bytes: (mib > 0).then_some(mib.saturating_mul(1 << 20)),
    }
}
