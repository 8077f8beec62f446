//! Reports over HTTP, sent to the real server.

use std::time::{Duration, Instant};

use assay_domain::{
    id::ProjectId,
    ingest::IngestTerms,
    key::{KeyKind, mint},
    store::Administration as _,
    timestamp::Timestamp,
};
use assay_testkit::{Cli, Response, Server, TestDatabase, assert_contains, text};
use serde_json::{Value, json};

pub(crate) const BOUNDARY: &str = "assay-test";
pub(crate) const PASSES: &str = r#"<testsuites><testsuite name="cart"><testcase classname="cart" name="pays" file="cart.test.ts" time="0.01"/></testsuite></testsuites>"#;
pub(crate) const FAILS: &str = r#"<testsuites><testsuite name="cart"><testcase classname="cart" name="pays" file="cart.test.ts" time="0.01"><failure message="expected 3, got 4">at cart.test.ts:3:1</failure></testcase></testsuite></testsuites>"#;

/// A server with the ingest listener, an organization, a project and a key of each kind.
pub(crate) struct IngestServer {
    pub(crate) server: Server,
    pub(crate) cli: Cli,
    pub(crate) read_key: String,
    pub(crate) key: String,
    pub(crate) project: String,
    pub(crate) database: TestDatabase,
}

impl IngestServer {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(environment: &[(&str, &str)]) -> Self {
        let database = TestDatabase::new();
        let cli = Cli::new(database.url());
        cli.json(&["org", "create", "Shop", "--plan", "pro"]);
        let project = cli.json(&["project", "create", "--org", "Shop", "web"]);
        let read_key = cli.json(&["key", "create", "--org", "Shop", "--days", "90"]);
        let environment = [&[("ASSAY_RATE_LIMIT", "0")], environment].concat();
        let ingest = Self {
            server: Server::start_with_ingest(database.url(), &environment),
            cli,
            read_key: text(&read_key["key"]),
            key: String::new(),
            project: text(&project["id"]),
            database,
        };
        Self {
            key: ingest.new_key(&IngestTerms::default()),
            ..ingest
        }
    }

    pub(crate) fn new_key(&self, terms: &IngestTerms) -> String {
        key_for(&self.database, self.project.parse().unwrap(), terms)
    }

    /// Creates a project of another organization, and a key of it.
    pub(crate) fn foreign_key(&self) -> String {
        self.cli.json(&["org", "create", "Other"]);
        let other = self.cli.json(&["project", "create", "--org", "Other", "theirs"]);
        let project = text(&other["id"]).parse().unwrap();
        key_for(&self.database, project, &IngestTerms::default())
    }

    /// Sends files and fields as a form.
    pub(crate) fn send(&self, key: &str, fields: &[(&str, &str)], files: &[(&str, &[u8])]) -> Response {
        send(&self.server, key, fields, files)
    }

    pub(crate) fn post(&self, path: &str, key: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        post(&self.server, path, key, headers, body)
    }

    pub(crate) fn read(&self, path: &str) -> Value {
        let path = format!("/api/v1/projects/{}{path}", self.project);
        let answer = self.server.client().get(&path, Some(&self.read_key));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }
}

/// Sends files and fields as a form to a server with the ingest listener.
pub(crate) fn send(server: &Server, key: &str, fields: &[(&str, &str)], files: &[(&str, &[u8])]) -> Response {
    let headers = [("Content-Type", &*of_form())];
    post(server, "/ingest/v1/reports", key, &headers, &form(fields, files))
}

fn post(server: &Server, path: &str, key: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let authorization = format!("Bearer {key}");
    let headers = [&[("Authorization", authorization.as_str())], headers].concat();
    server.ingest().post(path, &headers, body)
}

pub(crate) fn key_for(database: &TestDatabase, project: ProjectId, terms: &IngestTerms) -> String {
    let (secret, new) = mint(KeyKind::Ingest, now());
    assert!(
        database
            .connect()
            .create_ingest_key(project, &new, terms)
            .unwrap()
    );
    secret.reveal().to_owned()
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from(time::OffsetDateTime::now_utc())
}

