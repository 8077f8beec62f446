//! `assay run --gate --rerun`: unclear failures run again in the same job, and the gate decides.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Output};

use assay_testkit::stderr_text;
use serde_json::Value;

use crate::{
    gate::{Case, Job, TIMEOUT, ingest, report},
    ingest::IngestServer,
};

const TYPE_ERROR: Option<&str> = Some("TypeError: tax is not a function");

/// A runner that writes the next prepared report each time, the last one again and again, and records its arguments. A
/// test can make it hang.
const RUNNER: &str = "#!/bin/sh
echo \"$@\" >> calls
call=$(wc -l < calls | tr -d ' ')
if [ -e \"hangs-$call\" ]; then trap '' TERM; sleep 1000 & echo $! > child; wait; fi
while [ ! -e \"results-$call.xml\" ]; do call=$((call - 1)); done
cp \"results-$call.xml\" r.xml
! grep -q '<failure' r.xml
";

/// Runs a runner of this name under the gate. `calls` are the results of its first, second … call.
fn gate(job: &Job<'_>, runner: &str, commit: &str, calls: &[&[Case<'_>]], more: &[&str]) -> Output {
    let folder = job.folder.path();
    let _ = fs::remove_file(folder.join("calls"));
    let program = folder.join(runner);
    fs::write(&program, RUNNER).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for (number, cases) in calls.iter().enumerate() {
        fs::write(folder.join(format!("results-{}.xml", number + 1)), report(cases)).unwrap();
    }
    // A branch of its own, so that no other commit explains its failure.
    let branch = format!("feature/{commit}");
    let fixed = [
        "run", "--gate", "--report", "r.xml", "--branch", &branch, "--commit", commit,
    ];
    let program = program.display().to_string();
    let command = ["--", program.as_str(), "--ci"];
    job.run(&[], &[&fixed, more, &command].concat())
}

/// The arguments of each call of the runner.
fn calls(job: &Job<'_>) -> Vec<String> {
    let calls = fs::read_to_string(job.folder.path().join("calls")).unwrap();
    calls.lines().map(str::to_owned).collect()
}

/// The newest run, and the attempts of its test `pays`.
fn newest(ingest: &IngestServer) -> (Value, Vec<String>) {
    let run = ingest.read("/runs?perPage=10")["runs"][0].clone();
    let detail = ingest.read(&format!("/runs/{}", run["id"].as_str().unwrap()));
    let tests = detail["tests"].as_array().unwrap();
    let statuses = |test: &Value| {
        let name = test["testName"]
            .as_str()
            .unwrap()
            .replace(' ', "%20")
            .replace('>', "%3E");
        let id = run["id"].as_str().unwrap();
        let path = format!("/runs/{id}/tests/{name}?filePath=cart.test.ts");
        let attempts = ingest.read(&path)["attempts"].clone();
        let attempts = attempts.as_array().unwrap().iter();
        attempts
            .map(|attempt| attempt["status"].as_str().unwrap().to_owned())
            .collect()
    };
    let pays = tests
        .iter()
        .find(|test| test["testName"] == "cart > pays")
        .unwrap();
    (detail.clone(), statuses(pays))
}

