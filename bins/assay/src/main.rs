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
    clock::read_utc_offset();
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn"))
        .format_timestamp(None)
        .init();
    let matches = help::command().try_get_matches().map_err(help::with_usage);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return wrong_usage(&error),
    };
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

/// Prints clap's message: wrong usage, help or the version. If a value of a flag was a key, the message does not repeat
/// it.
fn wrong_usage(error: &clap::Error) -> ExitCode {
    match without_keys(&error.render().to_string()) {
        Some(message) => {
            let _ = write!(terminal::err(), "{message}");
            ExitCode::from(WRONG_USAGE)
        }
        None => error.exit(),
    }
}

/// The text with the beginning of each key alone; none if it has no key.
fn without_keys(text: &str) -> Option<String> {
    const PREFIX: &str = "svc_";
    let mut parts = text.split(PREFIX);
    let mut shown = parts.next()?.to_owned();
    let mut has_key = false;
    for part in parts {
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let end = part.find(|c: char| !is_of_key(c)).unwrap_or(part.len());
        let (secret, rest) = part.split_at_checked(end)?;
        // A placeholder such as `svc_ro_` is no key.
        let is_key = secret.len() > 8;
        has_key |= is_key;
        shown += PREFIX;
        shown += if is_key { "…" } else { secret };
        shown += rest;
    }
    has_key.then_some(shown)
}

/// Prints the error and the advice on standard error. If a name was a key, the message does not repeat it.
fn print_error(error: &anyhow::Error) {
    let style: Style = AnsiColor::Red.on_default().bold();
    let reason = format!("{error:#}");
    let mut message = format!("{style}assay:{style:#} {}", reason.trim_end());
    if let Some(advice) = advice::of(error) {
        message += &format!("\n  -> {advice}");
    }
    let message = without_keys(&message).unwrap_or(message);
    // If standard error is closed, the exit status is the only message.
    let _ = writeln!(terminal::err(), "{message}");
}

#[cfg(test)]
mod tests {
    use super::without_keys;

    #[test]
    fn a_message_repeats_no_key() {
        assert_eq!(
            without_keys("invalid value 'svc_ro_0123456789abcdef' for '--retry-for', not 'svc_0123456789'")
                .as_deref(),
            Some("invalid value 'svc_…' for '--retry-for', not 'svc_…'")
        );
        assert_eq!(without_keys("a key begins with svc_ro_; no other"), None);
        assert_eq!(without_keys("none"), None);
    }
}
