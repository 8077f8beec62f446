//! The command line as a whole. Each group's arguments are defined beside its command.

use assay_cli_terminal::{completions::CompletionsArgs, man::ManArgs};
use clap::{Parser, Subcommand};

use crate::{
    commands::{
        doctor::DoctorArgs, export::ExportArgs, import::ImportArgs, key::KeyCommand, org::OrgCommand,
        project::ProjectCommand, prune::PruneArgs, rebuild::RebuildArgs, refingerprint::RefingerprintArgs,
        setup::SetupArgs, trust::TrustCommand, uploads::UploadsArgs,
    },
    global::Global,
};

const EXAMPLES: &str = "\
From nothing to a CI job, with questions on a terminal:
  assay-admin setup

A first report:
  assay-admin import --project storefront test-results/

In scripts, --json prints one object on standard output:
  ORG=$(assay-admin org create \"Example Shop\" --json | jq -r .id)

To check an installation:
  assay-admin doctor

`assay-admin COMMAND --help` shows a command's options and examples. `assay` sends reports from CI and needs no database. \
Exit status: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.";

/// Administer the database: organizations, projects, keys, imports, checks
///
/// `assay-server` answers questions about the results over HTTP. This program fills and administers the same database.
#[derive(Debug, Parser)]
#[command(name = "assay-admin", version, propagate_version = true, after_help = EXAMPLES, max_term_width = 80)]
pub(crate) struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub(crate) global: Global,
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Setup(SetupArgs),
    /// Bring the database's schema up to date
    ///
    /// Safe to run from several places at once: one process migrates and the others wait. Every command migrates a
    /// private database by itself.
    #[command(after_help = "\
Examples:
  assay-admin migrate
  assay-admin migrate --database-url postgresql://assay:secret@db.example.org/assay")]
    Migrate,
    /// Organizations and their plans
    #[command(subcommand)]
    Org(OrgCommand),
    /// Projects and their configuration
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Read keys of organizations and ingest keys of projects
    #[command(subcommand)]
    Key(KeyCommand),
    /// Uploads by tokens of CI services, without a secret
    #[command(subcommand)]
    Trust(TrustCommand),
    Import(Box<ImportArgs>),
    Uploads(UploadsArgs),
    Export(ExportArgs),
    Doctor(DoctorArgs),
    Prune(PruneArgs),
    Rebuild(RebuildArgs),
    Refingerprint(RefingerprintArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use assay_cli_terminal::Program;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        assay_testkit::check_command_line::<Cli>(Program::AssayAdmin);
    }
}
