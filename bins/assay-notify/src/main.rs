//! `assay-notify`: sends messages about edges to the targets of the operator's file.

mod cli;
mod clock;
mod database;
mod run;
mod targets;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::Cli;

/// The exit status of an invalid file or flag, as clap's. A service manager does not start the program again after it.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    assay_service_log::start(&cli.log, None);
    let targets = match targets::read(&cli.config) {
        Ok(targets) => targets,
        Err(error) => {
            eprintln!("assay-notify: {error}");
            return ExitCode::from(WRONG_USAGE);
        }
    };
    match run::run(&cli, targets) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay-notify: {error:#}");
            ExitCode::FAILURE
        }
    }
}
