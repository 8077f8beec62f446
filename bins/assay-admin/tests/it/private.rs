//! The private cluster during a command.

use std::process::{Command, Output, Stdio};

use assay_testkit::{program, stderr_text};
use serde_json::Value;

use crate::junit;

fn assay(folder: &std::path::Path, arguments: &[&str]) -> Output {
    Command::new(program("assay-admin"))
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
        assert!(output.status.success(), "{arguments:?}: {}", stderr_text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    // A program migrates a private database by itself.
    let organization = json(&["org", "create", "Mine", "--json"]);
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
        organization["id"]
    );
}

#[test]
fn the_private_folder_is_announced_once_and_found_from_below() {
    let folder = tempfile::tempdir().unwrap();
    let first = assay(folder.path(), &["org", "create", "Mine"]);
    assert!(first.status.success(), "{}", stderr_text(&first));
    let data_folder = folder.path().canonicalize().unwrap().join(".assay");
    let line = format!(
        "assay-admin: making a private database in {} ",
        data_folder.display()
    );
    assert_eq!(
        stderr_text(&first).matches(&line).count(),
        1,
        "{}",
        stderr_text(&first)
    );
    assert!(stderr_text(&first).contains("--data-dir or ASSAY_DATA_DIR"));
    assert_eq!(
        std::fs::read_to_string(data_folder.join(".gitignore")).unwrap(),
        "*\n!config.toml\n!renames\n"
    );

    let below = folder.path().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    let output = assay(&below, &["org", "list", "--json"]);
    assert!(output.stderr.is_empty(), "{}", stderr_text(&output));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["organizations"][0]["name"], "Mine");
    assert!(!below.join(".assay").exists());
}

#[test]
fn a_folder_that_cannot_be_used_names_the_flag() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for dir in ["file", "file/below", "/sys/assay"] {
        let refused = assay(folder.path(), &["org", "list", "--data-dir", dir]);
        assert_eq!(refused.status.code(), Some(1), "{dir}: {}", stderr_text(&refused));
        assert!(
            stderr_text(&refused).contains("-> name a folder of your own with --data-dir (ASSAY_DATA_DIR)"),
            "{dir}: {}",
            stderr_text(&refused)
        );
    }
}

#[test]
fn an_empty_address_names_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let output = Command::new(program("assay-admin"))
        .args(["org", "list", "--json", "--data-dir"])
        .arg(&data)
        .env("ASSAY_DATABASE_URL", "")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
}
