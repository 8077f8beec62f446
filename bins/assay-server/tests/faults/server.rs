//! Starts the server for these tests: without a rate limit, with a short log.

use std::{path::Path, process::Command};

use assay_testkit::{Server, program};

/// Starts the server over a database with its working folder in `folder`, and waits until it is ready.
pub(crate) fn start(folder: &Path, database_url: &str) -> Server {
    let environment = [("ASSAY_DATABASE_URL", database_url)];
    start_with(Command::new(program("assay-server")), folder, &environment)
}

/// The same with this command, which may wrap the program, and with this environment.
pub(crate) fn start_with(command: Command, folder: &Path, environment: &[(&str, &str)]) -> Server {
    let mut server = launch(command, folder, environment);
    server.ready();
    server
}

/// The same without waiting.
pub(crate) fn launch(mut command: Command, folder: &Path, environment: &[(&str, &str)]) -> Server {
    let quiet = [
        ("ASSAY_RATE_LIMIT", "0"),
        // The line of each request would be most of the cost of a flood.
        ("RUST_LOG", "info,access=off,actix_server=warn"),
    ];
    command.current_dir(folder);
    Server::launch(command, &[&quiet, environment].concat())
}
