//! The real programs over one database: a server and the command line.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
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

    /// The address of the API on the server without a limit.
    pub fn address(&self) -> SocketAddr {
        self.server().client().address()
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("only the first world is not served")
    }

    /// Another server over the same database.
    pub fn another_server(&self, settings: &[(&str, &str)]) -> Server {
        Server::start_with(&self.url, &[&[("RUST_LOG", "warn")], settings].concat())
    }

    /// Runs `assay` with these arguments and variables.
    pub fn assay(
        &self,
        arguments: &[String],
        variables: &BTreeMap<String, String>,
        input: &[u8],
    ) -> CommandOutput {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command: Command = self.cli.command(&arguments);
        let mut child = command
            .env("HOME", self.folder.path())
            .env("RUST_LOG", "warn")
            .envs(variables)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("assay starts");
        // A command that reads no input may have exited already.
        let _sent = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        CommandOutput {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs `assay … --json`, which must succeed, and parses its output.
    pub fn run_json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments);
        assert_eq!(output.status, 0, "assay {arguments:?}: {}", output.err);
        serde_json::from_str(&output.out)
            .unwrap_or_else(|_| panic!("assay {arguments:?} printed {}", output.out))
    }

    /// Runs `assay … --json` without variables or input.
    pub fn command(&self, arguments: &[&str]) -> CommandOutput {
        let mut all: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        all.push("--json".to_owned());
        self.assay(&all, &BTreeMap::new(), b"")
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

    /// The database, for changes that no command can make, such as an expired key.
    pub fn database(&self) -> &TestDatabase {
        self.database.as_ref().expect("this stack created its database")
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
