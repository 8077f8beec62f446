//! The causes of failures, from imported reports to the answer.

use assay_testkit::{ServedWorld, text};
use serde_json::{Value, json};

use crate::gate_decisions::Pages;

/// Twelve runs of main with different code, a rerun of one of them, and two revisions of a branch. The newest revision
/// has four failures, and its rerun three. This revision broke `adds`, the earlier one broke `mails`, main broke
/// `gone`, and `wobbles` is flaky.
fn world_with_failures() -> (ServedWorld, Vec<String>) {
    let world = ServedWorld::new();
    let runs = import_failures(&world);
    (world, runs)
}

/// The ids of these runs after importing them into an empty project.
pub(crate) fn import_failures(world: &ServedWorld) -> Vec<String> {
    let mut runs = Vec::new();
    let mut import = |minutes: i64, branch: &str, commit: &str, failed: &[&str]| {
        let tests = ["adds", "gone", "mails", "sums", "wobbles"];
        let cases = tests.map(|test| (test, !failed.contains(&test)));
        let key = minutes.to_string();
        let flags = ["--branch", branch, "--commit", commit, "--run-key", &key];
        let imported = world.import_cases(minutes, &cases, &flags);
        runs.push(text(&imported["runId"]));
    };
    for index in 0..12 {
        let mut failed = Vec::new();
        if index >= 10 {
            failed.push("gone");
        }
        if index == 4 {
            failed.push("wobbles");
        }
        let commit = format!("{index:02}c0ffee");
        import(3_000 - index * 100, "main", &commit, &failed);
        if index == 4 {
            import(3_000 - index * 100 - 10, "main", &commit, &[]);
        }
    }
    import(300, "topic", "aa00c0ffee", &["gone", "mails"]);
    import(200, "topic", "bb00c0ffee", &["adds", "gone", "mails", "wobbles"]);
    import(190, "topic", "bb00c0ffee", &["adds", "gone", "mails"]);
    runs
}

fn failure_of<'a>(body: &'a Value, test: &str) -> &'a Value {
    let failures = body["failures"].as_array().unwrap();
    let failure = failures
        .iter()
        .find(|failure| text(&failure["testName"]).ends_with(test));
    failure.unwrap_or_else(|| panic!("{test} is not in {body:#}"))
}

#[test]
fn damage_of_one_run_takes_no_other_answer_away() {
    let (world, runs) = world_with_failures();
    let failures = format!("/runs/{}/failures", runs[14]);
    let before = world.get(&failures);
    let others = [
        "/flaky".to_owned(),
        "/runs?days=30".to_owned(),
        "/tests/cart%20%3E%20adds".to_owned(),
        "/tests/cart%20%3E%20wobbles/status".to_owned(),
        format!("/runs/{}/failures", runs[13]),
    ];
    for (damage, is_lost) in [
        ("UPDATE run_pack SET pack = '\\x01' WHERE run_number = 15", false),
        (
            "UPDATE result_block SET status = '\\x01' WHERE run_number = 15",
            true,
        ),
        (
            "UPDATE result_block SET status = '\\x0909090909' WHERE run_number = 15",
            true,
        ),
    ] {
        world.database.execute(damage);
        // Another process: the first one has read the results.
        let pages = Pages::over(world.database.url(), &world.key, &world.project);
        let get = |path: &str| pages.server.client().get(&world.path(path), Some(&world.key));
        for path in ["", "/runs", "/tests"] {
            pages.page(path);
        }
        for show in ["", "?show=failed", "?show=all"] {
            let page = pages.run(&runs[14], show);
            let says_so = page.contains("are damaged") && page.contains("assay-admin import --replace");
            assert!(
                says_so == is_lost && page.contains("bb00c0ff"),
                "{damage}, {show}: {page}"
            );
        }
        for path in &others {
            let answer = get(path);
            assert!(answer.status == 200, "{damage}, {path}: {}", answer.text());
        }
        let answer = get(&failures);
        if is_lost {
            assert!(
                answer.status == 500 && answer.text().contains("are damaged"),
                "{}",
                answer.text()
            );
        } else {
            for test in ["adds", "gone", "mails", "wobbles"] {
                let cause = |body| failure_of(body, test)["cause"].clone();
                assert_eq!(cause(&answer.json()), cause(&before), "{test}");
            }
        }
    }
}

