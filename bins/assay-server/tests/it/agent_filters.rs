//! The filters of the tools for coding agents: each answer has the matching entries with the values of the read API.

use assay_testkit::text;
use serde_json::{Value, json};

use crate::agents::{Agents, cases};

const DAY: i64 = 24 * 60;

/// A case of a report: its file, its name, its seconds, and the message of its failure.
type Case<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

const ASSERTION: &str = "expected 3, got 4";
const TIMEOUT: &str = "TimeoutError: locator.click: Timeout 5000ms exceeded.";
const NETWORK: &str = "Error: connect ECONNREFUSED 10.0.0.1:5432";

fn import(agents: &Agents, minutes: i64, branch: &str, flags: &[&str], cases: &[Case<'_>]) {
    let case = |(file, name, seconds, failure): &Case<'_>| {
        let failure =
            failure.map(|message| format!("<failure message=\"{message}\">at {file}:3:1</failure>"));
        let failure = failure.unwrap_or_default();
        format!(
            "<testcase classname=\"shop\" name=\"{name}\" file=\"{file}\" time=\"{seconds}\">{failure}</testcase>"
        )
    };
    let cases: String = cases.iter().map(case).collect();
    let report = format!("<testsuite>{cases}</testsuite>");
    let (key, commit) = (minutes.to_string(), format!("{minutes:04}c0ffee"));
    let usual = ["--branch", branch, "--run-key", &key, "--commit", &commit];
    agents
        .world
        .import_report(minutes, &report, &[&usual[..], flags].concat());
}

/// Twelve runs of main with two flaky tests, one older run, and one of a pull request that fails for another reason.
fn shop() -> Agents {
    let agents = Agents::empty();
    import(
        &agents,
        12 * DAY,
        "main",
        &[],
        &[("wait.test.ts", "waits", "0.010", Some(TIMEOUT))],
    );
    for index in 0..12 {
        let failed = |fails: bool| fails.then_some(ASSERTION);
        let cases = [
            ("slow.test.ts", "drags", "10.0", failed(index % 3 == 2)),
            ("quick.test.ts", "hurries", "0.010", failed(index % 2 == 1)),
            ("wait.test.ts", "waits", "0.010", None),
        ];
        import(&agents, 1_200 - 60 * index, "main", &[], &cases);
    }
    let cases = [("net.test.ts", "connects", "0.010", Some(NETWORK))];
    import(&agents, 30, "topic", &["--pr", "7"], &cases);
    agents
}

/// A field of each entry.
fn each(entries: &Value, field: &str) -> Vec<String> {
    let entries = entries.as_array().map_or(&[][..], Vec::as_slice);
    entries.iter().map(|entry| text(&entry[field])).collect()
}

#[test]
fn errors_are_listed_by_period_branch_text_and_category() {
    let agents = shop();
    for case in cases("errors") {
        let (arguments, query) = (case[0].clone(), text(&case[1]));
        let answer = agents.answer("list_errors", arguments);
        let read = agents.world.get(&format!("/errors?{query}"));
        assert_eq!(answer["total"], read["page"]["total"], "{query}");
        let mut listed = each(&answer["errors"], "category");
        listed.sort_unstable();
        listed.dedup();
        assert_eq!(json!(listed), case[2], "{query}: {answer:#}");
        for (ours, theirs) in [("fingerprint", "fingerprint"), ("title", "title")] {
            assert_eq!(
                each(&answer["errors"], ours),
                each(&read["errors"], theirs),
                "{query}"
            );
        }
    }
    // The counts are of the branch and the period too.
    let all = agents.answer("list_errors", json!({"search": "quick.test"}));
    assert_eq!(all["errors"][0]["occurrences"], 6, "{all:#}");
    let (failed, answer_text) = agents.call("list_errors", json!({"category": "assertions"}));
    assert!(
        failed && answer_text.contains("assertion, timeout, element"),
        "{answer_text}"
    );
}

#[test]
fn runs_are_listed_by_commit_pull_request_branch_and_status() {
    let agents = shop();
    for case in cases("runs") {
        let (arguments, total) = (case[0].clone(), case[1].as_u64().unwrap());
        let answer = agents.answer("list_runs", arguments.clone());
        assert_eq!(answer["total"], total, "{arguments}: {answer:#}");
        let runs = answer["runs"].as_array().map_or(&[][..], Vec::as_slice);
        let limit = arguments["limit"].as_u64().unwrap_or(10).min(total);
        assert_eq!(runs.len() as u64, limit, "{arguments}");
        let first = runs.first().map_or(&Value::Null, |run| &run["number"]);
        assert_eq!(first, &case[2], "{arguments}");
        for run in runs {
            for (argument, field) in [
                ("branch", "branch"),
                ("pullRequest", "pullRequest"),
                ("status", "status"),
            ] {
                if let Some(value) = arguments.get(argument) {
                    assert_eq!(&run[field], value, "{arguments}: {run}");
                }
            }
        }
    }
    let (failed, answer_text) = agents.call("list_runs", json!({"status": "flaky"}));
    assert!(failed && answer_text.contains("passed, failed"), "{answer_text}");
    let (failed, answer_text) = agents.call("list_runs", json!({"limit": 51}));
    assert!(failed && answer_text.contains("from 1 to 50"), "{answer_text}");
}

