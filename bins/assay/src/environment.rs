//! The one place that reads the environment beside what the flags' definitions name.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use assay_domain::timestamp::Timestamp;
use assay_reports::ci::CiContext;

/// Largest event file that is read, in bytes; the services write some hundred kilobytes.
const LARGEST_EVENT: u64 = 32 << 20;

/// The folder of Postgres' programs, where one is named.
pub(crate) fn pg_bin() -> Option<PathBuf> {
    std::env::var_os("PG_BIN").map(PathBuf::from)
}

/// The folder that the program was started in.
pub(crate) fn current_folder() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// Where programs are looked for.
pub(crate) fn path() -> Option<OsString> {
    std::env::var_os("PATH")
}

/// What CI's variables tell.
pub(crate) fn ci_context() -> CiContext {
    assay_reports::ci::detect(&variable, &event_file)
}

/// When CI says that the job started.
pub(crate) fn job_started_at() -> Option<Timestamp> {
    variable("CI_JOB_STARTED_AT")?.parse().ok()
}

/// The ingest key. No flag holds it: the command line of a process can be read by others.
pub(crate) fn ingest_key() -> Option<String> {
    variable("ASSAY_INGEST_KEY")
}

/// The read key. No flag holds it either.
pub(crate) fn read_key() -> Option<String> {
    variable("ASSAY_READ_KEY")
}

/// A variable's value; one that is no UTF-8 tells nothing.
/// The file whose Markdown GitHub Actions shows with the job.
pub(crate) fn step_summary() -> Option<PathBuf> {
    variable("GITHUB_STEP_SUMMARY").map(PathBuf::from)
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}

/// The file that describes the event a CI run was started by.
fn event_file(path: &str) -> Option<Vec<u8>> {
    match read_event(Path::new(path)) {
        Ok(bytes) => Some(bytes),
        Err(problem) => {
            log::warn!(
                "CI's event file {path} was not read: {problem}; the values that it holds are unknown"
            );
            None
        }
    }
}

/// Reads a regular file of bounded size: a device or a named pipe may have no end.
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
