//! Reads the reports of an old run.

use assay_domain::timestamp::Timestamp;
use assay_ingest::{Arrival, Files, Flags, PreparedReport};
use assay_reports::{Clocks, Options, PartialReport, ReadError, SourceFile};

use super::PastReport;

/// A report whose time is further than this from its job's comes from a build cache.
const CACHED_AFTER_MS: i64 = 24 * 3_600_000;

/// The readable reports of a job.
#[derive(Debug)]
pub struct JobReport {
    /// The files that could be read.
    pub files: Vec<SourceFile>,
    /// The values to send with them.
    pub flags: Flags,
    /// The checkout's folder in the reports.
    pub root: Option<String>,
    /// What a server would store.
    pub prepared: PreparedReport,
    /// Why other files could not be read.
    pub unread: Vec<ReadError>,
}

/// Reads the reports of a job. A broken file among them is left out. None if they have neither a test nor an error.
///
/// # Errors
/// If nothing of it can be stored.
pub fn read(
    past: &PastReport,
    mut files: Vec<SourceFile>,
    now: Timestamp,
) -> anyhow::Result<Option<JobReport>> {
    let root = past.roots.iter().find(|root| names_root(&files, root)).cloned();
    let options = Options {
        root: root.as_deref(),
        clocks: Clocks {
            utc_offset_minutes: None,
            now: Some(now),
        },
        ..Options::default()
    };
    let PartialReport { report, unread } = assay_reports::read_readable(&files, &options)?;
    files.retain(|file| unread.iter().all(|error| error.file() != file.name));
    if report.tests.is_empty() && report.errors.is_empty() {
        return Ok(None);
    }
    // The start of the job counts where the report has none, or one of another day.
    let is_of_job = |start: Timestamp, job: Timestamp| start.since_ms(job).abs() <= CACHED_AFTER_MS;
    let started_at = match (report.started_at, past.started_at) {
        (Some(start), Some(job)) if is_of_job(start, job) => None,
        (Some(_), None) => None,
        (None, None) => past.modified_at,
        (Some(_) | None, job) => job,
    };
    let flags = Flags {
        started_at,
        ..past.flags.clone()
    };
    let arrival = Arrival {
        files: Files::of(&files),
        report,
        flags: &flags,
        ci: &past.ci,
        job_started_at: None,
    };
    let prepared = assay_ingest::prepare(arrival, now)?;
    Ok(Some(JobReport {
        files,
        flags,
        root,
        prepared,
        unread,
    }))
}

/// Whether a file names a path below a folder. JSON writes a backslash twice.
fn names_root(files: &[SourceFile], root: &str) -> bool {
    [root.to_owned(), root.replace('\\', "\\\\")].iter().any(|form| {
        let finder = memchr::memmem::Finder::new(form);
        files.iter().any(|file| finder.find(&file.bytes).is_some())
    })
}
