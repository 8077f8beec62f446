//! Decisions of the gate that are stored: on the pages of the run, in the list of uploads, and with an ingest key.

use assay_testkit::{Server, assert_contains};
use serde_json::Value;

use crate::{
    gate::{BROKEN, Job, TIMEOUT, ingest},
    ingest::IngestServer,
};

/// The pages over a database, signed in.
pub(crate) struct Pages {
    pub(crate) server: Server,
    cookie: String,
    project: String,
}

impl Pages {
    fn of(ingest: &IngestServer) -> Self {
        Self::over(ingest.database.url(), &ingest.read_key, &ingest.project)
    }

    pub(crate) fn over(database_url: &str, read_key: &str, project: &str) -> Self {
        let server = Server::start_with_front(database_url, &[]);
        Self {
            cookie: server.front().sign_in(read_key),
            project: project.to_owned(),
            server,
        }
    }

    /// A page below a run.
    pub(crate) fn run(&self, run: &str, rest: &str) -> String {
        self.page(&format!("/runs/{run}{rest}"))
    }

    /// The status of a page below the project.
    pub(crate) fn status(&self, path: &str) -> u16 {
        let path = format!("/p/{}{path}", self.project);
        self.server
            .front()
            .get_with(&path, &[("Cookie", &self.cookie)])
            .status
    }

    /// A page below the project.
    pub(crate) fn page(&self, path: &str) -> String {
        let path = format!("/p/{}{path}", self.project);
        let page = self.server.front().get_with(&path, &[("Cookie", &self.cookie)]);
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        page.text()
    }
}

/// The id of the newest run.
fn newest(ingest: &IngestServer) -> String {
    let number = |run: &&Value| run["runNumber"].as_i64().unwrap();
    let runs = ingest.read("/runs");
    let newest = runs["runs"].as_array().unwrap().iter().max_by_key(number);
    newest.unwrap()["id"].as_str().unwrap().to_owned()
}

const MARK: &str = "Excused</span> in CI, then as Flake: ";

