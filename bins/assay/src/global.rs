//! What several commands have: the options, and the exit status of a check.

use std::process::ExitCode;

use assay_cli_terminal::progress::{self, Progress};
use clap::Args;

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print one JSON object on standard output instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl Global {
    /// Shows the progress on standard error.
    pub(crate) fn progress(&self) -> &'static dyn Progress {
        progress::terminal(self.json)
    }
}

/// The exit status of a check that found these problems.
pub(crate) const fn found_none(problems: &[String]) -> ExitCode {
    match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