#[test]
fn flaky_tests_are_sorted_and_searched() {
    let agents = shop();
    for case in cases("flaky") {
        let (arguments, query, tests) = (case[0].clone(), text(&case[1]), &case[2]);
        let answer = agents.answer("list_flaky", arguments);
        let read = agents.world.get(&format!("/flaky?perPage=10{query}"));
        assert_eq!(
            json!(each(&answer["tests"], "test")),
            *tests,
            "{query}: {answer:#}"
        );
        assert_eq!(json!(each(&read["tests"], "testName")), *tests, "{query}");
        assert_eq!(answer["total"], tests.as_array().unwrap().len(), "{query}");
    }
    let (failed, answer_text) = agents.call("list_flaky", json!({"sort": "name"}));
    assert!(
        failed && answer_text.contains("timeLost, rate, impact"),
        "{answer_text}"
    );
}

#[test]
fn a_test_is_explained_by_file_and_period() {
    let agents = Agents::empty();
    for (minutes, one, other) in [
        (12 * DAY, Some(ASSERTION), None),
        (300, None, Some(TIMEOUT)),
        (200, None, None),
        (100, None, Some(TIMEOUT)),
    ] {
        let cases = [
            ("one.test.ts", "pays", "0.010", one),
            ("other.test.ts", "pays", "0.010", other),
        ];
        import(&agents, minutes, "main", &[], &cases);
    }
    let (failed, answer_text) = agents.call("explain_test", json!({"test": "shop > pays"}));
    assert!(
        failed
            && answer_text.contains("name one with `file`")
            && answer_text.contains("\"one.test.ts\", \"other.test.ts\""),
        "{answer_text}"
    );
    for (file, days, outcomes, first, error) in [
        ("one.test.ts", 30, "FPPP", Some(1), Some("expected 3")),
        ("one.test.ts", 7, "PPP", None, None),
        ("other.test.ts", 30, "PFPF", Some(2), Some("Timeout")),
        ("other.test.ts", 7, "FPF", Some(2), Some("Timeout")),
    ] {
        let arguments = json!({"test": "shop > pays", "file": file, "days": days});
        let answer = agents.answer("explain_test", arguments);
        assert_eq!((&answer["file"], &answer["days"]), (&json!(file), &json!(days)));
        assert_eq!(answer["outcomes"]["main"], outcomes, "{answer:#}");
        assert_eq!(answer["firstFailure"]["number"].as_i64(), first, "{answer:#}");
        let errors = each(&answer["signatures"], "error");
        assert_eq!(errors.len(), usize::from(error.is_some()), "{answer:#}");
        assert!(error.is_none_or(|error| errors[0].contains(error)), "{answer:#}");
        assert_eq!(
            each(&answer["lastFailures"], "message").len(),
            outcomes.matches('F').count(),
            "{answer:#}"
        );
    }
    let unknown = json!({"test": "shop > pays", "file": "none.test.ts"});
    let (failed, answer_text) = agents.call("explain_test", unknown);
    assert!(failed, "{answer_text}");
}

#[test]
fn errors_are_listed_page_by_page() {
    let agents = Agents::empty();
    let errors: Vec<String> = ('a'..='l').map(|word| format!("no such {word}rticle")).collect();
    let cases: Vec<Case<'_>> = errors
        .iter()
        .map(|error| ("shop.test.ts", error.as_str(), "0.010", Some(error.as_str())))
        .collect();
    import(&agents, 30, "main", &[], &cases);
    let mut arguments = json!({"search": "rticle", "days": 30});
    let mut listed = Vec::new();
    for (page, entries) in [(1, 10), (2, 2)] {
        let answer = agents.answer("list_errors", arguments.clone());
        let read = agents
            .world
            .get(&format!("/errors?days=30&search=rticle&perPage=10&page={page}"));
        let fingerprints = each(&answer["errors"], "fingerprint");
        assert_eq!(fingerprints, each(&read["errors"], "fingerprint"), "{answer:#}");
        assert_eq!(fingerprints.len(), entries, "{answer:#}");
        assert_eq!(
            (&answer["total"], &answer["page"], &answer["pages"]),
            (&json!(12), &json!(page), &json!(2))
        );
        listed.extend(fingerprints);
        // The call that the answer names returns the next page with the same filters.
        let next = &answer["next"];
        assert_eq!(next.is_object(), page == 1, "{answer:#}");
        if page == 1 {
            assert_eq!(next["tool"], "list_errors");
            arguments = next["arguments"].clone();
        }
    }
    listed.sort_unstable();
    listed.dedup();
    assert_eq!(listed.len(), 12, "each error is on one page");
    let (failed, answer_text) = agents.call("list_errors", json!({"page": 0}));
    assert!(failed && answer_text.contains("`page` must be"), "{answer_text}");
}
