//! The commands, one file for each group.

pub(crate) mod analyze;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod gate;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod org;
pub(crate) mod project;
pub(crate) mod prune;
pub(crate) mod quarantine;
pub(crate) mod rebuild;
pub(crate) mod refingerprint;
pub(crate) mod run;
mod transfer;
pub(crate) mod upload;
pub(crate) mod uploads;

use std::process::ExitCode;

use crate::cli::{Cli, Command};

/// Runs the requested command.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let Cli { global, command } = cli;
    let done = match command {
        Command::Run(args) => return run::run(&global, &args),
        Command::Gate(args) => return gate::run(&global, &args),
        Command::Upload(args) => return upload::run(&global, &args),
        Command::Mcp(args) => mcp::run(&args),
        Command::Migrate => migrate::run(&global),
        Command::Org(command) => org::run(&global, command),
        Command::Project(command) => project::run(&global, command),
        Command::Key(command) => key::run(&global, command),
        Command::Uploads(args) => uploads::run(&global, &args),
        Command::Import(args) => import::run(&global, *args),
        Command::Quarantine(args) => quarantine::run(&global, &args),
        Command::Analyze(args) => analyze::run(&global, &args),
        Command::Doctor(args) => doctor::run(&global, &args),
        Command::Prune(args) => prune::run(&global, &args),
        Command::Rebuild(args) => rebuild::run(&global, &args),
        Command::Refingerprint(args) => refingerprint::run(&global, &args),
        Command::Completions(args) => completions::run(&global, &args),
        Command::Man(args) => man::run(&global, &args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
