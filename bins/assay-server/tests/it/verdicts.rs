//! The stored verdict, the live list and the offline analysis of the same results agree to the last digit.

use std::{collections::BTreeMap, path::Path};

use assay_testkit::text;
use serde_json::{Value, json};

use crate::{
    generated_history::STABLE,
    imported::{ImportedHistory, Test, test_of},
};

#[test]
fn verdicts_agree_in_the_store_in_the_live_list_and_offline() {
    let imported = ImportedHistory::new(1, false);
    assert_equal_verdicts(&imported, &imported.reports());
}

#[test]
fn a_table_of_attempts_is_judged_like_reports_with_suites_and_pull_requests() {
    let imported = ImportedHistory::new(3, true);
    let table = imported.world.folder.path().join("attempts.csv");
    std::fs::write(&table, imported.table()).unwrap();
    assert_equal_verdicts(&imported, &table);
}

/// Compares every field of every test.
#[track_caller]
fn assert_equal_verdicts(imported: &ImportedHistory, history: &Path) {
    let stored = imported.stored_verdicts();
    let judged: BTreeMap<&Test, &Value> = stored
        .iter()
        .filter(|(_, verdict)| verdict["awaitingFirstWrite"] == false)
        .collect();
    let evaluated_at = text(&judged.values().next().unwrap()["evaluatedAt"]);
    let offline = analyze(imported, history, &evaluated_at);
    let tests: BTreeMap<Test, &Value> = offline.iter().map(|entry| (test_of(entry), entry)).collect();
    assert_eq!(
        judged.keys().copied().collect::<Vec<_>>(),
        tests.keys().collect::<Vec<_>>()
    );
    for (test, verdict) in judged {
        assert_eq!(verdict["evaluatedAt"].as_str(), Some(evaluated_at.as_str()));
        assert_stored(test, verdict, tests[test]);
    }

    let (live, gathering) = imported.flaky_list();
    assert!(live.len() >= 8, "{} of the tests are listed", live.len());
    let now = text(&live[0]["evidence"]["now"]);
    let offline = analyze(imported, history, &now);
    let reported: Vec<&Value> = offline.iter().take_while(|entry| is_reported(entry)).collect();
    assert_eq!(live.len(), reported.len());
    for (live, offline) in live.iter().zip(reported) {
        assert_same_values(&format!("live {:?}", test_of(live)), live, offline);
    }
    let insufficient = offline
        .iter()
        .filter(|entry| entry["status"] == "insufficient_data");
    assert_eq!(gathering, insufficient.count() as u64);
}

/// The tests of an offline analysis, with runs named as in the store.
fn analyze(imported: &ImportedHistory, history: &Path, now: &str) -> Vec<Value> {
    let path = history.to_str().unwrap();
    // The service has no branch if none is stored.
    let apart = ["--without-branch", "unknown"];
    let arguments = [
        &["analyze", path, "--now", now, "--stable-branch", STABLE][..],
        &apart,
    ]
    .concat();
    let analysis = imported.world.cli.json(&arguments);
    let mut tests = analysis["tests"].as_array().unwrap().clone();
    for test in &mut tests {
        test.as_object_mut().unwrap().remove("errors");
        if let Some(run) = test["lastRun"].get_mut("runId") {
            rename(imported, run);
        }
        if let Some(run) = test["failingSince"].get_mut("runId") {
            rename(imported, run);
        }
        let evidence = &mut test["evidence"];
        for dropped in evidence["dropped"].as_array_mut().unwrap() {
            rename(imported, &mut dropped["runId"]);
        }
        for signal in evidence["signals"].as_array_mut().unwrap() {
            signal["runs"]
                .as_array_mut()
                .unwrap()
                .iter_mut()
                .for_each(|run| rename(imported, run));
        }
    }
    tests
}

/// Replaces the file name of a run in an analysis with the run's id.
fn rename(imported: &ImportedHistory, run: &mut Value) {
    let Some(name) = run.as_str() else { return };
    let file = Path::new(name).file_name().and_then(|file| file.to_str());
    if let Some(id) = file.and_then(|file| imported.files.get(file)) {
        *run = json!(id);
    }
}

#[track_caller]
fn assert_stored(test: &Test, verdict: &Value, offline: &Value) {
    for field in [
        "status",
        "statusReason",
        "explanation",
        "labels",
        "flakeScore",
        "flipRate",
        "failureRate",
        "runsConsidered",
        "failureStreak",
        "lastRun",
        "evidence",
    ] {
        assert_same_values(&format!("{field} of {test:?}"), &verdict[field], &offline[field]);
    }
    let signals = verdict["activeSignals"].as_array().unwrap().iter();
    let mut signals: Vec<&Value> = signals.map(|active| &active["signal"]).collect();
    let mut offline: Vec<&Value> = std::iter::once(&offline["statusReason"])
        .filter(|reason| !reason.is_null())
        .chain(offline["alsoActive"].as_array().unwrap())
        .collect();
    signals.sort_by_key(|signal| signal.to_string());
    offline.sort_by_key(|signal| signal.to_string());
    assert_eq!(signals, offline, "{test:?}");
}

/// Compares the text, too, so that numbers agree to the last digit.
#[track_caller]
fn assert_same_values(what: &str, left: &Value, right: &Value) {
    if let (Value::Object(left), Value::Object(right)) = (left, right) {
        assert_eq!(
            left.keys().collect::<Vec<_>>(),
            right.keys().collect::<Vec<_>>(),
            "{what}"
        );
        for (key, left) in left {
            assert_same_values(&format!("{what}: {key}"), left, &right[key]);
        }
        return;
    }
    assert_eq!(left, right, "{what}");
    assert_eq!(left.to_string(), right.to_string(), "{what}");
}

fn is_reported(entry: &Value) -> bool {
    entry["status"] == "flaky" || entry["status"] == "broken"
}