pub(crate) fn of_form() -> String {
    format!("multipart/form-data; boundary={BOUNDARY}")
}

pub(crate) fn form(fields: &[(&str, &str)], files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut part = |head: String, bytes: &[u8]| {
        body.extend(format!("--{BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n").bytes());
        body.extend_from_slice(bytes);
        body.extend(b"\r\n");
    };
    for (name, value) in fields {
        part(format!("name=\"{name}\""), value.as_bytes());
    }
    for (name, bytes) in files {
        part(format!("name=\"r\"; filename=\"{name}\""), bytes);
    }
    body.extend(format!("--{BOUNDARY}--\r\n").bytes());
    body
}

/// Fails unless an answer is this refusal.
#[track_caller]
pub(crate) fn assert_refused(answer: &Response, status: u16, expected: &str) {
    let refusal = (answer.status, code(answer));
    assert_eq!(refusal, (status, expected.to_owned()), "{}", answer.text());
}

pub(crate) fn code(answer: &Response) -> String {
    text(&answer.json()["code"])
}

#[test]
fn a_report_is_stored_once_and_replaced_by_another_one_on_request() {
    let ingest = IngestServer::new();
    let fields = [("branch", "main"), ("commit", "abc"), ("runKey", "build-1")];
    let first = ingest.send(&ingest.key, &fields, &[("out/r.xml", FAILS.as_bytes())]);
    assert_eq!(first.status, 201, "{}", first.text());
    let answer = first.json();
    assert_eq!(answer["project"]["name"], "web");
    assert_eq!(answer["project"]["id"], ingest.project.as_str());
    assert_eq!(
        (&answer["effect"], &answer["status"]),
        (&"added".into(), &"failed".into())
    );
    assert_eq!((&answer["runNumber"], &answer["tests"]), (&1.into(), &1.into()));
    assert_eq!(answer["counts"]["failed"], 1);
    let branch = answer["values"]
        .as_array()
        .unwrap()
        .iter()
        .find(|value| value["what"] == "branch");
    assert_eq!(branch.unwrap()["value"], "main");
    assert_eq!(branch.unwrap()["from"], "flag");

    let again = ingest.send(&ingest.key, &fields, &[("out/r.xml", FAILS.as_bytes())]);
    assert_eq!(
        (again.status, &again.json()["effect"]),
        (200, &"unchanged".into())
    );
    // A raw body has its fields in the query.
    let path = "/ingest/v1/reports?branch=main&commit=abc&runKey=build-1&replace=true";
    let raw = ingest.post(
        path,
        &ingest.key,
        &[("Content-Type", "text/xml")],
        PASSES.as_bytes(),
    );
    assert_eq!(
        (raw.status, &raw.json()["effect"]),
        (201, &"replaced".into()),
        "{}",
        raw.text()
    );
    assert_eq!(raw.json()["runId"], answer["runId"]);
    assert_eq!(raw.json()["replaced"], json!({"tests": 1, "failed": 1}));
    // Values that a report lacks are taken from the earlier one.
    let bare = ingest.post(
        "/ingest/v1/reports?runKey=build-1&replace=true",
        &ingest.key,
        &[("Content-Type", "text/xml")],
        FAILS.as_bytes(),
    );
    assert_eq!(
        (&bare.json()["effect"], &bare.json()["warnings"]),
        (&"replaced".into(), &Value::Array(Vec::new())),
        "{}",
        bare.text()
    );
    let bare = ingest.post(
        "/ingest/v1/reports?runKey=build-1&replace=true",
        &ingest.key,
        &[("Content-Type", "text/xml")],
        PASSES.as_bytes(),
    );
    assert_eq!(bare.json()["effect"], "replaced");
    let run = ingest.read(&format!("/runs/{}", text(&answer["runId"])));
    assert_eq!(
        (&run["run"]["status"], &run["run"]["branch"]),
        (&"passed".into(), &"main".into())
    );
    assert_eq!(ingest.read("/runs")["total"], 1);
    let listed = ingest.database.texts("SELECT effect FROM upload ORDER BY at");
    assert_eq!(listed.len(), 5, "{listed:?}");
}

