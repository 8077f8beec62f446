//! The causes of failures of a run that is not stored.

use assay_testkit::text;
use serde_json::{Value, json};

use super::Agents;
use crate::failures;

#[test]
fn failures_of_a_local_run_are_judged_against_what_is_stored() {
    let agents = Agents::empty();
    let runs = failures::import_failures(&agents.world);
    let read = agents.world.get(&format!("/runs/{}/failures", runs[14]));
    let name = |test: &str| {
        let names = read["failures"]
            .as_array()
            .unwrap()
            .iter()
            .map(|failure| text(&failure["testName"]));
        names.into_iter().find(|name| name.ends_with(test)).unwrap()
    };
    let judged = agents.answer(
        "explain_failures",
        json!({"failures": [
            {"test": name("wobbles"), "message": "expected 3, got 4", "stack": "at cart.test.ts:3:1"},
            {"test": name("gone"), "message": "expected 3, got 4", "stack": "at cart.test.ts:3:1"},
            {"test": name("adds").replace("adds", "sums"), "message": "no such column: price", "attempts": 2},
            {"test": "never seen", "message": "?"},
        ]}),
    );
    assert_eq!(judged["unknown"], json!(["never seen"]));
    let misspelt = json!({"failures": [{"test": "cart > wobles"}]});
    let misspelt = agents.answer("explain_failures", misspelt);
    assert_eq!(misspelt["similar"][0]["test"], "cart > wobles");
    // Nothing was judged, which is no action.
    assert_eq!(misspelt.get("gate"), None, "{misspelt:#}");
    assert!(text(&misspelt["says"]).contains("no action"), "{misspelt:#}");
    assert_eq!(misspelt["similar"][0]["stored"][0], name("wobbles"));
    let of = |test: &str| {
        let failures = judged["failures"].as_array().unwrap();
        failures
            .iter()
            .find(|failure| text(&failure["test"]).ends_with(test))
            .unwrap()
            .clone()
    };
    assert_eq!(of("gone")["cause"], "broken_before", "{judged:#}");
    assert_eq!(of("sums")["cause"], "this_change", "{judged:#}");
    assert_eq!(judged["failures"][0]["test"], of("sums")["test"]);
    assert!(
        of("sums")["mine"].as_f64() > of("wobbles")["mine"].as_f64(),
        "{judged:#}"
    );
    assert_eq!(of("wobbles")["sameError"]["asFlake"], 2, "{judged:#}");
    assert_eq!(judged["gate"]["action"], "block");
    let listed = agents.answer("list_runs", json!({}));
    assert_eq!(listed["total"], runs.len(), "nothing is stored");

    // A test that fails with this error for the first time has one more other test with it.
    let other_tests = |test: &str| {
        let failure = json!({"test": test, "message": "expected 3, got 4", "stack": "at cart.test.ts:3:1"});
        let judged = agents.answer("explain_failures", json!({"failures": [failure]}));
        judged["failures"][0]["sameError"]["otherTests"].as_u64().unwrap()
    };
    let sums = name("adds").replace("adds", "sums");
    assert_eq!(other_tests(&sums), other_tests(&name("wobbles")) + 1);
}

#[test]
fn a_local_run_follows_stored_runs_without_branches() {
    let agents = Agents::empty();
    for run in 0..12 {
        let key = run.to_string();
        agents
            .world
            .import_cases(200 - run, &[("adds", true), ("pays", true)], &["--run-key", &key]);
    }
    let name = text(&agents.answer("explain_test", json!({"test": "adds"}))["test"]);
    let failure = json!({"test": name, "message": "expected 3, got 4", "stack": "at cart.test.ts:3:1"});
    let judged = |arguments: Value| {
        let judged = agents.answer("explain_failures", arguments);
        let failure = &judged["failures"][0];
        (failure["cause"].clone(), text(&failure["why"]))
    };
    let local = judged(json!({"failures": [failure]}));
    assert!(
        local
            .1
            .contains("assed in all 12 runs before and failed on this revision"),
        "{local:?}"
    );
    assert_eq!(judged(json!({"failures": [failure], "branch": "topic"})), local);

    let flags = ["--run-key", "next", "--commit", "aa00c0ffee"];
    let stored = agents
        .world
        .import_cases(0, &[("adds", false), ("pays", true)], &flags);
    assert_eq!(
        judged(json!({"run": stored["runId"]})),
        local,
        "the same run, stored"
    );
}

#[test]
fn a_local_failure_is_never_dated_by_its_own_run() {
    let agents = Agents::empty();
    agents.world.import_cases(
        20 * 24 * 60,
        &[("adds", true)],
        &["--branch", "main", "--commit", "aa00c0ffee"],
    );
    let runs = agents.answer("list_runs", json!({}));
    assert_eq!(runs["total"], 1);
    let run = agents
        .world
        .get(&format!("/runs/{}", text(&runs["runs"][0]["run"])));
    let local = json!({"failures": [{"test": run["tests"][0]["testName"]}], "branch": "main"});
    let judged = agents.answer("explain_failures", local);
    let why = text(&judged["failures"][0]["why"]);
    assert!(why.contains("roken on main before this run"), "{judged:#}");
    assert!(!why.contains(&i32::MAX.to_string()), "{judged:#}");
}
