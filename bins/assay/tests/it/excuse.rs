//! `assay excuse`, and the excuses with a date that the gate honours.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use assay_testkit::{ServedWorld, assert_contains, program, stderr_text, text};
use serde_json::Value;
use time::{Duration, OffsetDateTime};

use crate::{
    causes::{ctrf, folder},
    upload::output_text,
};

const REASON: &str = "The cart waits for a fix";

fn assay(checkout: &Path, arguments: &[&str]) -> Output {
    Command::new(program("assay"))
        .args(arguments)
        .current_dir(checkout)
        .output()
        .unwrap()
}

/// The day that is some days ahead, by the clock of the machine.
fn day(ahead: i64) -> String {
    let at = OffsetDateTime::now_utc() + Duration::days(ahead);
    at.date().to_string()
}

fn write(checkout: &Path, fingerprint: &str, until: &str) {
    fs::create_dir_all(checkout.join(".assay")).unwrap();
    let entry = format!(
        "[[excused]]\ntest = 'old'\nfingerprint = '{fingerprint}'\nowner = '@org/web'\nreason = '{REASON}'\n\
         ticket = 'WEB-7'\nuntil = {until}\n"
    );
    fs::write(checkout.join(".assay/excused.toml"), entry).unwrap();
}

#[test]
fn the_gate_honours_an_excuse_for_its_error_until_its_day() {
    let (history, checkout) = (folder(), tempfile::tempdir().unwrap());
    let checkout = checkout.path();
    let history = history.path().display().to_string();
    let report = ctrf(
        22,
        "feature/tax",
        "f2",
        &[("old", Some("Expected 3 items, got 4"))],
    );
    fs::write(checkout.join("report.json"), report).unwrap();
    let analysis = assay(checkout, &["analyze", &history, "--json"]);
    let analysis: Value = serde_json::from_slice(&analysis.stdout).unwrap();
    let mut tests = analysis["tests"].as_array().unwrap().iter();
    let old = tests.find(|test| text(&test["testName"]) == "old").unwrap();
    let fingerprint = text(&old["errors"][0]["fingerprint"]);
    let gate = || {
        let output = assay(
            checkout,
            &["gate", "report.json", "--history", &history, "--json"],
        );
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code(), value["failed"][0].clone())
    };
    let check = || assay(checkout, &["excuse", "check"]);
    let (status, failed) = gate();
    assert_eq!((status, &failed["refusal"]), (Some(1), &"broken".into()));
    assert_eq!(check().status.code(), Some(0), "without a file nothing changes");

    write(checkout, &fingerprint, &day(5));
    let (status, failed) = gate();
    assert_eq!((status, &failed["refusal"]), (Some(0), &Value::Null), "{failed}");
    let sentence = format!("Excused until {} by @org/web: {REASON} (WEB-7)", day(5));
    assert_eq!(failed["explanation"], sentence);
    assert_eq!(check().status.code(), Some(0));

    write(checkout, &"0".repeat(32), &day(5));
    assert_eq!(gate().0, Some(1));
    for impossible in ["xyz", &fingerprint[1..], &fingerprint.to_uppercase()] {
        write(checkout, impossible, &day(5));
        let checked = check();
        assert_eq!(checked.status.code(), Some(2), "{impossible}");
        assert_contains(&stderr_text(&checked), "which has 32 digits of 0 to 9 and a to f");
    }

    for (until, why) in [(day(-1), "was excused until"), (day(32), "at most 30 days ahead")] {
        write(checkout, &fingerprint, &until);
        assert_eq!(gate().0, Some(1), "{until}");
        let checked = check();
        assert_eq!(checked.status.code(), Some(1));
        assert!(output_text(&checked).contains(why), "{}", output_text(&checked));
    }
    let listed = assay(checkout, &["excuse", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["excused"][0]["state"], "too_long", "{listed}");

    write(checkout, &fingerprint, "'2026-12-20'");
    let broken = assay(checkout, &["gate", "report.json", "--history", &history]);
    assert_eq!(broken.status.code(), Some(2), "{}", stderr_text(&broken));
    assert_contains(&stderr_text(&broken), "excused.toml, line 7");
}

#[test]
fn entries_for_a_stored_run_can_be_pasted_into_the_file() {
    let world = ServedWorld::on_one_address(&[]);
    let key = text(&world.cli.json(&["key", "create-ingest", "--project", "web"])["key"]);
    let send = |branch: &str, run: &str, error: Option<&str>| {
        let inner = error
            .map(|error| format!(r#"<failure message="{error}"/>"#))
            .unwrap_or_default();
        let report = format!(
            r#"<testsuite><testcase classname="cart" name="adds" time="0.1">{inner}</testcase></testsuite>"#
        );
        let stored = world.server.ingest().post(
            &format!("/ingest/v1/reports?branch={branch}&commit={run}&runKey={run}"),
            &[("Authorization", &format!("Bearer {key}"))],
            report.as_bytes(),
        );
        assert_eq!(stored.status, 201, "{}", stored.text());
        text(&stored.json()["runId"])
    };
    for run in 0..8 {
        let error = (run % 2 == 1).then_some("Timed out");
        send("main", &format!("c{run}"), error);
    }
    let run = send("topic", "t1", Some("Timed out"));
    let checkout = tempfile::tempdir().unwrap();
    let propose = |flags: &[&str]| {
        Command::new(program("assay"))
            .args(["excuse", "propose", "--project", "web", "--run", &run])
            .args(flags)
            .env_remove("ASSAY_API_URL")
            .env("ASSAY_URL", format!("http://{}", world.server.address()))
            .env("ASSAY_READ_KEY", &world.key)
            .current_dir(checkout.path())
            .output()
            .unwrap()
    };
    let proposed = propose(&["--owner", "@org/web", "--ticket", "WEB-7", "--days", "30"]);
    assert!(proposed.status.success(), "{}", stderr_text(&proposed));
    fs::create_dir(checkout.path().join(".assay")).unwrap();
    fs::write(checkout.path().join(".assay/excused.toml"), &proposed.stdout).unwrap();
    let as_json: Value = serde_json::from_slice(&propose(&["--days", "30", "--json"]).stdout).unwrap();
    assert_eq!(as_json["excused"][0]["until"], day(30), "{as_json}");
    let listed = assay(checkout.path(), &["excuse", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["excused"][0]["until"], day(30), "{listed}");
    assert_eq!(listed["excused"][0]["state"], "in_force");
    assert!(text(&listed["excused"][0]["test"]).ends_with("adds"), "{listed}");
    assert!(assay(checkout.path(), &["excuse", "check"]).status.success());
    // What is empty has to be filled in.
    fs::write(checkout.path().join(".assay/excused.toml"), propose(&[]).stdout).unwrap();
    let checked = assay(checkout.path(), &["excuse", "check"]);
    assert_eq!(checked.status.code(), Some(2));
    assert_contains(&stderr_text(&checked), "owner is empty");
}
