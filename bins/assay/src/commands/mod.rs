//! The commands, one file for each.

pub(crate) mod analyze;
pub(crate) mod backfill;
pub(crate) mod culprit;
pub(crate) mod excuse;
pub(crate) mod gate;
pub(crate) mod issues;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod owners;
pub(crate) mod proof;
pub(crate) mod quarantine;
pub(crate) mod renames;
pub(crate) mod run;
pub(crate) mod split;
pub(crate) mod upload;
pub(crate) mod uploads;
pub(crate) mod verify;

use std::process::ExitCode;

use assay_cli_terminal::{completions, man};

use crate::cli::{Cli, Command};

/// Runs the requested command.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let Cli { global, command } = cli;
    let done = match command {
        Command::Backfill(args) => return backfill::run(&global, &args),
        Command::Run(args) => return run::run(&global, *args),
        Command::Gate(args) => return gate::run(&global, &args),
        Command::Upload(args) => return upload::run(&global, &args),
        Command::Uploads(args) => uploads::run(&global, &args),
        Command::Owners(args) => return owners::run(&global, &args),
        Command::Excuse(args) => return excuse::run(&global, &args),
        Command::Issues(args) => issues::run(&global, &args),
        Command::Renames(args) => return renames::run(&global, &args),
        Command::Login(args) => login::sign_in(&global, &args),
        Command::Logout(args) => login::sign_out(&global, &args),
        Command::Mcp(args) => mcp::run(&args),
        Command::Quarantine(args) => quarantine::run(&global, &args),
        Command::Culprit(args) => return culprit::run(&global, &args),
        Command::Proof(args) => proof::run(&global, &args),
        Command::Verify(args) => return verify::run(&global, &args),
        Command::Split(args) => split::run(&global, &args),
        Command::Analyze(args) => analyze::run(&global, &args),
        Command::Completions(args) => completions::run::<Cli>(global.json, &args),
        Command::Man(args) => man::run::<Cli>(global.json, &args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
