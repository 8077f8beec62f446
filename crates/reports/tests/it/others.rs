//! CTRF, Jest, Vitest and Allure: real reports of the suites in testdata/reports/suites, and made-up ones.

use assay_domain::{attempt::AttemptStatus, recording::ShardIndex, run::RunState};
use serde_json::json;

use crate::{
    render::render,
    support::{self, SHOP, plain, rooted},
};

const JS: &str = "/home/runner/work/acme-shop/acme-js";
const VITEST: &str = "/home/runner/work/acme-shop/acme-vitest";
const MOCHA: &str = "/home/runner/work/acme-shop/acme-mocha";
const PY: &str = "/home/runner/work/acme-shop/acme-py";

#[test]
fn real_ctrf_reports_are_read_as_their_suites_ran() {
    for (name, root) in [
        ("jest", JS),
        ("mocha", MOCHA),
        ("playwright-full", SHOP),
        ("playwright-green", SHOP),
        ("playwright-interrupted", SHOP),
        ("playwright-sigint", SHOP),
        ("pytest", PY),
        ("pytest-collection-error", PY),
    ] {
        let report = rooted(vec![support::file(&format!("ctrf/{name}.json"))], root);
        insta::assert_snapshot!(format!("ctrf-{name}"), render(&report));
    }
}

#[test]
fn real_jest_and_vitest_reports_are_read_as_their_suites_ran() {
    for (name, root) in [
        ("jest/jest", JS),
        ("vitest/vitest", VITEST),
        ("vitest/vitest-shard-1-of-2", VITEST),
        ("vitest/vitest-shard-2-of-2", VITEST),
    ] {
        let report = rooted(vec![support::file(&format!("{name}.json"))], root);
        insta::assert_snapshot!(name.rsplit('/').next().unwrap(), render(&report));
    }
}

#[test]
fn real_allure_folders_are_read_as_their_suites_ran() {
    for (name, root) in [("allure-playwright", SHOP), ("allure-pytest", PY)] {
        let mut report = rooted(support::files_in(name), root);
        report.tests.sort_by(|a, b| a.test.cmp(&b.test));
        insta::assert_snapshot!(name, render(&report));
    }
}

#[test]
fn playwright_tests_have_equal_names_in_ctrf_and_json() {
    let names = |file: &str| {
        let report = rooted(vec![support::file(file)], SHOP);
        let mut names: Vec<_> = report
            .tests
            .into_iter()
            .map(|test| (test.test, test.attempts.last().unwrap().browser.clone()))
            .collect();
        names.sort();
        names
    };
    let json = names("playwright/full.json");
    let ctrf = names("ctrf/playwright-full.json");
    // CTRF writes paths relative to the checkout, JSON relative to the test folder. With a known root both are the
    // same.
    assert_eq!(ctrf, json);
}

fn read(value: &serde_json::Value) -> assay_reports::Report {
    plain(vec![support::inline("report.json", value.to_string())]).unwrap()
}

fn statuses(report: &assay_reports::Report) -> Vec<Vec<&'static str>> {
    report
        .tests
        .iter()
        .map(|test| {
            test.attempts
                .iter()
                .map(|attempt| attempt.status.as_str())
                .collect()
        })
        .collect()
}

