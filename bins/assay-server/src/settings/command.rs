//! The command line as the help shows it, and the shell completions and the manual page made from it.

use std::io::{self, Write as _};

use clap::{
    Arg, ArgAction, ArgMatches, Command, CommandFactory as _, Error,
    error::{ContextKind, ContextValue},
    value_parser,
};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use crate::settings::Config;

const COMPLETIONS: &str = "completions";
const MAN: &str = "man";

/// The command line: the configuration's flags in groups, and the flags that only print.
fn command() -> Command {
    let completions = Arg::new(COMPLETIONS)
        .long(COMPLETIONS)
        .value_name("SHELL")
        .value_parser(value_parser!(Shell))
        .help("Print the completion script for a shell, and exit");
    let man = Arg::new(MAN)
        .long(MAN)
        .action(ArgAction::SetTrue)
        .help("Print the manual page, and exit");
    Config::command()
        .mut_args(|arg| match heading(arg.get_id().as_str()) {
            Some(heading) => arg.help_heading(heading).hide_env_values(true),
            None => arg.hide_env_values(true),
        })
        .arg(completions.help_heading("This program"))
        .arg(man.help_heading("This program"))
}

/// The option that shows all options.
const ALL: &str = "help-all";

/// The command line whose help shows the common options alone, unless `is_all`.
pub(crate) fn shortened(is_all: bool) -> Command {
    let all = Arg::new(ALL).long(ALL).action(ArgAction::HelpLong);
    let all = all.help("Show all options, also the rare ones");
    command()
        .mut_args(|arg| match !is_all && is_rare(arg.get_id().as_str()) {
            true => arg.hide(true),
            false => arg,
        })
        .arg(all)
}

/// Whether few installations set an option: the limits of uploads, the sizes of pools, and the file of providers.
fn is_rare(id: &str) -> bool {
    heading(id) == Some("Uploads")
        || ["pool_size", "workers", "answer_memory_mib", "identity_file"].contains(&id)
}

/// The heading of an argument in the help.
fn heading(id: &str) -> Option<&'static str> {
    match id {
        "database_url" | "ingest_database_url" | "replica_url" | "data_dir" => Some("The database"),
        "listen" | "ingest_listen" | "front_listen" | "front_secret" | "admin_listen" | "tls_cert"
        | "tls_key" | "public_url" | "identity_file" => Some("Listeners"),
        "rate_limit" | "redis_url" | "cors_origins" | "pool_size" | "workers" | "answer_memory_mib" => {
            Some("Limits and sizes")
        }
        id if id.starts_with("ingest_") => Some("Uploads"),
        "log" | "log_format" => Some("Logs"),
        "check_health" => Some("This program"),
        "demo" | "install" => Some("Demonstration"),
        _ => None,
    }
}

/// The usage error with the usage line of the help. Clap's own line lists every option that has a value, even one from
/// a variable, as if it were required.
pub(crate) fn with_usage(mut error: Error) -> Error {
    if error.get(ContextKind::Usage).is_some() {
        let usage = ContextValue::StyledStr(command().render_usage());
        error.insert(ContextKind::Usage, usage);
    }
    error
}

/// Prints help, completions or the manual page if a flag asks for it; returns false otherwise.
pub(crate) fn print(matches: &ArgMatches) -> io::Result<bool> {
    let mut text = Vec::new();
    if let Some(shell) = matches.get_one::<Shell>(COMPLETIONS) {
        generate(*shell, &mut command(), "assay-server", &mut text);
    } else if matches.get_flag(MAN) {
        Man::new(command()).render(&mut text)?;
    } else {
        return Ok(false);
    }
    let mut out = io::stdout().lock();
    match out.write_all(&text).and_then(|()| out.flush()) {
        // A reader that closes the output early is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        result => result.map(|()| true),
    }
}
