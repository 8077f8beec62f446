//! `assay`: runs tests and sends their reports, judges reports, and asks a server about them.

mod cli;
mod clock;
mod commands;
mod config;
mod environment;
mod errors;
mod excused;
mod forwarding;
mod gate;
mod global;
mod repeated;
mod report_to;
mod rerun;
mod runner_flag;
mod sender;
mod server_flags;
mod test_command;
mod upload_flags;
mod values;

use std::process::ExitCode;

use assay_cli_terminal::Program;

fn main() -> ExitCode {
    assay_cli_local::sources::clocks::read_utc_offset();
    assay_cli_terminal::main(Program::Assay, config::with_file, commands::run, errors::advice)
}
