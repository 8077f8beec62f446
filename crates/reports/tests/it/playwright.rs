//! Playwright's JSON: shards, cut-off reports, blobs and the outcomes of repeated attempts.

use std::collections::BTreeMap;

use assay_domain::{recording::ShardIndex, run::RunState};
use serde_json::{Value, json};

use crate::support::{self, SHOP, plain, rooted};

#[test]
fn the_shards_are_the_merged_report() {
    let shards = (1..=3)
        .map(|shard| support::file(&format!("playwright/shard-{shard}-of-3.json")))
        .collect();
    let joined = rooted(shards, SHOP);
    let merged = rooted(vec![support::file("playwright/merged.json")], SHOP);
    assert_eq!(joined.state, RunState::Completed);
    assert_eq!(joined.shard, None);
    let sorted = |report: &assay_reports::Report| {
        let mut tests = report.tests.clone();
        tests.sort_by(|a, b| a.test.cmp(&b.test));
        // `merge-reports` moves the files of attempts.
        for test in &mut tests {
            test.attempts = test.attempts.clone().map(|mut attempt| {
                let files = attempt
                    .output
                    .iter_mut()
                    .flat_map(|output| &mut output.attachments);
                files.for_each(|file| file.path = None);
                attempt
            });
        }
        tests
    };
    assert_eq!(sorted(&joined), sorted(&merged));
}

#[test]
fn an_import_of_some_shards_only_is_incomplete() {
    let shards = vec![
        support::file("playwright/shard-1-of-3.json"),
        support::file("playwright/shard-3-of-3.json"),
    ];
    let joined = rooted(shards, SHOP);
    assert_eq!(joined.state, RunState::Interrupted);
    assert_eq!(joined.warnings, ["Of 3 shards only 1, 3 are in the import."]);
    let one = rooted(vec![support::file("playwright/shard-2-of-3.json")], SHOP);
    assert_eq!(
        one.shard,
        Some(ShardIndex {
            index: 2,
            total: Some(3)
        })
    );
}

#[test]
fn without_a_root_paths_are_relative_to_a_known_ci_checkout_or_unchanged() {
    let paths = |bytes: Vec<u8>, root: Option<&str>| {
        let options = assay_reports::Options {
            root,
            ..Default::default()
        };
        let report = assay_reports::read(vec![support::inline("full.json", bytes)], &options).unwrap();
        let test = report
            .tests
            .into_iter()
            .find(|test| test.test.name.ends_with("answers in time"))
            .unwrap();
        let at = test.attempts[0].errors[1].location.clone().unwrap();
        (test.test.file_path.unwrap(), at.file)
    };
    let of_ci = support::file("playwright/full.json").bytes;
    let elsewhere = String::from_utf8(of_ci.clone())
        .unwrap()
        .replace(SHOP, "/home/me/shop");
    for root in [None, Some("/somewhere/else"), Some("."), Some("")] {
        assert_eq!(
            paths(of_ci.clone(), root),
            ("tests/api/cart.spec.ts".into(), "tests/api/cart.spec.ts".into()),
            "{root:?}"
        );
        assert_eq!(
            paths(elsewhere.clone().into_bytes(), root),
            (
                "api/cart.spec.ts".into(),
                "/home/me/shop/tests/api/cart.spec.ts".into()
            ),
            "{root:?}"
        );
    }
}

/// A report of one spec file with these specs.
fn report(specs: Value) -> Value {
    json!({"config": {"rootDir": "/r/tests"}, "suites": [{"title": "a.spec.ts", "file": "a.spec.ts", "specs": specs}]})
}

fn spec(title: &str, tests: Value) -> Value {
    json!({"title": title, "file": "a.spec.ts", "tests": tests})
}

fn read(value: &Value) -> assay_reports::Report {
    plain(vec![support::inline("results.json", value.to_string())]).unwrap()
}

