//! The answer of a commit and of a pull request: the route and the pages.

use assay_testkit::text;
use serde_json::{Value, json};

use crate::{
    gate_decisions::Pages,
    ingest::{FAILS, Intake, PASSES},
};

const HEAD: &str = "bb00c0ffee";

/// Sends the report of a suite of the pull request 7, and returns the run.
fn send(intake: &Intake, key: &str, (suite, commit): (&str, &str), report: &str) -> String {
    let fields = [
        ("branch", "topic"),
        ("commit", commit),
        ("suite", suite),
        ("runKey", commit),
        ("pullRequest", "7"),
        ("runUrl", "https://github.com/shop/web/actions/runs/7"),
    ];
    let answer = intake.send(key, &fields, &[("r.xml", report.as_bytes())]);
    assert_eq!(answer.status, 201, "{}", answer.text());
    text(&answer.json()["runId"])
}

#[test]
fn all_suites_of_a_commit_are_one_answer() {
    let intake = Intake::new();
    send(&intake, &intake.key, ("unit", "aa00c0ffee"), FAILS);
    send(&intake, &intake.key, ("unit", HEAD), PASSES);
    send(&intake, &intake.key, ("e2e", HEAD), FAILS);
    let answer = intake.read(&format!("/commits/{HEAD}"));
    let suites = |answer: &Value| {
        let runs = answer["runs"].as_array().unwrap();
        let mut suites: Vec<String> = runs.iter().map(|run| text(&run["suite"])).collect();
        suites.sort();
        suites
    };
    assert_eq!(suites(&answer), ["e2e", "unit"]);
    assert_eq!(
        (
            &answer["status"],
            &answer["counts"]["total"],
            &answer["commit"]["pullRequestNumber"]
        ),
        (&json!("failed"), &json!(2), &json!(7))
    );
    let failures = answer["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1, "{answer}");
    assert_eq!(
        (&failures[0]["suite"], &failures[0]["failure"]["filePath"]),
        (&json!("e2e"), &json!("cart.test.ts"))
    );
    assert_eq!(suites(&intake.read("/commits/BB00")), ["e2e", "unit"]);
    let of_pull_request = intake.read("/runs?pullRequest=7");
    assert_eq!(of_pull_request["total"], 3);
    assert_eq!(intake.read("/runs?pullRequest=8")["total"], 0);
}

#[test]
fn the_pages_of_a_commit_and_a_pull_request_show_error_place_and_cause() {
    let intake = Intake::new();
    send(&intake, &intake.key, ("unit", "aa00c0ffee"), FAILS);
    send(&intake, &intake.key, ("unit", HEAD), PASSES);
    let run = send(&intake, &intake.key, ("e2e", HEAD), FAILS);
    let pages = Pages::over(intake.database.url(), &intake.read_key, &intake.project);
    let commit = pages.page(&format!("/commit/{HEAD}"));
    for expected in [
        "Commit bb00c0ff",
        "expected 3, got 4",
        "cart.test.ts",
        "suite <b><bdi>e2e</bdi></b>",
        "https://github.com/shop/web/commit/bb00c0ffee",
        "Whose failures?",
        &format!("/runs/{run}/test?name="),
        "/pull/7",
    ] {
        assert!(commit.contains(expected), "{expected}: {commit}");
    }
    let pull_request = pages.page("/pull/7");
    assert!(
        pull_request.contains("Pull request 7") && pull_request.contains("Earlier commits"),
        "{pull_request}"
    );
    assert!(pull_request.contains("/commit/aa00c0ffee"), "{pull_request}");
    assert!(
        pages.page("").contains(&format!("/commit/{HEAD}")),
        "the overview links to the newest commit"
    );
    for missing in ["/commit/dead", "/commit/xyz", "/pull/8", "/pull/0", "/pull/+7"] {
        assert_eq!(pages.status(missing), 404, "{missing}");
    }
}
