//! The real programs over one database: a server and the command line.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    process::{Command, Stdio},
};

use assay_testkit::{Cli, Server, TestDatabase};
use serde_json::Value;
use tempfile::TempDir;

/// The result of a command.
#[derive(Debug)]
pub struct CommandOutput {
    /// Its exit status.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// The programs over one database.
pub struct Stack {
    server: Option<Server>,
    cli: Cli,
    folder: TempDir,
    url: String,
    /// Dropped last. None for a database that the caller keeps.
    database: Option<TestDatabase>,
}

impl Stack {
    /// The command line over an empty database.
    pub fn empty() -> Self {
        Self::over(TestDatabase::new())
    }

    /// The command line over a database.
    fn over(database: TestDatabase) -> Self {
        let url = database.url().to_owned();
        Self {
            database: Some(database),
            ..Self::at(&url)
        }
    }

    /// The command line over the database of this connection string, whose schema is up to date.
    pub fn at(url: &str) -> Self {
        Self {
            server: None,
            cli: Cli::new(url),
            folder: tempfile::tempdir().unwrap(),
            url: url.to_owned(),
            database: None,
        }
    }

    /// The programs over this database, with a server without a rate limit.
    pub fn serve(database: TestDatabase) -> Self {
        let mut stack = Self::over(database);
        stack.server = Some(stack.another_server(&[("ASSAY_RATE_LIMIT", "0")]));
        stack
    }

    /// Another server over the same database.
    pub fn another_server(&self, settings: &[(&str, &str)]) -> Server {
        Server::start_with(&self.url, &[&[("RUST_LOG", "warn")], settings].concat())
    }

    /// The address of the API on the server without a limit.
    pub fn address(&self) -> SocketAddr {
        self.server().client().address()
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("only the first world is not served")
    }

    /// Runs `assay` with these arguments and variables.
    pub fn assay(&self, arguments: &[String], variables: &BTreeMap<String, String>) -> CommandOutput {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command: Command = self.cli.command(&arguments);
        let output = command
            .env("HOME", self.folder.path())
            .env("RUST_LOG", "warn")
            .envs(variables)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("assay starts");
        CommandOutput::from(output)
    }

    /// Runs `assay-admin`.
    pub fn command(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::from(self.cli.command(arguments).output().expect("assay-admin starts"))
    }

    /// The database.
    pub fn database(&self) -> &TestDatabase {
        self.database.as_ref().expect("a world has its own database")
    }

    /// Runs `assay-admin … --json`, which must succeed, and parses its output.
    pub fn run_json(&self, arguments: &[&str]) -> Value {
        self.cli.json(arguments)
    }

    /// Runs `assay-notify` once with a target for all projects and events.
    pub fn notify_once(&self) {
        self.cli.notify_once();
    }

    /// Writes a file for an import.
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The database alone.
    pub fn into_database(self) -> TestDatabase {
        self.database.expect("this stack created its database")
    }

    /// The server's log.
    pub fn log(&self) -> String {
        self.server().log()
    }
}

impl From<std::process::Output> for CommandOutput {
    fn from(output: std::process::Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
