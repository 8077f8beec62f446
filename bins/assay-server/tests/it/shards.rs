//! Shards that arrive late, again or never.

use assay_testkit::{ServedWorld, text};
use serde_json::Value;

#[test]
fn a_late_shard_joins_its_run_and_any_shards_id_names_it() {
    let world = ServedWorld::new();
    let first = world.import_cases(60, &[("one", true)], &["--run-key", "b", "--shard", "1/2"]);
    let detail = world.get(&format!("/runs/{}", text(&first["runId"])));
    assert_eq!(detail["run"]["status"], "incomplete");
    assert_eq!(world.get("/runs")["runs"][0]["status"], Value::Null);

    let late = world.import_cases(50, &[("two", false)], &["--run-key", "b", "--shard", "2/2"]);
    assert_eq!(late["runId"], first["runId"]);
    let by_run = world.ask(&format!(
        "/projects/{}/runs/{}",
        world.project,
        text(&first["runId"])
    ));
    let by_shard = world.ask(&format!(
        "/projects/{}/runs/{}",
        world.project,
        text(&late["shardId"])
    ));
    assert_eq!(by_run.text(), by_shard.text());
    let detail = by_run.json();
    assert_eq!(
        (&detail["run"]["status"], &detail["counts"]["total"]),
        (&"failed".into(), &2.into())
    );
    assert_eq!(detail["run"]["shards"]["received"].as_array().unwrap().len(), 2);
    assert_eq!(world.get("/runs")["total"], 1);
}

#[test]
fn a_shard_replaces_its_earlier_content_on_request() {
    let world = ServedWorld::new();
    world.import_cases(60, &[("one", true)], &["--run-key", "b", "--shard", "1/2"]);
    let broken = world.import_cases(
        50,
        &[("two", false), ("gone", true)],
        &["--run-key", "b", "--shard", "2/2"],
    );
    let fingerprint = text(&world.get("/errors")["errors"][0]["fingerprint"]);
    let again = ["--run-key", "b", "--shard", "2/2", "--replace"];
    let fixed = world.import_cases(50, &[("two", true)], &again);
    assert_eq!(broken["shardId"], fixed["shardId"]);
    let detail = world.get(&format!("/runs/{}", text(&fixed["runId"])));
    assert_eq!(
        (&detail["run"]["status"], &detail["counts"]["total"]),
        (&"passed".into(), &2.into())
    );
    assert!(world.get("/errors")["errors"].as_array().unwrap().is_empty());
    assert_eq!(
        world
            .ask(&format!("/projects/{}/errors/{fingerprint}", world.project))
            .status,
        404
    );
}
