//! `assay upload` and `assay run` against the real server.

use std::{
    fs,
    process::{Command, Output, Stdio},
};

use assay_testkit::{Server, World, assert_contains, stderr_text, text};
use serde_json::Value;

use crate::junit;

/// The start of the reports' tests. A server accepts reports of the last days only.
pub(crate) fn now() -> String {
    let output = Command::new("date").args(["-u", "+%FT%TZ"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A server with a project, its ingest key, and a folder for a job.
pub(crate) struct Site {
    pub(crate) world: World,
    server: Server,
    pub(crate) key: String,
}

impl Site {
    pub(crate) fn new() -> Self {
        let world = World::without_key();
        let key = world.cli.json(&["key", "create-ingest", "--project", "web"]);
        let server = Server::start_with_ingest(world.database.url(), &[]);
        Self {
            world,
            server,
            key: text(&key["key"]),
        }
    }

    /// The command line in the job's folder, with the address of the server and without that of its database.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.cli.command(arguments);
        command
            .env("ASSAY_DATABASE_URL", "postgresql://127.0.0.1:1/nowhere")
            .env("ASSAY_INGEST_URL", self.server.ingest().base())
            .env("ASSAY_INGEST_KEY", &self.key)
            .current_dir(self.world.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", stderr_text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn runs(&self) -> i64 {
        self.world.count("SELECT count(*) FROM run")
    }
}

#[test]
fn a_run_is_stored_after_success_and_failure_of_the_command() {
    let site = Site::new();
    site.world
        .file("good.xml", &junit::report(&now(), &[("adds", true)]));
    site.world
        .file("bad.xml", &junit::report(&now(), &[("adds", false)]));
    for (source, code) in [("good.xml", 0), ("bad.xml", 3)] {
        let script = format!("cp {source} r.xml; exit {code}");
        let output = site.run(&[
            "run", "--report", "r.xml", "--branch", "main", "--", "sh", "-c", &script,
        ]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr_text(&output));
        assert_contains(&stderr_text(&output), "of \"web\"");
    }
    assert_eq!(site.runs(), 2);
}

#[test]
fn uploads_missed_by_a_dead_server_are_sent_once_to_its_successor() {
    let mut site = Site::new();
    site.world
        .file("r.xml", &junit::report(&now(), &[("adds", true)]));
    site.server.kill();
    let output = site.run(&[
        "upload",
        "--retry-for",
        "0",
        "--spool",
        "kept",
        "--run-key",
        "b1",
        "r.xml",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr_text(&output));
    site.server = Server::start_with_ingest(site.world.database.url(), &[]);
    assert_eq!(site.json(&["upload", "--spool", "kept"])["sent"], 1);
    assert_eq!(site.json(&["upload", "--spool", "kept"])["sent"], 0);
    assert_eq!(site.runs(), 1);
    assert_eq!(
        fs::read_dir(site.world.folder.path().join("kept"))
            .unwrap()
            .count(),
        0
    );
    assert_eq!(
        site.json(&["upload", "--run-key", "b1", "r.xml"])["effect"],
        "unchanged"
    );
}
