//! CI's description of the run: variables, and the file with the event that started it.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use assay_domain::timestamp::Timestamp;
use assay_ingest::ci::CiContext;

/// The maximum size of an event file, in bytes. The services write some hundred kilobytes.
const LARGEST_EVENT: u64 = 32 << 20;

/// Returns the value of an environment variable; none if it is unset or not UTF-8.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The context from CI's variables.
pub fn context(variables: Variables<'_>) -> CiContext {
    assay_ingest::ci::detect(variables, &event_file)
}

/// The start of the job according to CI.
pub(crate) fn job_started_at(variables: Variables<'_>) -> Option<Timestamp> {
    variables("CI_JOB_STARTED_AT")?.parse().ok()
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