#[test]
fn ctrf_retries_without_detail_are_failed_attempts() {
    let report = read(
        &json!({"results": {"tool": {"name": "cypress"}, "summary": {}, "tests": [
            {"name": "recovered", "status": "passed", "retries": 2, "duration": 1.4, "start": 1795201889},
            {"name": "broken", "status": "failed", "retries": "1", "message": "x"},
            {"name": "flaky without a count", "status": "passed", "flaky": true},
            {"name": "skipped", "status": "skipped", "retries": 2, "message": "why"},
            {"name": "pending", "status": "pending"},
            {"name": "other", "status": "other"},
            {"name": "told", "status": "passed", "retries": 2, "suite": ["a", "b"],
             "retryAttempts": [{"attempt": 2, "status": "failed", "message": "second"}, {"attempt": 1, "status": "failed", "message": "first"}]},
            {"name": "hung", "status": "failed", "rawStatus": "timedOut"},
            {"status": "passed"},
        ]}}),
    );
    assert_eq!(
        statuses(&report),
        [
            vec!["failed", "failed", "passed"],
            vec!["failed", "failed"],
            vec!["failed", "passed"],
            vec!["skipped"],
            vec!["skipped"],
            vec!["skipped"],
            vec!["failed", "failed", "passed"],
            vec!["timedOut"],
            vec!["passed"]
        ]
    );
    assert_eq!(report.tests[0].attempts[0].duration_ms, None);
    assert_eq!(
        report.tests[0].attempts[2].started_at.unwrap().to_string(),
        "2026-11-20T19:11:29.000Z"
    );
    assert!(report.tests[3].attempts[0].errors.is_empty());
    assert_eq!(report.tests[6].test.name, "a > b > told");
    assert_eq!(
        report.tests[6].attempts[0].errors[0].message.as_deref(),
        Some("first")
    );
    assert_eq!(report.tests[8].test.name, "(no name)");
}

#[test]
fn ctrf_has_branch_commit_shard_and_run() {
    let report = read(
        &json!({"reportFormat": "CTRF", "runId": "r-1", "results": {"tests": [],
        "environment": {"branchName": "main", "commit": "abc", "shardId": "2/3"}}}),
    );
    assert_eq!(report.run_key.as_deref(), Some("r-1"));
    assert_eq!(
        report.shard,
        Some(ShardIndex {
            index: 2,
            total: Some(3)
        })
    );
    assert_eq!(report.context.branch.as_deref(), Some("main"));
    assert_eq!(report.context.commit_sha.as_deref(), Some("abc"));
}

#[test]
fn vitest_errors_at_a_repeated_location_begin_the_next_attempt() {
    let at = |message: &str, line: u32| format!("AssertionError: {message}\n    at /r/a.test.js:{line}:5");
    let test = |status: &str, messages: Vec<String>| json!({"ancestorTitles": [], "title": "t", "status": status, "failureMessages": messages});
    let attempts = |test: serde_json::Value| {
        let report = read(
            &json!({"success": false, "testResults": [{"name": "/r/a.test.js", "status": "failed", "assertionResults": [test]}]}),
        );
        let errors =
            |attempt: &assay_domain::attempt::Attempt| (attempt.status.as_str(), attempt.errors.len());
        report.tests[0].attempts.iter().map(errors).collect::<Vec<_>>()
    };
    assert_eq!(
        attempts(test("failed", vec![at("1", 3), at("2", 3), at("3", 3)])),
        [("failed", 1); 3]
    );
    assert_eq!(
        attempts(test(
            "failed",
            vec![at("a", 3), at("b", 4), at("a", 3), at("b", 4)]
        )),
        [("failed", 2); 2]
    );
    assert_eq!(
        attempts(test("passed", vec![at("1", 3)])),
        [("failed", 1), ("passed", 0)]
    );
    assert_eq!(attempts(test("passed", vec![])), [("passed", 0)]);
    assert_eq!(attempts(test("skipped", vec![at("note", 3)])), [("skipped", 0)]);
    assert_eq!(
        attempts(test(
            "failed",
            vec!["Error: STACK_TRACE_ERROR\n    at /r/a.test.js:1:1".into()]
        )),
        [("timedOut", 1)]
    );
}

/// As Vitest 5 writes them when a worker is killed within `c`. Jest calls skipped tests pending.
#[test]
fn a_pending_test_of_vitest_did_not_end() {
    let test = |title: &str, status: &str| json!({"ancestorTitles": [], "title": title, "status": status, "failureMessages": []});
    let tests = [
        test("a", "passed"),
        test("b", "failed"),
        test("c", "pending"),
        test("d", "skipped"),
    ];
    let mut text = json!({"success": false, "testResults": [{"name": "/r/a.test.js", "status": "failed", "assertionResults": tests}]});
    let report = read(&text);
    assert_eq!((report.state, report.tests.len()), (RunState::Interrupted, 4));
    text["numRuntimeErrorTestSuites"] = 0.into();
    assert_eq!(read(&text).state, RunState::Completed);
    text["testResults"][0]["assertionResults"][2]["status"] = "todo".into();
    text.as_object_mut().unwrap().remove("numRuntimeErrorTestSuites");
    assert_eq!(read(&text).state, RunState::Completed);
}

