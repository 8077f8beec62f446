//! `assay upload` and `assay run` against the real server.

use std::{
    fs,
    process::{Command, Output, Stdio},
};

use assay_testkit::{Server, World, stderr_text, text};
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
    key_id: String,
    read_key: String,
}

impl Site {
    pub(crate) fn new() -> Self {
        let world = World::without_key();
        let key = world.cli.json(&["key", "create-ingest", "--project", "web"]);
        let read = world
            .cli
            .json(&["key", "create", "--org", "Shop", "--days", "30"]);
        let server = Server::start_with_ingest(world.database.url(), &[]);
        Self {
            world,
            server,
            key: text(&key["key"]),
            key_id: text(&key["id"]),
            read_key: text(&read["key"]),
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

    fn refused(&self, command: &mut Command, part: &str) {
        let output = command.output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(1),
            "{command:?}: {}",
            stderr_text(&output)
        );
        assert!(
            stderr_text(&output).contains(part),
            "{part}: {}",
            stderr_text(&output)
        );
    }

    pub(crate) fn runs(&self) -> i64 {
        self.world.count("SELECT count(*) FROM run")
    }
}

#[test]
fn an_upload_stores_what_an_import_stores() {
    let site = Site::new();
    let start = now();
    site.world.file("src/test/java/org/shop/OrderTest.java", "");
    let report = format!(
        "<testsuite timestamp=\"{start}\"><testcase classname=\"org.shop.OrderTest\" name=\"adds\" time=\"0.1\"/></testsuite>"
    );
    site.world.file("out/TEST-a.xml", &report);
    site.world.file(
        "out/TEST-b.xml",
        &junit::report(&start, &[("pays", true), ("ships", false)]),
    );
    let root = site.world.folder.path().canonicalize().unwrap();
    let variables = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_RUN_ID", "812"),
        ("GITHUB_RUN_ATTEMPT", "1"),
        ("GITHUB_JOB", "e2e"),
        ("GITHUB_REF_NAME", "main"),
        ("GITHUB_SHA", "c0ffee"),
        ("RUNNER_NAME", "runner-1"),
        ("GITHUB_WORKSPACE", root.to_str().unwrap()),
    ];
    let flags = ["--message", "Add\n\nall", "--pr", "7", "out"];
    let upload = |more: &[&str]| {
        let mut command = site.command(&[&["upload", "--json"], &flags[..], more].concat());
        let output = command.envs(variables).output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let stored = upload(&[]);
    assert_eq!(
        (&stored["effect"], &stored["tests"]),
        (&"added".into(), &3.into())
    );
    assert_eq!(stored["project"]["name"], "web");
    let sources = |what: &str| {
        let values = stored["values"].as_array().unwrap();
        let value = values.iter().find(|value| value["what"] == what).unwrap();
        text(&value["from"])
    };
    for (what, variable) in [
        ("branch", "GITHUB_REF_NAME"),
        ("commit", "GITHUB_SHA"),
        ("suite", "GITHUB_JOB"),
        ("CI provider", "GITHUB_ACTIONS"),
        ("run key", "GITHUB_RUN_ID"),
        ("pull request", "flag"),
    ] {
        assert_eq!(sources(what), variable, "{what}: {stored}");
    }
    assert_eq!(upload(&[])["effect"], "unchanged");

    // The import finds the same run with the same content: context, files, sender and results are equal.
    let mut command = site
        .world
        .cli
        .command(&[&["import", "--project", "web", "--json"], &flags[..]].concat());
    let imported = command
        .envs(variables)
        .current_dir(site.world.folder.path())
        .output()
        .unwrap();
    assert!(imported.status.success(), "{}", stderr_text(&imported));
    let imported: Value = serde_json::from_slice(&imported.stdout).unwrap();
    assert_eq!(
        (&imported["runId"], &imported["changed"]),
        (&stored["runId"], &false.into())
    );
    let file = site
        .world
        .database
        .text("SELECT file_path FROM test WHERE name LIKE '%adds%'")
        .unwrap();
    assert_eq!(file, "src/test/java/org/shop/OrderTest.java");
}

#[test]
fn a_dry_run_and_a_check_store_nothing() {
    let site = Site::new();
    site.world
        .file("r.xml", &junit::report(&now(), &[("adds", true)]));
    let dry = site.run(&["upload", "--dry-run", "--branch", "main", "r.xml"]);
    assert!(dry.status.success(), "{}", stderr_text(&dry));
    let shown = String::from_utf8(dry.stdout).unwrap();
    assert!(
        shown.contains("Would store 1 test, 1 passed") && shown.contains("in \"web\""),
        "{shown}"
    );
    assert!(
        shown
            .lines()
            .any(|line| line.starts_with("branch") && line.contains("main")),
        "{shown}"
    );
    let check = site.json(&["upload", "--check", "r.xml"]);
    assert_eq!(check["key"]["project"]["name"], "web");
    assert_eq!(check["files"][0]["format"], "junit");
    assert_eq!(site.runs(), 0);
}

#[test]
fn each_refusal_of_the_server_exits_with_1_and_its_reason() {
    let site = Site::new();
    site.world
        .file("r.xml", &junit::report(&now(), &[("adds", true)]));
    site.world
        .file("other.xml", &junit::report(&now(), &[("sums", true)]));
    site.world.file("empty.xml", "<testsuite name=\"s\"/>");
    site.world.file(
        "broken.xml",
        "<testsuite><testcase name=\"a\"></wrong></testsuite>",
    );
    let upload = |path| site.command(&["upload", path]);
    site.refused(
        upload("r.xml").env("ASSAY_INGEST_KEY", &site.read_key),
        "`assay-admin key create-ingest` creates. (401 wrong_key_type)",
    );
    site.refused(
        upload("r.xml").env("ASSAY_INGEST_URL", site.server.client().base()),
        "is the read API, which stores no reports",
    );
    site.refused(
        upload("r.xml").env("ASSAY_INGEST_KEY", "svc_none"),
        "(401 invalid_key)",
    );
    site.refused(
        &mut site.command(&["upload", "--project", "other", "r.xml"]),
        "(403 wrong_project)",
    );
    site.refused(&mut upload("empty.xml"), "(422 nothing_to_store)");
    site.refused(&mut upload("broken.xml"), "broken.xml");
    assert_eq!(site.runs(), 0);

    // Two jobs of a matrix in one place: both are kept.
    let job = |runner: &str, path: &str| {
        let mut command = site.command(&["upload", path]);
        command.envs([
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_RUN_ID", "1"),
            ("GITHUB_JOB", "test"),
            ("RUNNER_NAME", runner),
        ]);
        command
    };
    assert!(job("a", "r.xml").output().unwrap().status.success());
    let beside = job("b", "other.xml").output().unwrap();
    assert!(beside.status.success(), "{}", stderr_text(&beside));
    assert_eq!(site.runs(), 1);

    assert!(
        site.world
            .cli
            .run(&["key", "revoke", &site.key_id, "--yes"])
            .status
            .success()
    );
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    site.refused(&mut upload("r.xml"), "(401 key_revoked)");
    assert!(
        !site.server.log().contains(&site.key),
        "the key is in the server's log"
    );
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
        assert!(
            stderr_text(&output).contains("of \"web\""),
            "{}",
            stderr_text(&output)
        );
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
