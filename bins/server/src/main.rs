//! `assay-server`: serves test results over HTTP.
//!
//! It parses the configuration, binds the listeners, prepares the database, and serves. After a signal it shuts down in
//! the opposite order.

mod addresses;
mod clock;
mod config;
mod demo;
mod guard;
mod install;
mod listeners;
mod log_format;
mod manual;
mod public_url;
mod serve;
mod signals;
mod site;
mod startup;
mod upload_limits;

use std::{process::ExitCode, thread};

use actix_web::rt;
use assay_local_postgres::ClusterError;
use clap::FromArgMatches as _;

use crate::config::Config;

/// The exit status of a setting that is invalid, as clap's. A service manager does not start the server again after it.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let matches = manual::command()
        .try_get_matches()
        .unwrap_or_else(|error| manual::with_usage(error).exit());
    match manual::print(&matches) {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay-server: {error}");
            return ExitCode::FAILURE;
        }
    }
    let config = Config::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Err(error) = config.check() {
        eprintln!("assay-server: {error}");
        return ExitCode::from(WRONG_USAGE);
    }
    guard::start(&config.log, config.log_format);
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay-server: {error:#}");
            let mut causes = error
                .chain()
                .filter_map(|cause| cause.downcast_ref::<ClusterError>());
            if let Some(advice) = causes.find_map(ClusterError::advice) {
                eprintln!("  -> {advice}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(config: Config) -> anyhow::Result<()> {
    let processors = thread::available_parallelism().unwrap_or(std::num::NonZeroUsize::MIN);
    let sizes = config.sizes(processors);
    // Signals are not caught yet, so that Ctrl-C ends the question and the package manager.
    if config.demo {
        install::install_if_missing(&config)?;
    }
    rt::System::new().block_on(serve::serve(config, sizes))
}
