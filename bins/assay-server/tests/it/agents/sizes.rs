//! Budgets of the tools over data whose answers of the read API are large: a run of 24 MB, a history of 126 MB, and a
//! signature with 7,000 occurrences.

use assay_testkit::{insert_results, text};
use serde_json::{Value, json};

use super::Agents;

/// Tests of the large run, and those of them that failed with one error.
const TESTS: usize = 24_000;
const FAILED: usize = 7_000;
/// Runs of the test with the long history.
const RUNS: usize = 86_000;

/// A test's name, of a thousand characters.
fn name(index: usize) -> String {
    format!("t{index:05} {}", "n".repeat(993))
}

/// Imports the run, and stores the history of its first test.
fn fill(agents: &Agents) -> Value {
    let case = |index: usize| {
        let failure = (index < FAILED).then_some("<failure message=\"it broke\">at a.test.ts:3:1</failure>");
        let (name, failure) = (name(index), failure.unwrap_or_default());
        format!(
            "<testcase classname=\"c\" name=\"{name}\" file=\"a.test.ts\" time=\"0.01\">{failure}</testcase>"
        )
    };
    let cases: String = (0..TESTS).map(case).collect();
    let report = format!("<testsuite>{cases}</testsuite>");
    let flags = ["--branch", "topic", "--commit", "bb00c0ffee", "--run-key", "1"];
    let imported = agents.world.import_report(5, &report, &flags);
    let project = &agents.world.project;
    agents.world.database.execute(&format!(
        "SELECT assay_create_partition(now() - day * interval '1 day', now()) FROM generate_series(0, 90) AS day;
         UPDATE project SET runs = runs + {RUNS} WHERE id = '{project}';
         INSERT INTO run (project_id, number, id, key_hash, sharded, branch, suite, status, started_at, shards_received, \
                 total, passed, failed, skipped, recovered) \
             SELECT '{project}', 1 + n, gen_random_uuid(), sha256(convert_to('history ' || n, 'UTF8')), false, repeat('\u{1f33f}', 200), \
                 repeat('\u{1f9ea}', 100), 'passed', now() - n * interval '90 seconds', 1, 1, 1, 0, 0, 0 \
             FROM generate_series(1, {RUNS}) AS n;
         {}
         ANALYZE",
        insert_results(
            "SELECT run.project_id, run.started_at, 5, run.number, test.ordinal, NULL, 0, 0, 0, 0 FROM run, test \
             WHERE run.number > 1 AND test.name LIKE '%t00000 %'"
        )
    ));
    imported["runId"].clone()
}

#[test]
fn answers_over_large_data_fit_the_budget() {
    let agents = Agents::empty();
    let run = fill(&agents);
    let id = text(&run);
    let failures = agents.world.get(&format!("/runs/{id}/failures"));
    let failure = &failures["failures"][0];
    let (fingerprint, test) = (text(&failure["fingerprint"]), format!("c > {}", name(0)));
    let path = |below: &str| format!("/projects/{}{below}", agents.world.project);
    for (below, megabytes) in [
        (format!("/runs/{id}"), 24),
        (
            format!("/tests/{}?days=90", test.replace(' ', "%20").replace('>', "%3E")),
            126,
        ),
    ] {
        let bytes = agents.world.ask(&path(&below)).body.len();
        assert!(bytes >= megabytes * 1_000_000, "{below}: {bytes}");
    }
    // The read API shows the beginning of so large a signature.
    let signature = agents.world.get(&format!("/errors/{fingerprint}"));
    assert_eq!(signature["signature"]["occurrenceCount"], FAILED);
    for (tool, arguments, shows) in [
        ("explain_failures", json!({"run": run}), "failures"),
        (
            "explain_failures",
            json!({"run": run, "test": "t06999"}),
            "failures",
        ),
        (
            "explain_failures",
            json!({"failures": [{"test": test, "message": "it broke"}]}),
            "failures",
        ),
        ("explain_test", json!({"test": test, "days": 90}), "outcomes"),
        ("explain_test", json!({"test": "T00000"}), "outcomes"),
        ("show_failure", json!({"run": run, "test": test}), "attempts"),
        ("list_errors", json!({"days": 90}), "errors"),
        ("list_errors", json!({"fingerprint": fingerprint}), "runs"),
        ("list_flaky", json!({}), "total"),
        ("list_runs", json!({"limit": 50}), "runs"),
    ] {
        for bytes in [1_000, 8_000, 32_000] {
            let mut arguments = arguments.clone();
            arguments["maxBytes"] = bytes.into();
            let (failed, answer_text) = agents.call(tool, arguments);
            assert!(
                !failed && answer_text.len() <= bytes,
                "{tool}, {bytes}: {} bytes: {answer_text}",
                answer_text.len()
            );
            let answer: Value = serde_json::from_str(&answer_text).unwrap();
            assert!(
                bytes < 8_000 || answer.get(shows).is_some(),
                "{tool}: {answer_text}"
            );
        }
    }
}
