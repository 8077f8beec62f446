//! `assay`: administration of the service, import of reports, pruning.
//!
//! Reads top-down: the command line is parsed, the command runs, its error becomes the exit status.

mod checkout;
mod cli;
mod clock;
mod commands;
mod database;
mod environment;
mod lookup;
mod output;
mod sources;
mod values;

use std::{io, process::ExitCode};

use clap::Parser as _;

use crate::cli::Cli;

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn"))
        .format_timestamp(None)
        .init();
    match commands::run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the reader of our output has gone, as `head` does once it has seen enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
