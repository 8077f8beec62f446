//! `assay`: runs tests and sends their reports, judges reports, and asks a server about them.

mod cli;
mod clock;
mod commands;
mod config;
mod environment;
mod errors;
mod forwarding;
mod gate;
mod global;
mod report_to;
mod rerun;
mod runner_flag;
mod server_flags;
mod upload_flags;
mod values;

use std::process::ExitCode;

use assay_console::Program;

fn main() -> ExitCode {
    assay_sources::clocks::read_utc_offset();
    assay_console::main(Program::Assay, config::with_file, commands::run, errors::advice)
}
