//! `assay-admin`: administers the database, and imports reports into it.

mod cli;
mod clock;
mod commands;
mod database;
mod environment;
mod global;
mod lookup;
mod new_key;
mod values;

use std::process::ExitCode;

use assay_console::Program;

fn main() -> ExitCode {
    assay_sources::clocks::read_utc_offset();
    let arguments = |_: &_, given| Ok(given);
    assay_console::main(
        Program::AssayAdmin,
        arguments,
        commands::run,
        assay_diagnosis::advice::of,
    )
}
