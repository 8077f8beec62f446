//! Runs the test command of a job.

use std::{
    ffi::OsString,
    io::ErrorKind,
    path::Path,
    process::{Command, ExitStatus, Stdio},
};

use anyhow::{Context as _, bail};
use assay_cli_remote::codehost::ReportTo;

use crate::{
    environment::{INGEST_KEY, READ_KEY},
    errors,
    forwarding::{self, Ended, Forwarding, Place},
};

/// Exit statuses of shells for a command that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// The end of a command.
pub(crate) enum CommandEnd {
    With(Ended),
    /// It could not be started; the reason is already printed.
    NotRun(u8),
}

/// Runs a command with further variables and this standard output.
pub(crate) fn run_command(
    command: &[OsString],
    variables: &[(&str, OsString)],
    reports_to: ReportTo,
    stdout: Stdio,
    place: Place,
) -> anyhow::Result<CommandEnd> {
    let Some((program, arguments)) = command.split_first() else {
        bail!("no command");
    };
    let name = assay_reports::shown_path(Path::new(program));
    // Handles signals before the start, so that none is lost.
    let mut forwarding = Forwarding::start().context("signals cannot be forwarded")?;
    let mut command = Command::new(program);
    // The tests need no key, and what they print or load could publish it. A token is removed if it is here to report.
    command
        .args(arguments)
        .stdout(stdout)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .env_remove(INGEST_KEY)
        .env_remove(READ_KEY);
    if !reports_to.is_none() {
        for token in assay_cli_remote::codehost::TOKENS {
            command.env_remove(token);
        }
    }
    Ok(match forwarding.run(&mut command, place) {
        Ok(ended) => CommandEnd::With(ended),
        Err(error) => {
            errors::print(&anyhow::anyhow!("{name}: {error}"));
            CommandEnd::NotRun(match error.kind() == ErrorKind::NotFound {
                true => NOT_FOUND,
                false => NOT_EXECUTABLE,
            })
        }
    })
}

/// The exit status as in a shell: 128 plus the number of a signal.
pub(crate) fn code_of(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| forwarding::signal_of(status).map(|signal| 128 + signal))
        .unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
