//! Reads the reports of an old run.

use assay_domain::{recording::RunContext, timestamp::Timestamp};
use assay_ingest::{Arrival, Files, Flags, PreparedReport, TooLarge};
use assay_reports::{Clocks, Options, ReadError, Report, SourceFile, ci::CiContext};

/// Reports that tell of another day than their job come from a build cache.
const CACHED_AFTER_MS: i64 = 24 * 3_600_000;

/// What is known of a run beside its CI's variables.
#[derive(Debug, Default)]
pub struct Known {
    /// The run key, suite, branch and other values that are given like flags.
    pub run_key: Option<String>,
    /// Its context, like flags.
    pub context: RunContext,
    /// The start of its job.
    pub started_at: Option<Timestamp>,
    /// The time for a report without one, if no start of a job is known.
    pub modified_at: Option<Timestamp>,
    /// Folders that the checkout may have had.
    pub roots: Vec<String>,
}

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
    pub unread: Vec<String>,
}

/// Why a job has no report that can be read.
#[derive(Debug, thiserror::Error)]
pub enum NoReport {
    /// None of its files can be read.
    #[error("{0}")]
    Unreadable(#[from] ReadError),
    /// A limit of a report.
    #[error("{0}")]
    TooLarge(#[from] TooLarge),
    /// It has no results.
    #[error("it has neither a test nor an error")]
    Empty,
}

/// Reads the reports of a job. A broken file among them is left out.
///
/// # Errors
/// [`NoReport`] if nothing of it can be stored.
pub fn read(
    mut files: Vec<SourceFile>,
    ci: &CiContext,
    known: Known,
    now: Timestamp,
) -> Result<JobReport, NoReport> {
    let root = known.roots.into_iter().find(|root| names_root(&files, root));
    let options = Options {
        format: None,
        root: root.as_deref(),
        known_files: None,
        clocks: Clocks {
            utc_offset_minutes: None,
            now: Some(now),
        },
        keeps_written_names: false,
        retries_as_attempts: false,
        are_new: false,
        skips_cached: false,
        memory: None,
        unpacked_bytes: None,
    };
    let mut unread = Vec::new();
    let report = match assay_reports::read(&files, &options) {
        Ok(report) => report,
        Err(error) => {
            files.retain(
                |file| match assay_reports::read(std::slice::from_ref(file), &options) {
                    Ok(_) => true,
                    Err(error) => {
                        unread.push(error.to_string());
                        false
                    }
                },
            );
            if files.is_empty() {
                return Err(error.into());
            }
            assay_reports::read(&files, &options)?
        }
    };
    if report.tests.is_empty() && report.errors.is_empty() {
        return Err(NoReport::Empty);
    }
    let flags = Flags {
        run_key: known.run_key,
        context: known.context,
        started_at: started_at(&report, known.started_at, known.modified_at),
        ..Flags::default()
    };
    let arrival = Arrival {
        files: Files::of(&files),
        report,
        flags: &flags,
        ci,
        job_started_at: None,
    };
    let prepared = assay_ingest::prepare(arrival, now)?;
    Ok(JobReport {
        files,
        flags,
        root,
        prepared,
        unread,
    })
}

/// The start of the job, where the report has none or one of another day.
fn started_at(report: &Report, job: Option<Timestamp>, modified_at: Option<Timestamp>) -> Option<Timestamp> {
    let is_of_job = |start: Timestamp, job: Timestamp| start.since_ms(job).abs() <= CACHED_AFTER_MS;
    match (report.started_at, job) {
        (Some(start), Some(job)) if is_of_job(start, job) => None,
        (Some(_), None) => None,
        (None, None) => modified_at,
        (Some(_) | None, job) => job,
    }
}

/// Whether a file names a path below a folder.
fn names_root(files: &[SourceFile], root: &str) -> bool {
    // JSON writes a backslash twice.
    let forms = [root.to_owned(), root.replace('\\', "\\\\")];
    let finders: Vec<_> = forms
        .iter()
        .map(|form| memchr::memmem::Finder::new(form))
        .collect();
    files
        .iter()
        .any(|file| finders.iter().any(|finder| finder.find(&file.bytes).is_some()))
}
