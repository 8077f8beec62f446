//! `assay gate` with a history, without a server.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
};

use assay_testkit::{Cli, assert_contains, closed_pipe, stderr_text};
use serde_json::Value;

use crate::causes::{ctrf, folder};

/// Judges a report of a branch by the runs of main in a folder. Returns the exit status and the decision.
fn gate(history: &Path, tests: &[(&str, Option<&str>)], arguments: &[&str]) -> (Option<i32>, Value) {
    let own = tempfile::tempdir().unwrap();
    let report = own.path().join("report.json");
    fs::write(&report, ctrf(22, "feature/tax", "f2", tests)).unwrap();
    let (report, history) = (report.display().to_string(), history.display().to_string());
    let fixed = ["gate", &report, "--history", &history, "--json"];
    let output = Cli::new("postgresql://127.0.0.1:1/nowhere").run(&[&fixed, arguments].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| stderr.into_owned().into());
    (output.status.code(), value)
}

const TIMEOUT: Option<&str> = Some("Timed out waiting for the cart");

#[test]
fn tests_that_the_history_shows_as_flaky_are_excused() {
    let history = folder();
    // The branch's own earlier run broke `pays`.
    fs::remove_file(history.path().join("run-21.json")).unwrap();
    let (status, value) = gate(history.path(), &[("pays", None), ("odd", None)], &[]);
    assert_eq!((status, &value["outcome"]), (Some(0), &"clean".into()), "{value}");
    let (status, value) = gate(history.path(), &[("pays", None), ("odd", TIMEOUT)], &[]);
    assert_eq!(
        (status, &value["outcome"]),
        (Some(0), &"excused".into()),
        "{value}"
    );
    assert_eq!(value["failed"][0]["cause"], "flake", "{value}");
    let broken = [
        ("pays", Some("TypeError: tax is not a function")),
        ("odd", TIMEOUT),
    ];
    let (status, value) = gate(history.path(), &broken, &[]);
    assert_eq!((status, &value["outcome"]), (Some(1), &"rerun".into()), "{value}");
    assert_eq!(value["excused"], 1, "{value}");
    let (status, value) = gate(history.path(), &[("old", Some("Expected 3 items, got 4"))], &[]);
    assert_eq!(
        (status, &value["failed"][0]["refusal"]),
        (Some(1), &"broken".into()),
        "{value}"
    );
    let (status, value) = gate(history.path(), &[("unheard of", TIMEOUT), ("pays", None)], &[]);
    assert_eq!(status, Some(1), "{value}");
    let (status, _) = gate(
        history.path(),
        &[("pays", None), ("odd", TIMEOUT)],
        &["--exit-code", "9", "--max-excused", "0"],
    );
    assert_eq!(status, Some(9));
}

#[test]
fn earlier_reports_without_a_branch_are_of_the_stable_branch() {
    let history = tempfile::tempdir().unwrap();
    let junit = |day: u32, failed: bool| {
        let failure = if failed {
            "<failure message='KeyError: main'/>"
        } else {
            ""
        };
        let case = |name, inner| format!("<testcase classname='m' name='{name}' time='1'>{inner}</testcase>");
        let cases = [case("a", ""), case("d", failure)].concat();
        let start = format!("2026-11-{day:02}T10:00:00Z");
        format!("<testsuites><testsuite name='s' timestamp='{start}'>{cases}</testsuite></testsuites>")
    };
    for run in 1..=12 {
        let folder = history.path().join(format!("{run:02}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("junit.xml"), junit(run, run > 8)).unwrap();
    }
    let own = tempfile::tempdir().unwrap();
    let report = own.path().join("new.xml");
    let folder = history.path().display().to_string();
    fs::write(&report, junit(13, true)).unwrap();
    let new = report.display().to_string();
    let arguments = [
        "gate",
        &new,
        "--history",
        &folder,
        "--branch",
        "feature/x",
        "--commit",
        "c0ffee",
        "--json",
    ];
    let output = Cli::new("postgresql://127.0.0.1:1/nowhere").run(&arguments);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["failed"][0]["cause"], "broken_before", "{value}");
}

/// The address of an object is a part of the name that changes with every run.
#[test]
fn the_names_of_the_report_and_of_its_history_follow_one_rule() {
    let name = |run: u64| format!("eq #<Cart:{:#x}>", 0x7f3a_1c1d_2e30 + run * 7_919);
    let history = tempfile::tempdir().unwrap();
    for run in 1..=12 {
        let failure = TIMEOUT.filter(|_| run % 3 == 0);
        let report = ctrf(run, "main", &format!("c{run}"), &[(&name(run.into()), failure)]);
        fs::write(history.path().join(format!("run-{run:02}.json")), report).unwrap();
    }
    for (run, arguments, is_new) in [
        (22, &[][..], false),
        (22, &["--written-names"], true),
        (3, &["--written-names"], false),
    ] {
        let (_, value) = gate(history.path(), &[(&name(run), TIMEOUT)], arguments);
        let explanation = value["failed"][0]["explanation"].as_str().unwrap();
        assert_eq!(
            explanation.starts_with("New test"),
            is_new,
            "{run} {arguments:?} {value}"
        );
    }
}

#[test]
fn a_closed_pipe_changes_no_status() {
    let history = folder();
    fs::remove_file(history.path().join("run-21.json")).unwrap();
    let report = history.path().join("report.json").display().to_string();
    let runs = history.path().display().to_string();
    let broken = [("pays", Some("TypeError: tax is not a function"))];
    for (tests, status) in [(&[("pays", None)], 0), (&broken, 1)] {
        // The pattern below leaves out the report, which is in the same folder.
        fs::write(&report, ctrf(22, "feature/tax", "f2", tests)).unwrap();
        for output in ["text", "json"] {
            let arguments = [
                "gate",
                &report,
                "--history",
                &format!("{runs}/run-*.json"),
                "--output",
                output,
            ];
            let mut gate = Cli::new("postgresql://127.0.0.1:1/nowhere").command(&arguments);
            gate.stdout(closed_pipe()).stderr(closed_pipe());
            assert_eq!(gate.status().unwrap().code(), Some(status), "{arguments:?}");
        }
    }
}

#[test]
fn a_report_that_cannot_be_read_has_the_status_of_the_unknown() {
    let mut gate = Cli::new("postgresql://127.0.0.1:1/nowhere").command(&["gate", "/absent.xml"]);
    let output = gate.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr_text(&output));
    assert_contains(&stderr_text(&output), "/absent.xml: no such file or folder");
}

