//! The command line.

use std::path::PathBuf;

use clap::Parser;

const EXAMPLES: &str = "\
Try a target, then see what would be sent:
  assay-notify --config notify.toml --test team
  assay-notify --config notify.toml --dry-run

Run it as a service:
  export ASSAY_DATABASE_URL=postgresql://assay_notify:…@db.internal/assay
  export ASSAY_PUBLIC_URL=https://assay.example.org
  assay-notify --config /etc/assay/notify.toml

From cron, every five minutes:
  */5 * * * *  assay-notify --once

docs/notifications.md describes the file.";

/// Send messages about failing, flaky and repaired tests to chat, webhooks and mail
///
/// Reads the targets from a file that only its owner can read. Reads what judgements of tests wrote to the database, and
/// sends it until each target has taken it. Only one process works on a database at a time; a second one waits.
#[derive(Debug, Parser)]
#[command(name = "assay-notify", version, after_help = EXAMPLES, max_term_width = 80)]
#[command(mut_args(|arg| arg.hide_env_values(true)))]
pub(crate) struct Cli {
    /// The file with the targets
    #[arg(
        long,
        value_name = "FILE",
        env = "ASSAY_NOTIFY_CONFIG",
        default_value = "/etc/assay/notify.toml"
    )]
    pub(crate) config: PathBuf,

    /// The Postgres database; without it, the private one in the data directory
    #[arg(long, value_name = "URL", env = "ASSAY_DATABASE_URL")]
    database_url: Option<String>,

    /// The directory of the private database; by default .assay, in this folder or the nearest one above
    #[arg(long, value_name = "DIR", env = "ASSAY_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// The address of the pages, to which messages link
    #[arg(long, value_name = "URL", env = "ASSAY_PUBLIC_URL")]
    public_url: Option<String>,

    /// Print what would be sent, and send nothing
    #[arg(long, conflicts_with_all = ["test", "once"])]
    pub(crate) dry_run: bool,

    /// Send one message to this target, and end
    #[arg(long, value_name = "TARGET", conflicts_with = "once")]
    pub(crate) test: Option<String>,

    /// Send what is due, and end
    #[arg(long)]
    pub(crate) once: bool,

    /// Seconds between two looks at the database
    #[arg(
        long,
        value_name = "SECONDS",
        env = "ASSAY_NOTIFY_EVERY",
        default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=3_600)
    )]
    pub(crate) every: u64,

    /// Log filter (`env_logger` syntax)
    #[arg(long, value_name = "FILTER", env = "RUST_LOG", default_value = "info")]
    pub(crate) log: String,
}

impl Cli {
    /// The named database; an empty variable counts as unset.
    pub(crate) fn database_url(&self) -> Option<&str> {
        self.database_url.as_deref().filter(|url| !url.trim().is_empty())
    }

    /// The address of the pages; an empty variable counts as unset.
    pub(crate) fn public_url(&self) -> Option<&str> {
        self.public_url
            .as_deref()
            .map(str::trim)
            .filter(|url| !url.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
