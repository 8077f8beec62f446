//! The private cluster, for a command's duration.

use std::process::{Command, Output, Stdio};

use assay_testkit::program;
use serde_json::Value;

use crate::{junit, world::said};

fn assay(folder: &std::path::Path, arguments: &[&str]) -> Output {
    Command::new(program("assay"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("ASSAY_DATABASE_URL")
        .env_remove("ASSAY_DATA_DIR")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn without_a_database_each_command_starts_the_private_one_and_stops_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let json = |arguments: &[&str]| -> Value {
        let output = assay(folder.path(), arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    // The schema of a private database is brought up to date without being asked.
    let made = json(&["org", "create", "Mine", "--json"]);
    json(&["project", "create", "--org", "Mine", "web", "--json"]);
    std::fs::write(
        folder.path().join("r.xml"),
        junit::report("2026-11-20T10:00:00Z", &[("adds", true)]),
    )
    .unwrap();
    let imported = json(&["import", "--project", "web", "--no-ci", "r.xml", "--json"]);
    assert_eq!(imported["counts"]["passed"], 1);
    assert_eq!(
        json(&["org", "list", "--json"])["organizations"][0]["id"],
        made["id"]
    );
}

#[test]
fn an_empty_address_names_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let output = Command::new(program("assay"))
        .args(["org", "list", "--json", "--data-dir"])
        .arg(&data)
        .env("ASSAY_DATABASE_URL", "")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
}
