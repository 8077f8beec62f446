//! The one place that reads the environment beside what the flags' definitions name.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use assay_domain::timestamp::Timestamp;
use assay_reports::ci::CiContext;

/// Largest file that describes an event, in bytes; the services write some hundred kilobytes.
const LARGEST_EVENT: u64 = 32 << 20;

/// The folder of Postgres' programs, where one is named.
pub(crate) fn pg_bin() -> Option<PathBuf> {
    std::env::var_os("PG_BIN").map(PathBuf::from)
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

/// A variable's value; one that is no UTF-8 tells nothing.
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}

/// The file that describes the event a CI run was started by.
fn event_file(path: &str) -> Option<Vec<u8>> {
    let path = Path::new(path);
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() <= LARGEST_EVENT => {}
        Ok(_) | Err(_) => {
            log::warn!(
                "CI's event file {} cannot be read; what it would tell is unknown",
                path.display()
            );
            return None;
        }
    }
    fs::read(path)
        .map_err(|error| log::warn!("CI's event file {} cannot be read: {error}", path.display()))
        .ok()
}