#[test]
fn a_test_in_a_changed_file_with_a_name_that_git_quotes_is_not_excused() {
    let (history, checkout) = (folder(), tempfile::tempdir().unwrap());
    // In the branch's own earlier run, `odd` failed, too.
    fs::remove_file(history.path().join("run-21.json")).unwrap();
    let renamed = |report: &str| report.replace("tests/cart.test.ts", "tests/größe \\\"cart\\\".ts");
    for entry in fs::read_dir(history.path()).unwrap() {
        let path = entry.unwrap().path();
        fs::write(&path, renamed(&fs::read_to_string(&path).unwrap())).unwrap();
    }
    let git = |script: &str| {
        let mut git = Command::new("sh");
        git.args(["-euc", script])
            .current_dir(&checkout)
            .env("HOME", checkout.path());
        let output = git.output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
    };
    git(
        "git init --quiet . && git config user.name a && git config user.email a@example.org
         git commit --quiet --allow-empty -m base
         mkdir tests && touch 'tests/größe \"cart\".ts' && git add tests && git commit --quiet -m change",
    );
    let report = checkout.path().join("report.json");
    fs::write(
        &report,
        renamed(&ctrf(
            22,
            "feature/tax",
            "f2",
            &[("pays", None), ("odd", TIMEOUT)],
        )),
    )
    .unwrap();
    let (report, runs) = (report.display().to_string(), history.path().display().to_string());
    let gate = |list: &str| {
        let arguments = ["gate", &report, "--history", &runs, "--json", "--changed", list];
        let mut gate = Cli::new("postgresql://127.0.0.1:1/nowhere").command(&arguments);
        gate.current_dir(&checkout).output().unwrap()
    };
    let decision = |list: &str| {
        let output = gate(list);
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        (
            output.status.code(),
            value["failed"][0]["refusal"].as_str().map(str::to_owned),
        )
    };
    git(
        ": > none; git diff --name-only HEAD~ > lines; git diff --name-only -z HEAD~ > nuls; grep -qF 303 lines",
    );
    assert_eq!(decision("none"), (Some(0), None));
    assert_eq!(decision("lines"), (Some(1), Some("changed".to_owned())));
    assert_eq!(decision("nuls"), (Some(1), Some("changed".to_owned())));
    // The end of a list that is too long would be missing.
    let long = File::create(checkout.path().join("long")).unwrap();
    long.set_len((16 << 20) + 1).unwrap();
    let output = gate("long");
    assert_eq!(output.status.code(), Some(2), "{}", stderr_text(&output));
    assert_contains(
        &stderr_text(&output),
        "--changed long: the list is longer than 16 MiB",
    );
}

#[test]
fn a_report_that_is_only_judged_is_not_reported_to_a_code_host() {
    let output = Cli::new("postgresql://127.0.0.1:1/nowhere")
        .command(&["gate", "saved.xml", "--report-to", "comment"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr_text(&output));
    assert_contains(&stderr_text(&output), "--report-to needs --run");
}
