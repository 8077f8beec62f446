//! Options of every command.

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
