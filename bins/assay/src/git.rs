//! Commands of git.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};

/// The standard output of a git command in a folder.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .context("git cannot be run")?;
    ensure!(
        output.status.success(),
        "git {}: {}",
        arguments.first().copied().unwrap_or_default(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