#[test]
fn errors_are_cut_into_message_frame_and_stack() {
    let frame = "  1 | a\n> 2 | b\n    | ^\n  3 | c";
    let whole = |message: &str| format!("{message}\n\n{frame}\n    at /r/tests/a.spec.ts:2:1");
    let result = json!({
        "status": "failed",
        "error": {"message": "Error: first", "stack": "Error: first\n    at /r/tests/a.spec.ts:2:1", "snippet": "\u{1b}[31m> 2 |\u{1b}[39m b",
                  "cause": {"message": "Error: below", "stack": "Error: below\n    at /r/tests/a.spec.ts:9:1", "cause": {"value": "7"}}},
        "errors": [{"message": whole("Error: first"), "location": {"file": "/r/tests/a.spec.ts", "line": 2, "column": 1}},
                   {"message": whole("Error: second\n  with detail"), "location": {"file": "/r/lib/b.ts", "line": 5}},
                   {"value": "{ code: 7 }"}, {}],
    });
    let read = read(&report(json!([spec(
        "t",
        json!([{"status": "unexpected", "results": [result]}])
    )])));
    let errors = &read.tests[0].attempts[0].errors;
    assert_eq!(errors.len(), 3);
    assert_eq!(errors[0].message.as_deref(), Some("Error: first"));
    assert_eq!(errors[0].snippet.as_deref(), Some("> 2 | b"));
    assert_eq!(
        errors[0].stack.as_deref(),
        Some(
            "Error: first\n    at /r/tests/a.spec.ts:2:1\n[cause]: Error: below\n    at /r/tests/a.spec.ts:9:1\n[cause]: 7"
        )
    );
    assert_eq!(errors[1].message.as_deref(), Some("Error: second\n  with detail"));
    assert_eq!(errors[1].snippet.as_deref(), Some(frame));
    assert_eq!(errors[1].stack.as_deref(), Some("    at /r/tests/a.spec.ts:2:1"));
    assert_eq!(errors[1].location.as_ref().unwrap().file, "/r/lib/b.ts");
    assert_eq!(errors[2].message.as_deref(), Some("{ code: 7 }"));
}

#[test]
fn a_report_cut_off_anywhere_keeps_its_whole_tests() {
    let file = support::file("playwright/green.json");
    let whole = plain(vec![file.clone()]).unwrap();
    let text = String::from_utf8(file.bytes).unwrap();
    let mut most = 0;
    for end in (0..text.trim_end().len() - 1).step_by(97) {
        match plain(vec![support::inline("cut.json", &text.as_bytes()[..end])]) {
            Ok(read) => {
                assert_eq!(read.state, RunState::Interrupted);
                for (cut, test) in read.tests.iter().zip(&whole.tests) {
                    assert_eq!(cut, test, "cut at {end}");
                }
                most = most.max(read.tests.len());
            }
            Err(error) => assert!(error.to_string().starts_with("cut.json"), "{error}"),
        }
    }
    assert_eq!(most, whole.tests.len());
}

#[test]
fn each_file_is_a_run_but_the_shards_of_one_run_are_one() {
    let mut files: Vec<_> = (1..=3)
        .map(|shard| support::file(&format!("playwright/shard-{shard}-of-3.json")))
        .collect();
    files.insert(1, support::file("playwright/green.json"));
    let runs = assay_reports::read_each(files, &assay_reports::Options::default()).unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    assert_eq!(names, ["playwright", "playwright/green.json"]);
    assert_eq!(runs[0].report.tests.len(), 40);
}