#[test]
fn each_failure_has_its_cause_and_the_run_its_gate() {
    let (world, runs) = world_with_failures();
    let body = world.get(&format!("/runs/{}/failures", runs[14]));
    assert_eq!(body["run"]["id"].as_str(), Some(runs[14].as_str()));
    assert_eq!(body["page"]["total"], 4);
    let adds = failure_of(&body, "adds");
    assert_eq!(
        (&adds["cause"], &adds["status"]),
        (&json!("this_change"), &json!("failed"))
    );
    assert_eq!(
        adds["explanation"],
        "Passed in all 13 runs on main and failed on this revision"
    );
    assert_eq!(adds["evidence"]["runsTotal"], 13);
    assert_eq!(
        adds["evidence"]["runs"][0],
        json!({"runId": runs[12], "says": "passed_on_stable"})
    );
    assert_eq!(adds["sameError"]["inThisRun"], 3);
    assert_eq!(adds["title"], "expected 3, got … · cart.test.ts");
    assert_eq!(
        adds["stable"],
        json!({"lastStatus": "passed", "failureStreak": 0})
    );

    let gone = failure_of(&body, "gone");
    assert_eq!(
        (&gone["cause"], &gone["action"]),
        (&json!("broken_before"), &json!("pass"))
    );
    assert_eq!(
        gone["explanation"],
        "Fails on main since run 12, with the same error"
    );
    assert_eq!(
        gone["stable"],
        json!({"lastStatus": "failed", "failureStreak": 2})
    );

    let mails = failure_of(&body, "mails");
    assert_eq!(mails["cause"], "earlier_on_branch");
    assert_eq!(
        mails["explanation"],
        "Fails on this branch since revision aa00c0ff (run 14)"
    );

    let wobbles = failure_of(&body, "wobbles");
    assert_eq!(wobbles["cause"], "flake");
    assert_eq!(
        wobbles["explanation"],
        "Failed in 1 of 14 runs on good code, 1 time with this error"
    );
    assert_eq!(
        (&body["gate"]["action"], &body["gate"]["byCause"]["flake"]),
        (&json!("block"), &json!(1))
    );
}

#[test]
fn hindsight_reads_the_rerun() {
    let (world, runs) = world_with_failures();
    let at_the_time = world.get(&format!("/runs/{}/failures", runs[14]));
    let later = world.get(&format!("/runs/{}/failures?mode=hindsight", runs[14]));
    let flake = |body: &Value| {
        failure_of(body, "wobbles")["probabilities"]["flake"]
            .as_f64()
            .unwrap()
    };
    assert!(flake(&later) > flake(&at_the_time));
    assert_eq!(
        failure_of(&later, "wobbles")["explanation"],
        "Passed when run 16 ran the same revision again; failed in 1 of 15 runs on good code, 1 time with this error"
    );
    let this = |body: &Value| {
        failure_of(body, "adds")["probabilities"]["thisChange"]
            .as_f64()
            .unwrap()
    };
    assert!(this(&later) > this(&at_the_time));
    assert_eq!(later["mode"], "hindsight");
}

#[test]
fn a_green_run_passes_the_gate() {
    let (world, runs) = world_with_failures();
    let body = world.get(&format!("/runs/{}/failures", runs[0]));
    assert_eq!(body["failures"], json!([]));
    assert_eq!(
        (&body["gate"]["action"], &body["gate"]["mine"]),
        (&json!("pass"), &json!(0.0))
    );
}

#[test]
fn a_test_without_history_is_no_flake() {
    let world = ServedWorld::new();
    let imported = world.import_cases(10, &[("adds", false)], &["--branch", "topic"]);
    let body = world.get(&format!("/runs/{}/failures", text(&imported["runId"])));
    let explanation = text(&failure_of(&body, "adds")["explanation"]);
    assert_eq!(
        explanation,
        "No other branch ran in the 14 days before, so nothing shows whether this branch broke it"
    );
    assert_eq!(body["gate"]["action"], "rerun");
}
