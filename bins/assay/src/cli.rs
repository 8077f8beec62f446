//! The command line as a whole. Each group's arguments are defined beside its command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::{
    commands::{
        analyze::AnalyzeArgs, completions::CompletionsArgs, doctor::DoctorArgs, gate::GateArgs,
        import::ImportArgs, key::KeyCommand, man::ManArgs, mcp::McpArgs, org::OrgCommand,
        project::ProjectCommand, prune::PruneArgs, quarantine::QuarantineArgs, rebuild::RebuildArgs,
        refingerprint::RefingerprintArgs, run::RunArgs, upload::UploadArgs, uploads::UploadsArgs,
    },
    environment,
};

const EXAMPLES: &str = "\
A first report, from nothing:
  assay migrate
  assay org create \"Example Shop\"
  assay project create --org \"Example Shop\" storefront
  assay import --project storefront test-results/
  assay key create --org \"Example Shop\" --days 90

From CI, to a server:
  assay run --report results.json -- npx playwright test

Without a database:
  assay analyze test-results/

In scripts, --json prints one object on standard output:
  ORG=$(assay org create \"Example Shop\" --json | jq -r .id)

To check an installation:
  assay doctor

`assay COMMAND --help` shows a command's options and examples. Exit status: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.";

/// Store and judge CI test results: organizations, projects, keys, reports
///
/// `assay-server` answers questions about the results over HTTP. This program fills and administers the same database.
#[derive(Debug, Parser)]
#[command(name = "assay", version, propagate_version = true, after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub(crate) global: Global,
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print one JSON object on standard output instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The Postgres database; without it, a private one in the data directory is started when needed
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "ASSAY_DATABASE_URL",
        hide_env_values = true
    )]
    database_url: Option<String>,

    /// The directory of the private database; by default .assay, in this folder or the nearest one above
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "ASSAY_DATA_DIR",
        hide_env_values = true
    )]
    data_dir: Option<PathBuf>,
}

impl Global {
    /// The named database; an empty variable counts as unset.
    pub(crate) fn database_url(&self) -> Option<&str> {
        self.database_url.as_deref().filter(|url| !url.trim().is_empty())
    }

    /// The folder of the private database; an empty variable counts as unset.
    pub(crate) fn data_dir(&self) -> PathBuf {
        match &self.data_dir {
            Some(dir) if !dir.as_os_str().is_empty() => dir.clone(),
            Some(_) | None => assay_local_postgres::nearest(".assay", &environment::current_folder()),
        }
    }
}

/// The command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring the database's schema up to date
    ///
    /// Safe to run from several places at once: one process migrates and the others wait. Every command migrates a
    /// private database by itself.
    #[command(after_help = "\
Examples:
  assay migrate
  assay migrate --database-url postgresql://assay:secret@db.example.org/assay")]
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
    Run(Box<RunArgs>),
    Gate(Box<GateArgs>),
    Upload(Box<UploadArgs>),
    Uploads(UploadsArgs),
    Import(Box<ImportArgs>),
    Analyze(Box<AnalyzeArgs>),
    Quarantine(QuarantineArgs),
    Mcp(McpArgs),
    Doctor(DoctorArgs),
    Prune(PruneArgs),
    Rebuild(RebuildArgs),
    Refingerprint(RefingerprintArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}
