//! From an empty database to an answer, with changes by an administrator in between.

use std::{
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{ServedWorld, text};
use serde_json::json;

#[test]
fn imported_runs_are_visible_on_every_route() {
    let world = ServedWorld::new();
    let imported = world.import_cases(
        60,
        &[("adds", true), ("sums", false)],
        &[
            "--branch",
            "main",
            "--commit",
            "c0ffee00c0ffee00",
            "--ci",
            "gitlab-ci",
            "--pr",
            "7",
            "--pr-title",
            "Sum",
        ],
    );
    world.import_cases(
        30,
        &[("adds", true), ("sums", true)],
        &["--branch", "topic", "--commit", "c0ffee00c0ffee00"],
    );

    let projects = world.ask("/projects").json();
    assert_eq!(
        projects["projects"][0]["id"].as_str(),
        Some(world.project.as_str())
    );
    let runs = world.get("/runs");
    assert_eq!(runs["total"], 2);
    assert_eq!(runs["runs"][1]["id"], imported["runId"]);
    assert_eq!(runs["runs"][1]["counts"], imported["counts"]);
    assert_eq!(world.get("/runs?branch=topic")["total"], 1);
    assert_eq!(world.get("/branches")["branches"], json!(["main", "topic"]));

    let run = text(&imported["runId"]);
    let detail = world.get(&format!("/runs/{run}"));
    assert_eq!(detail["run"]["pullRequestTitle"], "Sum");
    assert_eq!(detail["run"]["ciProvider"], "gitlab-ci");
    let failed = detail["tests"]
        .as_array()
        .unwrap()
        .iter()
        .find(|test| test["status"] == "failed")
        .unwrap();
    let (name, fingerprint) = (text(&failed["testName"]), text(&failed["fingerprint"]));
    assert_eq!(failed["filePath"], "cart.test.ts");

    let encoded = name.replace(' ', "%20").replace('>', "%3E");
    let attempts = world.get(&format!("/runs/{run}/tests/{encoded}"));
    assert_eq!(attempts["attempts"][0]["label"], "first try");
    assert!(text(&attempts["attempts"][0]["copyPrompt"]).contains("expected 3, got 4"));
    assert_eq!(
        world.get(&format!("/tests/{encoded}"))["occurrences"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        world.get(&format!("/tests/{encoded}/status"))["awaitingFirstWrite"],
        false
    );
    let signature = world.get(&format!("/errors/{fingerprint}"));
    assert_eq!(signature["signature"]["occurrenceCount"], 1);
    assert_eq!(signature["runs"][0]["runId"], imported["runId"]);
    assert_eq!(
        world.get("/errors")["errors"][0]["fingerprint"].as_str(),
        Some(fingerprint.as_str())
    );
    // The test failed and passed on one revision.
    assert_eq!(
        world.get("/flaky")["tests"][0]["testName"].as_str(),
        Some(name.as_str())
    );
    assert_eq!(world.get("/settings")["settings"]["stableBranch"], "main");
}

#[test]
fn a_revocation_and_a_plan_take_effect_within_a_second() {
    let world = ServedWorld::new();
    assert_eq!(world.ask("/projects").status, 200);
    world.cli.json(&["org", "set-plan", "Shop", "free"]);
    within_a_second(&world, 403, "tier_too_low");
    world.cli.json(&["org", "set-plan", "Shop", "standard"]);
    within_a_second(&world, 200, "");
    assert_eq!(
        world
            .ask(&format!("/projects/{}/runs?days=90", world.project))
            .json()["code"],
        "invalid_period"
    );
    world.cli.json(&["key", "revoke", &world.key_id]);
    within_a_second(&world, 401, "key_revoked");
}

#[test]
fn an_ingest_key_reads_nothing() {
    let world = ServedWorld::new();
    let key = text(&world.cli.json(&["key", "create-ingest", "--project", "web"])["key"]);
    let answer = world.server.client().get("/api/v1/projects", Some(&key));
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (401, &"wrong_key_type".into())
    );
}

#[test]
fn settings_show_what_was_set() {
    let world = ServedWorld::new();
    world.cli.json(&[
        "project",
        "set",
        "web",
        "--stable-branch",
        "trunk",
        "--chat-events",
        "new_error,run_failed",
        "--pr-comments",
        "on",
    ]);
    let settings = world.get("/settings");
    assert_eq!(settings["settings"]["stableBranch"], "trunk");
    // Nothing sends messages yet.
    assert_eq!(
        settings["settings"]["chat"],
        json!({"configured": false, "events": []})
    );
    world.cli.notify_once();
    let settings = world.get("/settings");
    assert_eq!(
        settings["settings"]["chat"],
        json!({"configured": true, "events": ["run_failed", "new_error"]})
    );
    assert_eq!(settings["settings"]["repohost"]["prCommentsEnabled"], true);
    world.cli.json(&["project", "set", "web", "--no-chat"]);
    assert_eq!(
        world.get("/settings")["settings"]["chat"],
        json!({"configured": false, "events": []})
    );
}

/// Repeats a request until it has this status and code. This must happen within a second.
fn within_a_second(world: &ServedWorld, status: u16, code: &str) {
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        let sent_at = Instant::now();
        let answer = world.ask("/projects");
        if answer.status == status && answer.json()["code"].as_str().unwrap_or_default() == code {
            return;
        }
        assert!(sent_at < deadline, "still {}: {}", answer.status, answer.text());
        thread::sleep(Duration::from_millis(50));
    }
}
