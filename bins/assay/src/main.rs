//! `assay`: stores and judges test reports, and administers the service.
//!
//! Top-down: parse the command line, run the command, turn its error into the exit status.

// First, because its macro `eprintln` applies to the modules after it.
#[macro_use]
mod terminal;

mod advice;
mod archive;
mod changes;
mod checkout;
mod cli;
mod clock;
mod commands;
mod confirm;
mod database;
mod environment;
mod forwarding;
mod gate;
mod help;
mod http;
mod lookup;
mod misuse;
mod output;
mod progress;
mod report_flags;
mod sources;
mod suggest;
mod table;
mod upload;
mod values;
mod when;

use std::{io::Write as _, process::ExitCode};

use anstyle::{AnsiColor, Style};
use clap::FromArgMatches as _;

use crate::cli::Cli;

/// The exit status of wrong usage, the same as clap's.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn"))
        .format_timestamp(None)
        .init();
    let matches = help::command()
        .try_get_matches()
        .unwrap_or_else(|error| help::with_usage(error).exit());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match commands::run(cli) {
        Ok(status) => status,
        Err(error) => {
            print_error(&error);
            match error.is::<misuse::Misuse>() {
                true => ExitCode::from(WRONG_USAGE),
                false => ExitCode::FAILURE,
            }
        }
    }
}

/// Prints the error and the advice on standard error.
fn print_error(error: &anyhow::Error) {
    let style: Style = AnsiColor::Red.on_default().bold();
    let reason = format!("{error:#}");
    let mut message = format!("{style}assay:{style:#} {}", reason.trim_end());
    if let Some(advice) = advice::of(error) {
        message += &format!("\n  -> {advice}");
    }
    // If standard error is closed, the exit status is the only message.
    let _ = writeln!(terminal::err(), "{message}");
}
