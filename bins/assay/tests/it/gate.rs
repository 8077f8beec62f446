//! `assay gate` with a history, without a server.

use std::{fs, path::Path};

use assay_testkit::Cli;
use serde_json::Value;

use crate::{
    causes::{ctrf, folder},
    run::closed_pipe,
};

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
    assert_eq!(
        (status, &value["outcome"]),
        (Some(1), &"blocked".into()),
        "{value}"
    );
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
fn nothing_is_excused_without_a_history() {
    let empty = tempfile::tempdir().unwrap();
    let (status, stderr) = gate(empty.path(), &[("pays", None), ("odd", TIMEOUT)], &[]);
    assert_eq!(status, Some(3), "{stderr}");
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
