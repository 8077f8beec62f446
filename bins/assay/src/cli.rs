//! The command line as a whole; each group's own arguments stand beside its command.

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

No database at hand:
  assay analyze test-results/

In scripts, --json prints one object on standard output:
  ORG=$(assay org create \"Example Shop\" --json | jq -r .id)

Something is wrong:
  assay doctor

`assay COMMAND --help` shows a command's options and examples. Exit status: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.";

/// Keeps CI test results: organizations, projects, keys, reports.
///
/// The results are read over HTTP from `assay-server`; this program fills and administers the same database.
#[derive(Debug, Parser)]
#[command(name = "assay", version, propagate_version = true, after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub(crate) global: Global,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print one JSON object on standard output instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The Postgres database; without it a private one in the data directory is started as needed
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "ASSAY_DATABASE_URL",
        hide_env_values = true
    )]
    database_url: Option<String>,

    /// Where the private database lives; by default .assay, here or in the nearest folder above that has one
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
    /// The database that was named; an empty variable names none.
    pub(crate) fn database_url(&self) -> Option<&str> {
        self.database_url.as_deref().filter(|url| !url.trim().is_empty())
    }

    /// The folder of the private database; an empty variable names none.
    pub(crate) fn data_dir(&self) -> PathBuf {
        match &self.data_dir {
            Some(dir) if !dir.as_os_str().is_empty() => dir.clone(),
            Some(_) | None => assay_local_postgres::nearest(".assay", &environment::current_folder()),
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring the database's schema up to date
    ///
    /// Safe to run from several places at once: one does it, the others wait. A private database is brought up to date by
    /// every command by itself.
    #[command(after_help = "\
Examples:
  assay migrate
  assay migrate --database-url postgresql://assay:secret@db.example.org/assay")]
    Migrate,
    /// Organizations and their retention tiers
    #[command(subcommand)]
    Org(OrgCommand),
    /// Projects and their configuration
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Read keys of organizations and ingest keys of projects
    #[command(subcommand)]
    Key(KeyCommand),
    // Its text stands at the arguments.
    Run(Box<RunArgs>),
    // Its text stands at the arguments.
    Gate(Box<GateArgs>),
    // Its text stands at the arguments.
    Upload(Box<UploadArgs>),
    // Its text stands at the arguments.
    Uploads(UploadsArgs),
    // Its text stands at the arguments.
    Import(Box<ImportArgs>),
    // Its text stands at the arguments.
    Analyze(Box<AnalyzeArgs>),
    // Its text stands at the arguments.
    Quarantine(QuarantineArgs),
    // Its text stands at the arguments.
    Mcp(McpArgs),
    // Its text stands at the arguments.
    Doctor(DoctorArgs),
    // Its text stands at the arguments.
    Prune(PruneArgs),
    // Its text stands at the arguments.
    Rebuild(RebuildArgs),
    // Its text stands at the arguments.
    Refingerprint(RefingerprintArgs),
    // Its text stands at the arguments.
    Completions(CompletionsArgs),
    // Its text stands at the arguments.
    Man(ManArgs),
}
