//! Reads the environment. Only the definitions of flags name further variables.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use assay_domain::timestamp::Timestamp;
use assay_reports::ci::CiContext;

/// The maximum size of an event file, in bytes. The services write some hundred kilobytes.
const LARGEST_EVENT: u64 = 32 << 20;

/// The variable with the ingest key.
pub(crate) const INGEST_KEY: &str = "ASSAY_INGEST_KEY";
/// The variable with the read key.
pub(crate) const READ_KEY: &str = "ASSAY_READ_KEY";

/// The folder of Postgres' programs, if the variable is set.
pub(crate) fn pg_bin() -> Option<PathBuf> {
    raw_variable("PG_BIN").map(PathBuf::from)
}

/// The folder in which the program was started.
pub(crate) fn current_folder() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// The search path for programs.
pub(crate) fn path() -> Option<OsString> {
    raw_variable("PATH")
}

/// The context from CI's variables.
pub(crate) fn ci_context() -> CiContext {
    assay_reports::ci::detect(&variable, &event_file)
}

/// The start of the job according to CI.
pub(crate) fn job_started_at() -> Option<Timestamp> {
    variable("CI_JOB_STARTED_AT")?.parse().ok()
}

/// The ingest key. It has no flag because other users can read the command line of a process.
pub(crate) fn ingest_key() -> Option<String> {
    variable(INGEST_KEY)
}

/// The read key. It has no flag either.
pub(crate) fn read_key() -> Option<String> {
    variable(READ_KEY)
}

/// The file whose Markdown GitHub Actions shows with the job.
pub(crate) fn step_summary() -> Option<PathBuf> {
    variable("GITHUB_STEP_SUMMARY").map(PathBuf::from)
}

/// A variable's value; one that is not UTF-8 counts as unset.
fn variable(name: &str) -> Option<String> {
    raw_variable(name)?.into_string().ok()
}

/// A variable's value.
#[expect(
    clippy::disallowed_methods,
    reason = "a program reads the environment, here only"
)]
fn raw_variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The file with the event that started the CI run.
fn event_file(path: &str) -> Option<Vec<u8>> {
    match read_event(Path::new(path)) {
        Ok(bytes) => Some(bytes),
        Err(problem) => {
            log::warn!("CI's event file {path} was not read: {problem}; its values are unknown");
            None
        }
    }
}

/// Reads a regular file of bounded size. Other files, such as devices and named pipes, may have no end.
fn read_event(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LARGEST_EVENT + 1)
        .read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > LARGEST_EVENT) {
        return Err(io::Error::other(format!(
            "it exceeds {} MiB",
            LARGEST_EVENT >> 20
        )));
    }
    Ok(bytes)
}
