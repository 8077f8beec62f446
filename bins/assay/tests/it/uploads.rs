//! `assay uploads`: what a read key sees of the reports of other keys.

use std::process::{Command, Output};

use assay_testkit::{ServedWorld, assert_contains, program, stderr_text, text};
use serde_json::Value;

const REPORT: &str = r#"<testsuite><testcase classname="cart" name="adds" time="0.1"/></testsuite>"#;

fn uploads(world: &ServedWorld, key: &str, arguments: &[&str]) -> Output {
    Command::new(program("assay"))
        .arg("uploads")
        .args(arguments)
        .env_remove("ASSAY_API_URL")
        .env("ASSAY_URL", format!("http://{}", world.server.address()))
        .env("ASSAY_READ_KEY", key)
        .output()
        .unwrap()
}

#[test]
fn a_read_key_lists_uploads_by_the_names_of_their_keys_and_no_part_of_them() {
    let world = ServedWorld::on_one_address(&[]);
    let send = |flags: &[&str], run: &str| -> String {
        let create = [&["key", "create-ingest", "--project", "web"], flags].concat();
        let key = text(&world.cli.json(&create)["key"]);
        let stored = world.server.ingest().post(
            &format!("/ingest/v1/reports?branch=main&runKey={run}"),
            &[("Authorization", &format!("Bearer {key}"))],
            REPORT.as_bytes(),
        );
        assert_eq!(stored.status, 201, "{}", stored.text());
        key
    };
    let keys = [send(&["--name", "CI of web"], "first"), send(&[], "second")];

    let listed = uploads(&world, &world.key, &["--project", "web", "--json"]);
    assert!(listed.status.success(), "{}", stderr_text(&listed));
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let fields = |name: &str| -> Vec<Value> {
        let entries = listed["uploads"].as_array().unwrap().iter();
        entries.map(|entry| entry[name].clone()).collect()
    };
    assert_eq!(fields("keyName"), [Value::Null, "CI of web".into()]);
    assert_eq!(fields("runNumber"), [2, 1]);
    assert_eq!(fields("effect"), ["added", "added"]);
    let shown = uploads(&world, &world.key, &["--limit", "10"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert_contains(&shown, "CI of web");
    for key in keys {
        let beginning: String = key.chars().take(12).collect();
        let all = format!("{listed}{shown}");
        assert!(!all.contains(&beginning), "{all}");
    }

    let wrong = uploads(&world, &world.key, &["--project", "other"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert_contains(&stderr_text(&wrong), "has no project");
}
