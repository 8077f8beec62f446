//! The command line as a whole. Each command's arguments are defined beside it.

use assay_cli_terminal::{completions::CompletionsArgs, man::ManArgs};
use clap::{Parser, Subcommand};

use crate::{
    commands::{
        analyze::AnalyzeArgs,
        backfill::BackfillArgs,
        culprit::CulpritArgs,
        excuse::ExcuseArgs,
        gate::GateArgs,
        issues::IssuesArgs,
        login::{LoginArgs, LogoutArgs},
        mcp::McpArgs,
        owners::OwnersArgs,
        proof::ProofArgs,
        quarantine::QuarantineArgs,
        renames::RenamesArgs,
        run::RunArgs,
        split::SplitArgs,
        upload::UploadArgs,
        uploads::UploadsArgs,
        verify::VerifyArgs,
    },
    global::Global,
};

const EXAMPLES: &str = "\
In CI, to a server:
  assay run --report results.json -- npx playwright test

Without a server:
  assay analyze test-results/

`assay COMMAND --help` shows a command's options and examples. `assay-admin` administers the database: organizations, projects and keys. \
Exit status: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.";

/// Send CI test results to a server, ask it about them, or judge them here
///
/// `assay-server` stores the results and answers questions about them over HTTP.
#[derive(Debug, Parser)]
#[command(name = "assay", version, propagate_version = true, after_help = EXAMPLES, max_term_width = 80)]
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
    Run(Box<RunArgs>),
    Gate(Box<GateArgs>),
    Excuse(Box<ExcuseArgs>),
    Upload(Box<UploadArgs>),
    Analyze(Box<AnalyzeArgs>),
    Backfill(Box<BackfillArgs>),
    Quarantine(QuarantineArgs),
    Split(SplitArgs),
    Culprit(CulpritArgs),
    Verify(Box<VerifyArgs>),
    Proof(ProofArgs),
    Issues(IssuesArgs),
    Uploads(UploadsArgs),
    Owners(OwnersArgs),
    Renames(Box<RenamesArgs>),
    Login(LoginArgs),
    Logout(LogoutArgs),
    Mcp(McpArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use assay_cli_terminal::Program;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        assay_testkit::check_command_line::<Cli>(Program::Assay);
    }
}