#[test]
fn a_blob_is_read_like_the_json_of_the_same_run() {
    let contents = |file: &str| {
        let report = rooted(vec![support::file(file)], SHOP);
        assert_eq!(report.format, assay_reports::Format::Playwright);
        let tests: Vec<_> = report
            .tests
            .into_iter()
            .map(|test| {
                let attempts: Vec<_> = test
                    .attempts
                    .iter()
                    .map(|attempt| {
                        let errors: Vec<_> = attempt
                            .errors
                            .iter()
                            .map(|error| (error.message.clone(), error.location.clone()))
                            .collect();
                        (attempt.status, attempt.duration_ms, attempt.started_at, errors)
                    })
                    .collect();
                (test.test, attempts)
            })
            .collect();
        (tests, report.state, report.started_at, report.errors.len())
    };
    let (blob, json) = (
        contents("playwright/blob.zip"),
        contents("playwright/blob-same-run.json"),
    );
    assert_eq!(blob.0.len(), json.0.len());
    for (blob, json) in blob.0.iter().zip(&json.0) {
        assert_eq!(blob, json);
    }
    assert_eq!((blob.1, blob.2, blob.3), (json.1, json.2, json.3));
}

#[test]
fn a_blob_that_is_cut_off_or_broken_is_read_or_refused() {
    let whole = support::file("playwright/blob.zip").bytes;
    for end in [10, whole.len() / 2, whole.len() - 30] {
        let error = plain(vec![support::inline("blob.zip", &whole[..end])])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("only Playwright's blob reports are read"),
            "{error}"
        );
    }
    let mut broken = whole.clone();
    let at = broken.len() - 10_000;
    broken[at..at + 200].fill(0xff);
    let error = plain(vec![support::inline("blob.zip", broken)]);
    assert!(error.is_err() || error.unwrap().state == RunState::Interrupted);
    let lines = "{\"method\":\"onBlobReportMetadata\"}\n{\"method\":\"onNovelty\",\"params\":{\"project\":7}}\n\
                 {\"method\":\"onProject\",\"params\":{\"project\":7}}\n{\"method\":\"onEnd\"}\n";
    let error = plain(vec![support::inline("blob.jsonl", lines)])
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("blob.jsonl:3: not a readable Playwright blob"),
        "{error}"
    );
    let events = "{\"method\":\"onBlobReportMetadata\",\"params\":{\"version\":2}}\n{\"method\":\"onProject\",\"params\":{\"project\":\
                  {\"name\":\"api\",\"suites\":[{\"title\":\"a.spec.ts\",\"entries\":[{\"testId\":\"1\",\"title\":\"adds up\"}]}]}}}\n";
    let report = plain(vec![support::inline("blob.jsonl", events)]).unwrap();
    assert_eq!(report.state, RunState::Interrupted);
    assert_eq!(report.tests[0].test.name, "api > a.spec.ts > adds up");
}

/// The fingerprints of a report's failed attempts by test.
fn fingerprints(name: &str) -> BTreeMap<String, Vec<String>> {
    let report = rooted(vec![support::file(&format!("playwright/{name}"))], SHOP);
    let mut by_test: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for test in &report.tests {
        let failed = test.attempts.iter().filter(|attempt| attempt.status.is_failure());
        let classes =
            failed.filter_map(|attempt| attempt.errors.iter().find_map(assay_fingerprint::classify));
        let mut of_test: Vec<String> = classes.map(|class| class.fingerprint).collect();
        of_test.sort();
        of_test.dedup();
        by_test.insert(test.test.name.replace(" › ", " > "), of_test);
    }
    by_test
}

#[test]
fn json_and_junit_of_one_run_have_the_same_fingerprints() {
    let (mut compared, mut differences) = (0, Vec::new());
    for name in [
        "full",
        "history-02",
        "shard-1-of-3",
        "shard-2-of-3",
        "shard-3-of-3",
        "v1.20.2",
        "v1.31.2",
    ] {
        let json = fingerprints(&format!("{name}.json"));
        for (test, of_test) in fingerprints(&format!("{name}.xml")) {
            let all = json.get(&test).cloned().unwrap_or_default();
            // Without `includeRetries`, JUnit has one attempt per test and no recovered attempt.
            if !of_test.iter().all(|fingerprint| all.contains(fingerprint)) {
                differences.push(format!(
                    "{name}: {test}: {of_test:?} in JUnit XML, {all:?} in JSON"
                ));
            }
            compared += of_test.len();
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > 30, "{compared} fingerprints");
}
