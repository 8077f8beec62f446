//! `assay analyze`.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use assay_testkit::{Cli, assert_contains, program, stderr_text};
use serde_json::Value;

use crate::junit;

/// The command line with the address of a missing database, because analysis needs none.
fn cli() -> Cli {
    Cli::new("postgresql://127.0.0.1:1/nowhere")
}

fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn path(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Twelve reports: `steady` passes, `red` fails from the eighth on, `odd` in every third.
fn reports(started_at: impl Fn(u32) -> String) -> Vec<(String, String)> {
    let cases = |run: u32| {
        [
            ("steady", true),
            ("red", run < 8),
            ("odd", !run.is_multiple_of(3)),
        ]
    };
    (1..13)
        .map(|run| {
            (
                format!("run-{run:02}.xml"),
                junit::report(&started_at(run), &cases(run)),
            )
        })
        .collect()
}

fn days(run: u32) -> String {
    format!("2026-11-{run:02}T08:00:00Z")
}

fn report_folder() -> tempfile::TempDir {
    let reports = reports(days);
    folder(
        &reports
            .iter()
            .map(|(name, xml)| (name.as_str(), xml.clone()))
            .collect::<Vec<_>>(),
    )
}

fn csv() -> String {
    let mut text = String::from("test,run,started_at,status,duration_ms\n");
    for run in 1..13_u32 {
        for (test, failed) in [
            ("steady", false),
            ("red", run >= 8),
            ("odd", run.is_multiple_of(3)),
        ] {
            let status = if failed { "failed" } else { "passed" };
            text += &format!("totals > {test},run-{run:02},{},{status},12\n", days(run));
        }
    }
    text
}

/// The verdict on the test that fails from the eighth run on.
fn verdict_on_red(analysis: &Value) -> &str {
    let tests = analysis["tests"].as_array().unwrap();
    tests
        .iter()
        .find(|test| test["testName"] == "totals > red")
        .unwrap()["status"]
        .as_str()
        .unwrap()
}

fn statuses(analysis: &Value) -> Vec<(&str, &str)> {
    let tests = analysis["tests"].as_array().unwrap();
    tests
        .iter()
        .map(|test| {
            (
                test["testName"].as_str().unwrap(),
                test["status"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn reports_and_the_same_history_as_csv_get_equal_verdicts() {
    let reports = report_folder();
    let history = folder(&[("history.csv", csv())]);
    let of_reports = cli().json(&["analyze", &path(&reports, "")]);
    let of_csv = cli().json(&["analyze", &path(&history, "history.csv")]);
    assert_eq!(
        of_reports["now"], "2026-11-12T08:00:00.000Z",
        "the newest run's start"
    );
    assert_eq!(
        (&of_reports["runs"], &of_reports["windowDays"]),
        (&12.into(), &14.into())
    );
    assert_eq!(
        statuses(&of_reports),
        [
            ("totals > red", "broken"),
            ("totals > odd", "flaky"),
            ("totals > steady", "healthy")
        ]
    );
    for (a, b) in of_reports["tests"]
        .as_array()
        .unwrap()
        .iter()
        .zip(of_csv["tests"].as_array().unwrap())
    {
        for field in [
            "testName",
            "status",
            "statusReason",
            "alsoActive",
            "timeLostMs",
            "flakeScore",
            "flakeRate",
            "flipRate",
            "failureRate",
            "impact",
            "runsConsidered",
            "failureStreak",
            "lastSeenAt",
        ] {
            assert_eq!(a[field], b[field], "{field} of {}", a["testName"]);
        }
    }
    let errors = &of_reports["tests"][0]["errors"];
    assert_eq!(
        (&errors[0]["category"], &errors[0]["occurrences"]),
        (&"assertion".into(), &5.into())
    );
    assert_eq!(of_csv["tests"][0].get("errors"), None);
    assert!(
        of_csv["tests"][1]["evidence"]["signals"][0]["runs"]
            .as_array()
            .unwrap()
            .contains(&"run-12".into())
    );
}

#[test]
fn the_table_lists_broken_and_flaky_tests_first() {
    let reports = report_folder();
    let output = cli().run(&["analyze", &path(&reports, "")]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert!(
        output.stderr.is_empty(),
        "no progress but on a terminal: {}",
        stderr_text(&output)
    );
    let table = String::from_utf8(output.stdout).unwrap();
    let place = |text: &str| table.find(text).unwrap_or_else(|| panic!("{text} in {table}"));
    assert!(place("broken") < place("totals > red") && place("totals > red") < place("totals > odd"));
    assert!(place("▁▁▁▁▁▁▁█████") > 0);
    assert!(place("FAILED OR RETRIED") > 0);
    assert!(place("1 broken, 1 flaky, and 1 other test: 1 healthy, 0 with too few runs for a verdict") > 0);
    assert!(!table.contains("totals > steady") && !table.contains('\u{1b}'));
}

#[test]
fn the_table_lists_failing_tests_separately() {
    let mut rows = String::from("test,run,started_at,status\n");
    for run in 1..=12 {
        let status = if run == 12 { "failed" } else { "passed" };
        rows += &format!(
            "late,{run},{},{status}\nsteady,{run},{},passed\n",
            days(run),
            days(run)
        );
    }
    let history = folder(&[("h.csv", rows)]);
    let output = cli().run(&["analyze", &path(&history, "h.csv")]);
    let table = String::from_utf8(output.stdout).unwrap();
    let place = |text: &str| table.find(text).unwrap_or_else(|| panic!("{text} in {table}"));
    assert!(place("Failing now") < place("late"));
    assert!(place("0 broken, 0 flaky, 1 failing now, and 1 other test: 1 healthy") > place("late"));
}

#[test]
fn the_page_is_one_document() {
    let reports = report_folder();
    let output = cli().run(&["analyze", &path(&reports, ""), "--output", "html"]);
    let page = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"),
        "{}",
        stderr_text(&output)
    );
    assert!(page.contains("expected 3, got 4"), "the error's own text");
}

#[test]
fn a_history_may_come_from_a_pipe() {
    for format in [&["--format", "csv"][..], &[]] {
        let mut child = Command::new(assay_testkit::program("assay"))
            .args([&["analyze", "-", "--json"], format].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(csv().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let analysis: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(analysis["runs"], 12);
    }
}

#[test]
fn the_time_and_the_stable_branch_may_be_given() {
    let history = folder(&[("h.csv", csv())]);
    let file = path(&history, "h.csv");
    let earlier = cli().json(&["analyze", &file, "--now", "2026-11-07T09:00:00+01:00"]);
    assert_eq!(
        (&earlier["now"], &earlier["runs"]),
        (&"2026-11-07T08:00:00.000Z".into(), &7.into())
    );
    assert_eq!(verdict_on_red(&earlier), "healthy", "not broken yet");

    let mut branched = String::from("test,run,started_at,status,branch\n");
    for line in csv().lines().skip(1) {
        let (row, _) = line.rsplit_once(',').unwrap();
        branched += &format!("{row},trunk\n");
    }
    let history = folder(&[("h.csv", branched)]);
    let file = path(&history, "h.csv");
    assert_eq!(
        verdict_on_red(&cli().json(&["analyze", &file, "--stable-branch", "trunk"])),
        "broken"
    );
    let output = cli().run(&["analyze", &file, "--json"]);
    assert!(
        stderr_text(&output).contains("no run is on the stable branch \"main\"")
            && stderr_text(&output).contains("trunk")
    );
    assert!(
        !statuses(&serde_json::from_slice(&output.stdout).unwrap())
            .iter()
            .any(|(_, status)| *status == "broken")
    );
}

#[test]
fn runs_without_a_branch_are_on_the_stable_one_where_others_name_one() {
    let mut branched = String::from("test,run,started_at,status,branch\n");
    for line in csv().lines().skip(1) {
        let (row, _) = line.rsplit_once(',').unwrap();
        let branch = if row.contains("run-02") { "main" } else { "" };
        branched += &format!("{row},{branch}\n");
    }
    let history = folder(&[("h.csv", branched)]);
    let file = path(&history, "h.csv");
    let output = cli().run(&["analyze", &file, "--json"]);
    let analysis: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdict_on_red(&analysis), "broken");
    assert_eq!(analysis["runsAssumedStable"], 11);
    assert_contains(
        &stderr_text(&output),
        "11 of 12 runs name no branch and are judged as on the stable branch \"main\"",
    );
    let page = cli().run(&["analyze", &file, "--output", "html"]);
    assert!(String::from_utf8_lossy(&page.stdout).contains("11 runs without a branch judged as on it."));

    let apart = cli().run(&["analyze", &file, "--json", "--without-branch", "unknown"]);
    assert!(apart.stderr.is_empty(), "{}", stderr_text(&apart));
    let apart: Value = serde_json::from_slice(&apart.stdout).unwrap();
    assert_ne!(verdict_on_red(&apart), "broken");
    assert_eq!(apart["runsAssumedStable"], 0);
}

#[test]
fn tests_that_cannot_be_judged_are_named() {
    let empty = folder(&[("notes.txt", String::new())]);
    let wrong = folder(&[
        (
            "h.csv",
            "test,run,started_at,status\na,1,2026-11-20T08:00:00Z,ok\n".to_owned(),
        ),
        ("broken.xml", "<testsuite><testcase".to_owned()),
    ]);
    for (arguments, status, sentence) in [
        (
            vec!["analyze".to_owned(), path(&empty, "")],
            1,
            "no test report and no history was found",
        ),
        (
            vec!["analyze".to_owned(), path(&wrong, "h.csv")],
            1,
            "h.csv:2: status \"ok\", expected one of passed",
        ),
        (
            vec!["analyze".to_owned(), path(&wrong, "nothing.xml")],
            1,
            "no such file or folder",
        ),
        (vec!["analyze".to_owned()], 2, "PATH"),
        (
            vec![
                "analyze".to_owned(),
                path(&wrong, "h.csv"),
                "--now".to_owned(),
                "noon".to_owned(),
            ],
            2,
            "date-time",
        ),
        (
            vec![
                "analyze".to_owned(),
                path(&wrong, "h.csv"),
                "--format".to_owned(),
                "docx".to_owned(),
            ],
            2,
            "auto, csv",
        ),
        (
            vec![
                "analyze".to_owned(),
                path(&wrong, "h.csv"),
                "--output".to_owned(),
                "pdf".to_owned(),
            ],
            2,
            "html",
        ),
    ] {
        let output = cli().run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?}: {}",
            stderr_text(&output)
        );
        assert!(
            stderr_text(&output).contains(sentence),
            "{arguments:?}: {}",
            stderr_text(&output)
        );
        assert!(output.stdout.is_empty());
    }
}

/// A TRX file of two tests; `Rounds` has this outcome.
fn trx(start: &str, rounds: &str) -> String {
    let result = |name: &str, outcome: &str| {
        format!(
            "<UnitTestResult testId='{name}' testName='{name}' outcome='{outcome}' startTime='{start}' duration='00:00:00.5'/>"
        )
    };
    format!(
        "<TestRun><Times start='{start}' finish='{start}'/><Results>{}{}</Results></TestRun>",
        result("Adds", "Passed"),
        result("Rounds", rounds)
    )
}

#[test]
fn a_warning_says_that_too_many_reports_were_not_compared() {
    // Names without a number.
    let leg = |leg: usize| {
        let report = trx(&format!("2026-11-13T09:00:{leg:02}Z"), "Passed");
        (format!("{}.trx", "x".repeat(leg)), report)
    };
    let legs: Vec<(String, String)> = (1..=33).map(leg).collect();
    let legs: Vec<_> = legs
        .iter()
        .map(|(name, report)| (name.as_str(), report.clone()))
        .collect();
    for (count, arguments, runs, is_warned) in [
        (32, &[][..], 1, false),
        (33, &[], 33, true),
        (33, &["--one-run-per-file"], 33, false),
    ] {
        let folder = folder(&legs[..count]);
        let reports = folder.path().display().to_string();
        let output = cli().run(&[&["analyze", &reports, "--json"], arguments].concat());
        let analysis: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(analysis["runs"], runs, "{count} {arguments:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr.contains("33 reports in"), is_warned, "{stderr}");
    }
}

#[test]
fn files_are_relative_to_the_checkout_of_git_where_no_variable_names_one() {
    let checkout = tempfile::tempdir().unwrap();
    let here = checkout.path().canonicalize().unwrap();
    let run = |program: &std::path::Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&here).env_clear();
        let output = command
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .output();
        output.unwrap()
    };
    assert!(run("git".as_ref(), &["init", "--quiet"]).status.success());
    let root = here.display().to_string();
    // A control: a path of another machine stays.
    for (root, file) in [
        (root.as_str(), "src/cart.test.js"),
        ("/srv/other", "/srv/other/src/cart.test.js"),
    ] {
        let report = serde_json::json!({
            "numTotalTests": 1, "success": true, "startTime": 1_795_434_785_000_u64,
            "testResults": [{
                "name": format!("{root}/src/cart.test.js"), "status": "passed",
                "assertionResults": [{ "fullName": "pays", "title": "pays", "ancestorTitles": [], "status": "passed" }],
            }],
        });
        std::fs::write(here.join("jest.json"), report.to_string()).unwrap();
        let output = run(&program("assay"), &["analyze", "jest.json", "--json"]);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["tests"][0]["filePath"], file, "{}", stderr_text(&output));
    }
}