#[test]
fn a_dry_run_and_a_question_about_the_key_store_nothing() {
    let ingest = IngestServer::new();
    let dry = ingest.send(&ingest.key, &[("dryRun", "true")], &[("r.xml", FAILS.as_bytes())]);
    assert_eq!(
        (dry.status, &dry.json()["runId"]),
        (200, &Value::Null),
        "{}",
        dry.text()
    );
    assert_eq!(dry.json()["counts"]["failed"], 1);
    assert_eq!(ingest.read("/runs")["total"], 0);
    let about = ingest.server.ingest().get("/ingest/v1/key", Some(&ingest.key));
    assert_eq!(about.status, 200);
    assert_eq!(about.json()["project"]["name"], "web");
    assert_eq!(about.json()["pullRequestsOnly"], false);
    assert!(!about.text().contains(&ingest.key));
}

#[test]
fn every_other_route_and_method_is_an_error_as_json() {
    let ingest = IngestServer::new();
    let client = ingest.server.ingest();
    for (answer, status, expected, allow) in [
        (client.get("/", None), 404, "not_found", None),
        (
            client.get("/api/v1/projects", Some(&ingest.read_key)),
            404,
            "not_found",
            None,
        ),
        (
            client.get("/ingest/v1/reports/", Some(&ingest.key)),
            404,
            "not_found",
            None,
        ),
        (
            client.get("/ingest/v1/reports", Some(&ingest.key)),
            405,
            "method_not_allowed",
            Some("POST"),
        ),
        (
            client.post("/ingest/v1/key", &[], b"x"),
            405,
            "method_not_allowed",
            Some("GET, HEAD"),
        ),
    ] {
        assert_eq!((answer.status, code(&answer).as_str()), (status, expected));
        assert_eq!(answer.header("allow"), allow);
    }
    // The read API has no ingest routes.
    let answer = ingest
        .server
        .client()
        .get("/ingest/v1/key", Some(&ingest.read_key));
    assert_eq!(answer.status, 404);
}

