//! `assay quarantine`: what is listed. `examples/runners/check` tries the lists with the real runners.

use std::{fs, process::Output};

use assay_testkit::{Cli, ServedWorld, assert_contains, stderr_text};
use serde_json::Value;

fn cli() -> Cli {
    Cli::new("postgresql://127.0.0.1:1/nowhere")
}

/// A history: the tests of `flaky` fail and pass on one revision, `red` fails from the tenth run on, and the tests of
/// `steady` pass. A test is a name and a file.
fn history(flaky: &[(&str, &str)], steady: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut csv = String::from("test,file,run,started_at,status,branch,revision\n");
    for run in 1..=20_u32 {
        let start = 1_793_520_000 + run * 36_000;
        let mut row = |(name, file): (&str, &str), failed: bool| {
            let status = if failed { "failed" } else { "passed" };
            let revision = run / 2;
            csv += &format!(
                "\"{}\",{file},r{run},{start},{status},main,c{revision}\n",
                name.replace('"', "\"\"")
            );
        };
        for test in flaky {
            row(*test, run % 4 == 1);
        }
        row(("suite > red", "red.test"), run >= 10);
        for test in steady {
            row(*test, false);
        }
    }
    fs::write(folder.path().join("history.csv"), csv).unwrap();
    folder
}

fn quarantine(history: &tempfile::TempDir, arguments: &[&str]) -> Output {
    let path = history.path().join("history.csv").display().to_string();
    cli().run(&[&["quarantine", "--history", &path], arguments].concat())
}

fn list(history: &tempfile::TempDir, arguments: &[&str]) -> String {
    let output = quarantine(history, arguments);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn only_flaky_tests_are_listed_and_missing_names_are_reported() {
    let history = history(
        &[
            ("shop::cart > tests::odd", ""),
            ("alone", ""),
            ("shop::cart > tests::even", ""),
        ],
        &[("shop::cart > tests::steady", "")],
    );
    let output = quarantine(&history, &["--format", "nextest"]);
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "not ((binary_id(=shop::cart) & test(=tests::even)) | (binary_id(=shop::cart) & test(=tests::odd)))\n"
    );
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_contains(&stderr, "not listed: alone");

    let output = quarantine(&history, &["--format", "txt", "--max", "1"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_contains(&stderr, "2 of 3 flaky tests are not listed");

    let json: Value = serde_json::from_str(&list(&history, &["--format", "nextest", "--json"])).unwrap();
    assert_eq!(json["tests"].as_array().unwrap().len(), 2, "{json}");
    assert_eq!(json["leftOut"][0]["testName"], "alone", "{json}");
    assert_eq!(json["flaky"], 3);
    assert_eq!(
        quarantine(&history, &[]).status.code(),
        Some(2),
        "a format is needed"
    );
}

#[test]
fn a_test_that_no_longer_runs_is_not_listed() {
    let folder = history(&[("kept", "")], &[]);
    let path = folder.path().join("history.csv");
    let mut csv = fs::read_to_string(&path).unwrap();
    for run in 1..=10_u32 {
        let start = 1_793_520_000 + run * 36_000;
        let status = if run % 4 == 1 { "failed" } else { "passed" };
        csv += &format!("gone,,r{run},{start},{status},main,c{}\n", run / 2);
    }
    fs::write(&path, csv).unwrap();
    let listed = |more: &[&str]| list(&folder, &[&["--format", "txt"], more].concat());
    assert_eq!(listed(&[]), "\tkept\n");
    assert_eq!(listed(&["--expire-after", "99h"]), "\tkept\n");
    // It last ran ten runs ago, each of ten hours.
    assert_eq!(listed(&["--expire-after", "100h"]).lines().count(), 2);
}

/// A server over a project whose test `wobbles` fails in every fourth run, and passes in the next run of the revision.
fn served() -> ServedWorld {
    let world = ServedWorld::new();
    for run in 0..20 {
        let (minutes_ago, revision, key) = (60 * (24 - run), format!("c{}", run / 2), run.to_string());
        let cases = [("adds", true), ("wobbles", run % 4 != 0), ("red", run < 10)];
        world.import_cases(
            minutes_ago,
            &cases,
            &["--branch", "main", "--commit", &revision, "--run-key", &key],
        );
    }
    world
}

#[test]
fn a_server_lists_the_flaky_tests_to_a_read_key() {
    let world = served();
    let asks = |key: &str, arguments: &[&str]| {
        let arguments = [&["quarantine", "--format", "json", "--retry-for", "0"], arguments].concat();
        let mut command = cli().command(&arguments);
        command
            .env(
                "ASSAY_API_URL",
                format!("http://{}/api/v1", world.server.address()),
            )
            .env("ASSAY_READ_KEY", key);
        command.output().unwrap()
    };
    let names = |project: &str, arguments: &[&str]| {
        let output = asks(&world.key, &[&["--project", project], arguments].concat());
        assert!(output.status.success(), "{}", stderr_text(&output));
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let listed = listed.as_array().unwrap().iter();
        listed
            .map(|test| test["testName"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for project in ["web", &world.project] {
        assert_eq!(names(project, &[]), ["cart > wobbles"]);
    }

    let other = asks(&world.key, &["--project", "wbe"]);
    assert_eq!(other.status.code(), Some(1));
    assert_contains(&stderr_text(&other), "has no project \"wbe\"");
    let foreign = asks("svc_ro_00000000000000000000000000000000", &["--project", "web"]);
    assert_eq!(foreign.status.code(), Some(1));
    assert_contains(&stderr_text(&foreign), "401");
    let missing = cli().run(&["quarantine", "--project", "web", "--format", "json"]);
    assert_eq!(missing.status.code(), Some(2));
    assert_contains(&stderr_text(&missing), "ASSAY_API_URL");
}