#[test]
fn a_failure_that_passes_again_is_excused_in_one_job() {
    let ingest = ingest();
    let job = Job::of(&ingest);
    let first: &[Case<'_>] = &[("pays", TYPE_ERROR), ("odd", None), ("old", None)];
    // The neighbour that fails beside it ran only to keep it company.
    let again: &[Case<'_>] = &[("pays", None), ("odd", TIMEOUT)];
    let output = gate(&job, "jest", "f1", &[first, again], &["--rerun", "90s"]);
    let stderr = stderr_text(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    for part in [
        "Gate: passes, 1 failed test excused",
        "  Ran 1 test again, ",
        "ran again: passed ",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    let calls = calls(&job);
    assert_eq!(calls[0], "--ci");
    assert!(
        calls.len() > 1
            && calls[1..]
                .iter()
                .all(|call| call.starts_with("--ci ") && call.ends_with("-- cart\\.test\\.ts")),
        "{calls:?}"
    );
    // The report of the first run is in place again.
    let kept = fs::read_to_string(job.folder.path().join("r.xml")).unwrap();
    assert_eq!(kept, report(first));
    let (run, attempts) = newest(&ingest);
    assert_eq!(
        attempts,
        ["failed", "passed"],
        "further passes are no runs of their own"
    );
    assert_eq!(run["run"]["status"], "passed", "{run}");
    assert_eq!(run["counts"]["total"], 3, "{run}");
    // The decision is stored with the run.
    let uploads = ingest.cli.json(&["uploads", "--project", "web"]);
    assert!(uploads.to_string().contains("excused"), "{uploads}");
}

#[test]
fn a_rerun_that_hangs_ends_with_its_budget_and_its_children_and_decides_nothing() {
    let ingest = ingest();
    let job = Job::of(&ingest);
    fs::write(job.folder.path().join("hangs-2"), "").unwrap();
    let first: &[Case<'_>] = &[("pays", TYPE_ERROR), ("odd", None)];
    let output = gate(&job, "jest", "f1", &[first], &["--rerun", "3s"]);
    let stderr = stderr_text(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for part in [
        "Gate: not decided, ",
        "A rerun was ended after the 3 s of --rerun",
        "A longer --rerun decides, unless the test hangs",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    let child = fs::read_to_string(job.folder.path().join("child")).unwrap();
    let state = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
    let kept = fs::read_to_string(job.folder.path().join("r.xml")).unwrap();
    assert_eq!(kept, report(first));
}

#[test]
fn a_new_test_that_fails_in_some_repetitions_is_newly_flaky_in_each_job() {
    let ingest = ingest();
    let job = Job::of(&ingest);
    let results = |fresh| -> [Case<'static>; 2] { [("pays", None), ("fresh", fresh)] };
    let (passed, failed) = (results(None), results(TIMEOUT));
    let calls: [&[Case<'_>]; 6] = [&passed, &passed, &failed, &passed, &failed, &passed];
    // The second job knows the failures of the first one, which are of this change, too.
    for number in ["1", "2"] {
        let flags = ["--burn-in", "20s", "--run-key", number];
        let output = gate(&job, "jest", "f1", &calls, &flags);
        let stderr = stderr_text(&output);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        for part in ["Gate: does not pass", "Newly flaky: cart > fresh fails in 2 of "] {
            assert!(stderr.contains(part), "{part}: {stderr}");
        }
    }
}

#[test]
fn only_the_listed_tests_of_a_rerun_are_stored() {
    let ingest = ingest();
    let send = |fields: &[(&str, &str)], cases: &[Case<'_>]| {
        let fixed = [("branch", "topic"), ("commit", "t1"), ("runKey", "build-t1")];
        ingest.send(
            &ingest.key,
            &[&fixed, fields].concat(),
            &[("r.xml", report(cases).as_bytes())],
        )
    };
    send(&[], &[("pays", TYPE_ERROR), ("odd", None)]);
    let rerun = r#"[{"name": "cart > pays", "filePath": "cart.test.ts"}]"#;
    let fields = [("attempt", "2"), ("rerun", rerun)];
    let answer = send(&fields, &[("pays", None), ("odd", TIMEOUT), ("old", TIMEOUT)]);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let answer = answer.json();
    assert_eq!(
        (&answer["tests"], &answer["status"]),
        (&1.into(), &"passed".into()),
        "{answer}"
    );
    assert_eq!(newest(&ingest).1, ["failed", "passed"]);
    for (wrong, reason) in [
        ("[]", "expected 1 to 200 tests"),
        ("pays", "expected a JSON array of tests"),
        (r#"[{"name": "nothing", "filePath": null}]"#, "holds no test"),
    ] {
        let refused = send(&[("attempt", "3"), ("rerun", wrong)], &[("pays", None)]);
        assert!([400, 422].contains(&refused.status), "{wrong}");
        assert!(refused.text().contains(reason), "{wrong}: {}", refused.text());
    }
}