#[test]
fn a_bad_report_or_field_is_refused_with_its_place() {
    let ingest = IngestServer::new();
    let send = |fields: &[(&str, &str)], name: &str, bytes: &[u8]| {
        ingest.send(&ingest.key, fields, &[(name, bytes)])
    };
    let broken = send(&[], "out/r.json", b"{\"config\": {}, \"suites\": [\n{]}");
    assert_refused(&broken, 422, "broken_report");
    assert_eq!(
        (&broken.json()["file"], &broken.json()["line"]),
        (&"out/r.json".into(), &2.into())
    );
    let unknown = send(&[], "notes.txt", b"hello");
    assert_refused(&unknown, 422, "unrecognised");
    assert_eq!(unknown.json()["file"], "notes.txt");
    let empty = send(
        &[],
        "r.xml",
        b"<testsuites><testsuite name=\"a\"></testsuite></testsuites>",
    );
    assert_refused(&empty, 422, "nothing_to_store");
    let mistyped = send(&[("brnach", "main")], "r.xml", PASSES.as_bytes());
    assert_refused(&mistyped, 400, "invalid_parameter");
    assert!(mistyped.text().contains("brnach"), "{}", mistyped.text());
    let unpackable = ingest.post(
        "/ingest/v1/reports",
        &ingest.key,
        &[("Content-Encoding", "br")],
        PASSES.as_bytes(),
    );
    assert_refused(&unpackable, 415, "unsupported_coding");
    let not_gzip = ingest.post(
        "/ingest/v1/reports",
        &ingest.key,
        &[("Content-Encoding", "gzip")],
        PASSES.as_bytes(),
    );
    assert_refused(&not_gzip, 400, "invalid_parameter");
    // Two jobs under one key: both reports are kept, and the answer warns.
    let ci = |job: &str| format!(r#"{{"provider": "github-actions", "job": "{job}"}}"#);
    let of_job = |job: &str| {
        [
            ("runKey", "b".to_owned()),
            ("suite", "e2e".to_owned()),
            ("ci", ci(job)),
        ]
    };
    let send_as = |job: &str, report: &str| {
        let fields = of_job(job);
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        send(&fields, "r.xml", report.as_bytes())
    };
    assert_eq!(send_as("one", PASSES).status, 201);
    let beside = send_as("two", FAILS);
    assert_eq!(beside.status, 201, "{}", beside.text());
    let answer = beside.json();
    assert_eq!(
        (&answer["status"], &answer["effect"]),
        (&json!("failed"), &json!("added"))
    );
    let warning = answer["warnings"].to_string();
    for word in ["the job \\\"one\\\"", "--suite", "--attempt 2"] {
        assert!(warning.contains(word), "{word}: {warning}");
    }
    assert_eq!(ingest.read("/runs")["total"], 1);
    // Another revision under one key is refused, by both names and the key.
    let other = send(
        &[("runKey", "b"), ("suite", "e2e"), ("commit", "c0ffee")],
        "r.xml",
        FAILS.as_bytes(),
    );
    assert_eq!(other.status, 201, "{}", other.text());
    let other = send(
        &[("runKey", "b"), ("suite", "e2e"), ("commit", "beef00")],
        "r.xml",
        PASSES.as_bytes(),
    );
    assert_refused(&other, 409, "revision_differs");
    for word in ["c0ffee", "beef00", "b e2e"] {
        assert!(other.text().contains(word), "{word}: {}", other.text());
    }
}

#[test]
fn many_shards_at_once_are_all_stored() {
    let ingest = IngestServer::new();
    std::thread::scope(|scope| {
        for index in 1..=12 {
            let ingest = &ingest;
            scope.spawn(move || {
                let shard = format!("{index}/12");
                let report = PASSES.replace("pays", &format!("pays {index}"));
                let fields = [("runKey", "build"), ("branch", "main"), ("shard", shard.as_str())];
                let answer = ingest.send(&ingest.key, &fields, &[("r.xml", report.as_bytes())]);
                assert_eq!(answer.status, 201, "{}", answer.text());
            });
        }
    });
    let runs = ingest.read("/runs");
    assert_eq!(
        (&runs["total"], &runs["runs"][0]["status"]),
        (&1.into(), &"passed".into())
    );
    let metrics = ingest.server.admin().get("/metrics", None).text();
    assert_contains(&metrics, "assay_ingest_uploads_stored_total{effect=\"added\"} 12");
    let last = format!(
        "assay_ingest_last_upload_timestamp_seconds{{project=\"{}\"}} ",
        ingest.project
    );
    let last = metrics.lines().find_map(|line| line.strip_prefix(&last)).unwrap();
    let ago = now().unix_ms() / 1_000 - last.parse::<i64>().unwrap();
    assert!((0..60).contains(&ago), "{ago}");
    for name in include_str!("../../../../docs/monitoring/ingest-alerts.yaml")
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("assay_"))
    {
        assert!(metrics.contains(name), "{name}");
    }
    // The last upload judges, possibly shortly after its answer.
    let began = Instant::now();
    let is_judged = "SELECT (judged = observed)::text FROM project";
    while ingest.database.text(is_judged).as_deref() != Some("true") {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "nothing judged the project"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let rebuilt = &ingest.cli.json(&["rebuild", "--project", "web"])["projects"][0]["result"];
    assert_eq!(rebuilt["verdictsChanged"], 0, "{rebuilt}");
    assert_contains(&metrics, "assay_ingest_uploads_waiting 0");
    assert_contains(&metrics, "assay_ingest_memory_reserved_bytes 0");
}
