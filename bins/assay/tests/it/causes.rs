//! `assay analyze --causes`.

use assay_testkit::{Cli, assert_contains};
use serde_json::{Value, json};

/// The command line with the address of a missing database.
fn cli() -> Cli {
    Cli::new("postgresql://127.0.0.1:1/nowhere")
}

/// A CTRF report of a run: branch, commit, and each test with its error, if it failed.
pub(crate) fn ctrf(day: u32, branch: &str, commit: &str, tests: &[(&str, Option<&str>)]) -> String {
    let start = 1_793_520_000_000_u64 + u64::from(day) * 43_200_000;
    let tests: Vec<Value> = tests
        .iter()
        .map(|(name, error)| {
            json!({
                "name": name, "status": if error.is_some() { "failed" } else { "passed" }, "duration": 12,
                "filePath": "tests/cart.test.ts", "message": error, "start": start, "stop": start + 12,
            })
        })
        .collect();
    json!({ "results": {
        "tool": { "name": "jest" },
        "summary": { "tests": tests.len(), "passed": 0, "failed": 0, "pending": 0, "skipped": 0, "other": 0,
            "start": start, "stop": start + 12 },
        "environment": { "branchName": branch, "commit": commit },
        "tests": tests,
    }})
    .to_string()
}

/// Twenty runs of main, in which `odd` fails sometimes and `old` fails in the last five. Then a branch breaks `pays`,
/// and `odd` and `old` fail there, too.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for run in 1..=20 {
        let odd = (run % 4 == 0).then_some("Timed out waiting for the cart");
        let old = (run > 15).then_some("Expected 3 items, got 4");
        let report = ctrf(
            run,
            "main",
            &format!("c{run}"),
            &[("pays", None), ("odd", odd), ("old", old)],
        );
        std::fs::write(folder.path().join(format!("run-{run:02}.json")), report).unwrap();
    }
    let report = ctrf(
        21,
        "feature/tax",
        "f1",
        &[
            ("pays", Some("TypeError: tax is not a function")),
            ("odd", Some("Timed out waiting for the cart")),
            ("old", Some("Expected 3 items, got 4")),
        ],
    );
    std::fs::write(folder.path().join("run-21.json"), report).unwrap();
    folder
}

fn of<'a>(causes: &'a Value, test: &str) -> &'a Value {
    let list = causes.as_array().unwrap();
    let is_it = |entry: &&Value| {
        entry["testName"].as_str().unwrap().ends_with(test)
            && entry["run"].as_str().unwrap().ends_with("run-21.json")
    };
    list.iter().find(is_it).unwrap()
}

#[test]
fn the_causes_of_a_report_folder_name_the_branchs_own_failures() {
    let folder = folder();
    let path = folder.path().display().to_string();
    let answer = cli().json(&["analyze", &path, "--causes", "at-the-time"]);
    let causes = &answer["causes"];
    assert_eq!(of(causes, "pays")["cause"], "this_change", "{causes}");
    // The first failure of a clean test on a branch is run again before it blocks.
    assert_eq!(of(causes, "pays")["action"], "rerun");
    assert!(of(causes, "pays")["mine"].as_f64().unwrap() > 0.8, "{causes}");
    assert_eq!(of(causes, "old")["cause"], "broken_before", "{causes}");
    assert_eq!(of(causes, "odd")["cause"], "flake", "{causes}");
    assert!(
        of(causes, "pays")["explanation"]
            .as_str()
            .unwrap()
            .starts_with("Passed in all 20 runs on main and failed on this revision"),
        "{causes}"
    );
    // Every failed result of the window, and every run with one.
    assert_eq!(causes.as_array().unwrap().len(), 5 + 5 + 3, "{causes}");
    let gates = answer["gates"].as_array().unwrap();
    let gate = gates.last().unwrap();
    assert_eq!(
        (
            gate["branch"].as_str(),
            gate["action"].as_str(),
            gate["byCause"]["this_change"].as_u64()
        ),
        (Some("feature/tax"), Some("rerun"), Some(1)),
        "{gates:?}"
    );
    for entry in causes.as_array().unwrap() {
        let sum: f64 = entry["probabilities"]
            .as_object()
            .unwrap()
            .values()
            .map(|value| value.as_f64().unwrap())
            .sum();
        assert!((sum - 1.0).abs() < 1e-9, "{entry}");
    }
    // Without the flag, the output has neither.
    let plain = cli().json(&["analyze", &path]);
    assert!(plain.get("causes").is_none() && plain.get("gates").is_none());
}

#[test]
fn a_run_is_a_table_that_fits_eighty_columns() {
    let folder = folder();
    let path = folder.path().display().to_string();
    let output = cli().run(&["analyze", &path, "--causes", "run-21.json"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "this change",
        "broken before",
        "flake",
        "feature/tax",
        "Run this revision again: a breakage by this change is likely",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    // The most probable breakage of the branch comes first.
    assert!(text.find("pays") < text.find("odd"), "{text}");
    let unknown = cli().run(&["analyze", &path, "--causes", "run-99.json"]);
    assert_eq!(unknown.status.code(), Some(1));
    let stderr = String::from_utf8(unknown.stderr).unwrap();
    assert_contains(&stderr, "no run is called \"run-99.json\"");
    let whole = cli().run(&["analyze", &path, "--causes", "hindsight"]);
    assert_eq!(whole.status.code(), Some(2), "a whole window is no table");
}

#[test]
fn a_csv_history_may_hold_error_messages() {
    // `odd` failed four times with one text. On a branch it fails with that text, or with another one.
    let history = |with_errors: bool, error: &str| {
        let mut text = String::from("test,run,started_at,status,branch,revision");
        text += if with_errors { ",error\n" } else { "\n" };
        let mut row = |run: u32, branch: &str, status: &str, error: &str| {
            let error = if with_errors {
                format!(",{error}")
            } else {
                String::new()
            };
            let start = 1_793_520_000 + run * 36_000;
            text += &format!("odd,r{run},{start},{status},{branch},c{run}{error}\n");
        };
        for run in 1..=24 {
            match run % 6 {
                0 => row(run, "main", "failed", "Timed out waiting for the cart"),
                _ => row(run, "main", "passed", ""),
            }
        }
        row(25, "feature/tax", "failed", error);
        text
    };
    let mine = |with_errors: bool, error: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.csv");
        std::fs::write(&path, history(with_errors, error)).unwrap();
        let answer = cli().json(&["analyze", &path.display().to_string(), "--causes", "r25"]);
        assert_eq!(answer["gates"].as_array().unwrap().len(), 1);
        answer["causes"][0]["mine"].as_f64().unwrap()
    };
    let known = mine(true, "Timed out waiting for the cart");
    let without = mine(false, "");
    let new = mine(true, "TypeError: tax is not a function");
    assert!(known < without && without < new, "{known} {without} {new}");
}
