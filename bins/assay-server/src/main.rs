//! `assay-server`: serves test results over HTTP.
//!
//! It parses the configuration, binds the listeners, prepares the database, and serves. After a signal it shuts down in
//! the opposite order.

mod addresses;
mod clock;
mod demo;
mod listeners;
mod parts;
mod serve;
mod settings;
mod site;
mod startup;

use std::{process::ExitCode, thread};

use actix_web::rt;
use assay_local_postgres::ClusterError;
use clap::FromArgMatches as _;
use mimalloc::MiMalloc;

use crate::{
    demo::{Consent, install_if_missing},
    settings::Config,
};

/// Returns the memory of large uploads to the system. The allocator of glibc keeps most of it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The exit status of a setting that is invalid, as clap's. A service manager does not start the server again after it.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let is_all = std::env::args_os().any(|argument| argument == "--help-all");
    let matches = settings::shortened(is_all)
        .try_get_matches()
        .unwrap_or_else(|error| settings::with_usage(error).exit());
    match settings::print(&matches) {
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
    if config.check_health {
        let Err(error) = settings::check_health(&config) else {
            return ExitCode::SUCCESS;
        };
        eprintln!("assay-server: {error}");
        return ExitCode::FAILURE;
    }
    config.start_log();
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
        let settings = startup::cluster_settings();
        let consent = match (config.install, startup::is_in_ci()) {
            (true, _) => Consent::Given,
            (false, true) => Consent::InCi,
            (false, false) => Consent::Asked,
        };
        install_if_missing(&config.data_dir(), &settings, consent)?;
    }
    rt::System::new().block_on(serve::serve(config, sizes))
}
