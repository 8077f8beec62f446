//! A program from its arguments to its exit status.

use std::{ffi::OsString, io::Write as _, process::ExitCode};

use clap::{Command, Parser};

use crate::{Program, errors, help, misuse::Misuse, terminal, wrap::wrapped};

/// The exit status of wrong usage, the same as clap's.
const WRONG_USAGE: u8 = 2;

/// Parses the command line, runs the command, and turns its error into a message and the exit status. `arguments` may add
/// to those of the command line. `advice` is what to do after an error whose message does not say it.
pub fn main<C: Parser>(
    program: Program,
    arguments: impl FnOnce(&Command, Vec<OsString>) -> anyhow::Result<Vec<OsString>>,
    run: impl FnOnce(C) -> anyhow::Result<ExitCode>,
    advice: fn(&anyhow::Error) -> Option<&'static str>,
) -> ExitCode {
    program.start();
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn"))
        .format_timestamp(None)
        .init();
    let command = help::command::<C>();
    let arguments = match arguments(&command, std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => return failed(&error, advice),
    };
    let matches = help::shortened(command).try_get_matches_from(arguments);
    let matches = matches.map_err(help::with_usage::<C>);
    let cli = match matches.and_then(|matches| C::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return wrong_usage(&error),
    };
    run(cli).unwrap_or_else(|error| failed(&error, advice))
}

/// Prints an error, and returns its exit status.
fn failed(error: &anyhow::Error, advice: fn(&anyhow::Error) -> Option<&'static str>) -> ExitCode {
    errors::print(error, advice(error));
    match error.is::<Misuse>() {
        true => ExitCode::from(WRONG_USAGE),
        false => ExitCode::FAILURE,
    }
}

/// Prints clap's message: wrong usage, help or the version. A command of the other program is named with it. If a value
/// of a flag was a key, the message does not repeat it.
fn wrong_usage(error: &clap::Error) -> ExitCode {
    if let Some((command, other)) = help::command_of_other_program(error) {
        let (this, other) = (Program::running().name(), other.name());
        message!(
            "`{this} {command}` is in `{other}`, so run `{other} {command}`; `{other} --help` describes it"
        );
        return ExitCode::from(WRONG_USAGE);
    }
    if !error.use_stderr() {
        error.exit();
    }
    let message = error.render().ansi().to_string();
    let message = errors::without_keys(&message).unwrap_or(message);
    let _ = write!(terminal::err(), "{}", wrapped(&message, terminal::stderr_width()));
    ExitCode::from(WRONG_USAGE)
}