#[test]
fn a_run_that_is_marked_as_failed_does_not_pass() {
    let passed = json!({"ancestorTitles": [], "title": "t", "status": "passed", "failureMessages": []});
    let report = read(
        &json!({"success": false, "testResults": [{"name": "/r/a.test.js", "status": "passed", "assertionResults": [passed]}]}),
    );
    assert!(
        report.errors[0]
            .message
            .as_deref()
            .unwrap()
            .contains("says \"success: false\", and none of its results failed")
    );
    let report = read(
        &json!({"success": true, "wasInterrupted": true, "testResults": [{"assertionResults": [passed]}]}),
    );
    assert_eq!(report.errors, []);
    assert_eq!(report.state, RunState::Interrupted);
}

#[test]
fn allure_parameters_distinguish_tests_and_retries_do_not() {
    let result = |history: &str, status: &str, start: u64, sku: &str| {
        json!({"uuid": "u", "historyId": history, "name": "adds", "fullName": "org.shop.CartTest.adds", "status": status, "start": start,
               "stop": start + 5, "labels": [{"name": "testClass", "value": "org.shop.CartTest"}], "parameters": [{"name": "sku", "value": sku}]})
    };
    let files = [
        ("r/1-result.json", result("a", "passed", 1_795_201_890_000, "A1")),
        ("r/2-result.json", result("a", "broken", 1_795_201_889_000, "A1")),
        ("r/3-result.json", result("b", "unknown", 1_795_201_889_000, "B2")),
        ("r/4-container.json", json!({"uuid": "c", "children": []})),
    ];
    let files = files
        .iter()
        .map(|(name, value)| support::inline(name, value.to_string()))
        .collect();
    let report = plain(files).unwrap();
    assert_eq!(report.tests[0].test.name, "org.shop.CartTest > adds [A1]");
    assert_eq!(report.tests[1].test.name, "org.shop.CartTest > adds [B2]");
    assert_eq!(statuses(&report), [vec!["failed", "passed"], vec!["skipped"]]);
    assert_eq!(report.tests[0].attempts[1].duration_ms, Some(5));
}

#[test]
fn a_folder_of_allure_or_surefire_results_is_one_run_among_others() {
    let mut files = support::files_in("allure-playwright");
    files.retain(|file| assay_reports::looks_like_report(&file.bytes).is_some());
    files.push(support::file("ctrf/mocha.json"));
    files.extend(support::files_in("surefire"));
    let runs = assay_reports::read_each(files, &assay_reports::Options::default()).unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    assert_eq!(names, ["allure-playwright", "ctrf/mocha.json", "surefire"]);
    let flaky = runs[0]
        .report
        .tests
        .iter()
        .find(|test| test.test.name.ends_with("second try"))
        .unwrap();
    let statuses: Vec<_> = flaky.attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!(
        statuses,
        [
            AttemptStatus::Failed,
            AttemptStatus::Passed,
            AttemptStatus::Passed
        ]
    );
}

#[test]
fn an_error_without_text_in_vitest_1_is_still_a_failure() {
    let text = json!({
        "numTotalTestSuites": 1, "success": false, "testResults": [{
            "name": "/shop/a.test.js", "status": "failed", "message": "", "assertionResults": [
                {"ancestorTitles": [""], "title": "throws undefined", "status": "failed", "failureMessages": [null]},
                {"ancestorTitles": ["", null], "title": "passes", "status": "passed", "failureMessages": []},
                null,
            ],
        }],
    });
    let report = plain(vec![support::inline("vitest.json", text.to_string())]).unwrap();
    let ends: Vec<_> = report
        .tests
        .iter()
        .map(|test| (test.test.name.as_str(), test.attempts.last().unwrap().status))
        .collect();
    assert_eq!(
        ends,
        [
            ("throws undefined", AttemptStatus::Failed),
            ("passes", AttemptStatus::Passed)
        ]
    );
}