#[test]
fn what_a_gate_excused_is_shown_on_the_pages_and_listed_with_the_upload() {
    let ingest = ingest();
    let job = Job::of(&ingest);
    let pages = Pages::of(&ingest);
    let (status, stderr) = job.wrapped(&[("pays", None), ("odd", TIMEOUT)], ("g1", 1), &["--gate"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(!stderr.contains("not stored"), "{stderr}");
    let run = newest(&ingest);
    let page = pages.run(&run, "");
    let sentence = "The gate excused 1 of 1 failed test of the run and let it pass.";
    assert_contains(&page, sentence);
    assert_eq!(page.matches(MARK).count(), 1, "{page}");
    let reason = "Failed in 5 of ";
    assert_contains(&page, &format!("{MARK}<bdi>{reason}"));
    let all = pages.run(&run, "?show=all");
    assert_eq!(all.matches("Excused</span>").count(), 1, "{all}");
    let test = "/test?name=cart%20%3E%20odd&file=cart.test.ts";
    assert!(pages.run(&run, test).contains(MARK));
    let other = "/test?name=cart%20%3E%20pays&file=cart.test.ts";
    assert!(!pages.run(&run, other).contains(MARK));

    // A run that does not pass: one of its four failures is excused.
    let (status, stderr) = job.wrapped(&BROKEN, ("g2", 1), &["--gate"]);
    assert_eq!(status, Some(1), "{stderr}");
    let page = pages.run(&newest(&ingest), "");
    let sentence = "The gate excused 1 of 4 failed tests of the run and did not let it pass.";
    assert_contains(&page, sentence);
    assert_eq!(page.matches(MARK).count(), 1, "{page}");

    let (status, stderr) = job.wrapped(&[("pays", None)], ("g3", 0), &["--gate"]);
    assert_eq!(status, Some(0), "{stderr}");
    let page = pages.run(&newest(&ingest), "");
    assert_contains(&page, "The gate let the run pass, because no test failed.");
    // Without the gate there is no decision.
    job.wrapped(&[("pays", None)], ("g4", 0), &[]);
    assert!(
        !pages
            .run(&newest(&ingest), "")
            .contains("What the gate decided in CI")
    );

    let listed = ingest.cli.json(&["uploads", "--project", "web", "--limit", "4"]);
    let decisions: Vec<_> = listed["uploads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|upload| upload["decision"]["outcome"].clone())
        .collect();
    assert_eq!(
        decisions,
        [Value::Null, "clean".into(), "blocked".into(), "excused".into()]
    );
    let excused = &listed["uploads"][3]["decision"]["excused"][0];
    assert_eq!(
        (&excused["testName"], &excused["cause"]),
        (&"cart > odd".into(), &"flake".into())
    );
    assert!(
        excused["reason"].as_str().unwrap().starts_with(reason),
        "{excused}"
    );
    let output = ingest.cli.run(&["uploads", "--project", "web", "--limit", "4"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for expected in ["excused, excused 1 of 1", "blocked, excused 1 of 4", "clean"] {
        assert_contains(&text, expected);
    }
}

#[test]
fn a_decision_that_cannot_be_stored_is_a_warning_and_changes_no_exit_status() {
    let ingest = ingest();
    let job = Job::of(&ingest);
    ingest
        .database
        .execute("ALTER TABLE upload ADD CONSTRAINT none CHECK (decision IS NULL)");
    let warning =
        "assay: warning: the gate's decision is not stored, so the pages do not show what it excused: ";
    let flags = ["--gate", "--retry-for", "0"];
    let (status, stderr) = job.wrapped(&[("pays", None), ("odd", TIMEOUT)], ("g1", 1), &flags);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stderr.contains(warning) && stderr.contains("(500 internal_error)"),
        "{stderr}"
    );
    let (status, stderr) = job.wrapped(&BROKEN, ("g2", 7), &flags);
    assert_eq!(status, Some(7), "{stderr}");
    assert_contains(&stderr, warning);
    // A run that an import stored has no upload.
    ingest.database.execute("DELETE FROM upload");
    let run = newest(&ingest);
    let output = job.ask_with(&run, &[("ASSAY_INGEST_KEY", &ingest.key)]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains(warning) && stderr.contains("(404 unknown_run)"),
        "{stderr}"
    );
}

#[test]
fn a_decision_on_a_stored_run_is_stored_with_an_ingest_key() {
    let ingest = ingest();
    let job = Job::of(&ingest);
    // A report that is judged without being stored has no upload.
    let (status, _) = job.gate(&[("pays", None), ("odd", TIMEOUT)], &[]);
    assert_eq!(status, Some(0));
    let stored = ingest.database.text("SELECT count(decision) FROM upload");
    assert_eq!(stored.as_deref(), Some("0"));
    let pages = Pages::of(&ingest);
    let run = job.shard("s1", "1/2", &[("pays", None), ("odd", TIMEOUT)]);
    job.shard("s1", "2/2", &[("old", None)]);
    let output = job.ask_with(&run, &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_contains(
        &stderr,
        "the pages do not show what it excused: ASSAY_INGEST_KEY is not set",
    );
    assert!(!pages.run(&run, "").contains(MARK));
    let output = job.ask_with(&run, &[("ASSAY_INGEST_KEY", &ingest.key)]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
    let page = pages.run(&run, "");
    assert_contains(
        &page,
        "The gate excused 1 of 1 failed test of the run and let it pass.",
    );
    assert_contains(&page, MARK);
    let wrong = job.ask_with(&run, &[("ASSAY_INGEST_KEY", "no key")]);
    let stderr = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(0), "{stderr}");
    assert_contains(&stderr, "excused: ASSAY_INGEST_KEY contains no key");
}
