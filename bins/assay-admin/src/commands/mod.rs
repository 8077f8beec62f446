//! The commands, one file for each group.

pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod key;
mod migrate;
pub(crate) mod org;
pub(crate) mod project;
pub(crate) mod prune;
pub(crate) mod rebuild;
pub(crate) mod refingerprint;
pub(crate) mod setup;
mod transfer;
pub(crate) mod trust;
pub(crate) mod uploads;

use std::process::ExitCode;

use assay_cli_terminal::{completions, man};

use crate::cli::{Cli, Command};

/// Runs the requested command.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let Cli { global, command } = cli;
    let done = match command {
        Command::Setup(args) => setup::run(&global, &args),
        Command::Migrate => migrate::run(&global),
        Command::Org(command) => org::run(&global, command),
        Command::Project(command) => project::run(&global, command),
        Command::Key(command) => key::run(&global, command),
        Command::Trust(command) => trust::run(&global, command),
        Command::Uploads(args) => uploads::run(&global, &args),
        Command::Import(args) => import::run(&global, *args),
        Command::Export(args) => export::run(&global, &args),
        Command::Doctor(args) => doctor::run(&global, &args),
        Command::Prune(args) => prune::run(&global, &args),
        Command::Rebuild(args) => rebuild::run(&global, &args),
        Command::Refingerprint(args) => refingerprint::run(&global, &args),
        Command::Completions(args) => completions::run::<Cli>(global.json, &args),
        Command::Man(args) => man::run::<Cli>(global.json, &args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
