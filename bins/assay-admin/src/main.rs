//! `assay-admin`: administers the database, and imports reports into it.

mod archive;
mod cli;
mod clock;
mod commands;
mod database;
mod doctor;
mod environment;
mod export;
mod global;
mod lookup;
mod new_key;
mod values;

use std::process::ExitCode;

use assay_cli_terminal::Program;

fn main() -> ExitCode {
    assay_cli_local::sources::clocks::read_utc_offset();
    let arguments = |_: &_, given| Ok(given);
    assay_cli_terminal::main(
        Program::AssayAdmin,
        arguments,
        commands::run,
        crate::doctor::advice::of,
    )
}