#[test]
fn the_nameless_test_that_jest_junit_adds_for_a_file_that_failed_to_load_is_ignored() {
    let text = json!({
        "numRuntimeErrorTestSuites": 1, "success": false, "testResults": [{
            "name": "/shop/load.test.js", "status": "failed",
            "message": "  ● Test suite failed to run\n\n    Cannot find module './missing'",
            "assertionResults": [{
                "ancestorTitles": [], "duration": 0, "status": "error",
                "failureMessages": ["  ● Test suite failed to run\n\n    Cannot find module './missing'"],
            }],
        }],
    });
    let report = plain(vec![support::inline("jest.json", text.to_string())]).unwrap();
    assert!(report.tests.is_empty(), "{:?}", report.tests);
    assert_eq!(
        report.errors[0].message.as_deref(),
        Some("Cannot find module './missing'")
    );
}

#[test]
fn a_test_that_pytests_ctrf_never_stopped_was_interrupted() {
    let text = json!({"reportFormat": "CTRF", "results": {"tool": {"name": "pytest"}, "tests": [
        {"name": "tests/test_ok.py::test_int", "status": "passed", "duration": -1795217881693i64,
         "start": 1795217881693i64, "stop": 0, "suite": ["tests/test_ok.py"], "filePath": "tests/test_ok.py"},
    ]}});
    let report = plain(vec![support::inline("ctrf.json", text.to_string())]).unwrap();
    assert_eq!(report.tests[0].attempts[0].status, AttemptStatus::Interrupted);
    assert_eq!(report.state, RunState::Interrupted);
}

#[test]
fn concatenated_json_reports_are_all_read() {
    let report = |title: &str| json!({"config": {}, "suites": [{"specs": [{"title": title, "tests": [{"status": "expected", "results": [{"status": "passed"}]}]}]}]});
    let text = format!("log\n{}\nDone\n{}{}", report("a"), report("b"), report("c"));
    let read = plain(vec![support::inline("r.json", text)]).unwrap();
    let names: Vec<&str> = read.tests.iter().map(|test| test.test.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(read.warnings, ["r.json: 3 reports in one file; all were read"]);
    // Lines are counted from the beginning of the file.
    let text = format!("{}\n\n{{\"config\": {{}},\n\"suites\": [oops]}}", report("a"));
    let error = plain(vec![support::inline("r.json", text)])
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("r.json:4: not a readable Playwright JSON report: "),
        "{error}"
    );
    let many = "{\"config\":{},\"suites\":[]}".repeat(101);
    let error = plain(vec![support::inline("r.json", many)])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the number of reports in one file exceeds the limit of 100"),
        "{error}"
    );
}

#[test]
fn a_cut_off_allure_result_is_named_with_its_line() {
    for cut in [
        "{\"uuid\": \"1\",\n\"nam",
        "{\n\"uuid\": \"1\", \"status\": \"passed\", \"historyId\": \"h\"",
    ] {
        let error = plain(vec![support::inline("1-result.json", cut)])
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "1-result.json:2: not a readable Allure result report: the file ends here within its result, expected the rest of the \
             JSON object; its writer was stopped"
        );
    }
    let error = plain(vec![support::inline("1.json", "{\n\"som")])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("its JSON is cut off in line 2, before the keys of its format"),
        "{error}"
    );
}

#[test]
fn an_allure_failure_without_an_error_gets_one_that_names_its_possible_causes() {
    // allure-playwright 3 writes this for a test that --max-failures stopped.
    let result = json!({"uuid": "e1", "name": "is interrupted", "historyId": "h", "status": "failed", "statusDetails": {}, "stage": "finished",
        "parameters": [{"name": "Project", "value": "api"}], "labels": [{"name": "framework", "value": "playwright"}],
        "start": 1_795_223_747_988_u64, "stop": 1_795_223_748_861_u64, "fullName": "a.spec.js › is interrupted", "titlePath": ["pw", "a.spec.js"]});
    let report = plain(vec![support::inline("1-result.json", result.to_string())]).unwrap();
    let attempt = &report.tests[0].attempts[0];
    assert_eq!(attempt.status, AttemptStatus::Failed);
    let message = attempt.errors[0].message.as_deref().unwrap();
    assert!(
        message.starts_with("the report tells no error: the test was interrupted"),
        "{message}"
    );
}
