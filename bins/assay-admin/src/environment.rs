//! Reads the environment. Only the definitions of flags name further variables.

use std::{ffi::OsString, path::PathBuf};

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

/// A variable's value; one that is not UTF-8 counts as unset.
pub(crate) fn variable(name: &str) -> Option<String> {
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
