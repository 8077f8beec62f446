//! Commands of git.

use std::{
    io,
    path::Path,
    process::{Command, Stdio},
};

use assay_domain::timestamp::Timestamp;

/// A command of git failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("git cannot be run")]
    NotRun(#[source] io::Error),
    /// It ended with another status than 0.
    #[error("git {command}: {message}")]
    Failed {
        /// The subcommand.
        command: String,
        /// Its standard error.
        message: String,
    },
}

/// The standard output of a git command in a folder.
pub fn git(folder: &Path, arguments: &[&str]) -> Result<String, GitError> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(GitError::NotRun)?;
    if !output.status.success() {
        return Err(GitError::Failed {
            command: arguments.first().copied().unwrap_or_default().to_owned(),
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The time of the checked-out commit of a folder, which all machines of a build have in common; none without one.
pub fn commit_time(folder: &Path) -> Option<Timestamp> {
    let shown = git(folder, &["show", "--no-patch", "--format=%ct", "HEAD"]).ok()?;
    let seconds = shown.trim().parse::<i64>().ok()?;
    Some(Timestamp::from_unix_ms(seconds.saturating_mul(1_000)))
}
