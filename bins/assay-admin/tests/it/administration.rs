//! Organizations, projects and keys.

use std::{process::Stdio, thread};

use assay_testkit::{Cli, TestDatabase, World, assert_contains, insert_results, stderr_text, text};
use diesel::connection::SimpleConnection as _;
use serde_json::json;

use crate::junit;

#[test]
fn organizations_are_created_listed_and_moved_between_plans() {
    let database = TestDatabase::new();
    let cli = Cli::new(database.url());
    let organization = cli.json(&["org", "create", "Shop"]);
    assert_eq!(
        (&organization["name"], &organization["plan"]),
        (&"Shop".into(), &"pro".into())
    );
    assert_eq!(organization.as_object().unwrap().len(), 3, "{organization}");

    let moved = cli.json(&["org", "set-plan", "Shop", "standard"]);
    assert_eq!(
        (&moved["id"], &moved["plan"]),
        (&organization["id"], &"standard".into())
    );
    let list = cli.json(&["org", "list"]);
    assert_eq!(list["organizations"][0]["id"], organization["id"]);
    assert_eq!(list["organizations"][0]["plan"], "standard");
    assert!(text(&list["organizations"][0]["createdAt"]).ends_with('Z'));
}

#[test]
fn a_name_of_several_projects_is_ambiguous_and_an_id_never_is() {
    let world = World::without_key();
    world.cli.json(&["org", "create", "Bakery"]);
    let second = world.cli.json(&["project", "create", "--org", "Bakery", "web"]);
    let refused = world.cli.run(&["key", "create-ingest", "--project", "web"]);
    assert_eq!(refused.status.code(), Some(1));
    let reason = stderr_text(&refused);
    assert!(
        reason.contains(&world.project) && reason.contains(&text(&second["id"])),
        "{reason}"
    );
    assert!(refused.stdout.is_empty());

    let list = world.cli.json(&["project", "list", "--org", &world.org]);
    assert_eq!(list["projects"][0]["id"].as_str(), Some(world.project.as_str()));
    assert_eq!(list["projects"][0]["stableBranch"], "main");
    let none = world.cli.run(&["project", "list", "--org", "Shoppe"]);
    assert_eq!(none.status.code(), Some(1));
    assert_contains(&stderr_text(&none), "assay-admin org list");
}

#[test]
fn a_duplicate_name_is_refused() {
    let world = World::without_key();
    world.cli.json(&["org", "create", "Bakery"]);
    world.cli.json(&["project", "create", "--org", "Shop", "api"]);
    for refused in [
        &["org", "create", "Shop"][..],
        &["org", "rename", "Bakery", "Shop"],
        &["project", "create", "--org", "Shop", "web"],
        &["project", "rename", "api", "web"],
    ] {
        let output = world.cli.run(refused);
        assert_eq!(output.status.code(), Some(1), "{refused:?}");
        let reason = stderr_text(&output);
        assert_contains(&reason, "there is already");
    }
    world.cli.json(&["project", "create", "--org", "Bakery", "web"]);
    let refused = world
        .cli
        .run(&["project", "move-to-org", &world.project, "Bakery"]);
    assert_contains(&stderr_text(&refused), "there is already");
}

#[test]
fn everything_that_can_be_created_can_be_renamed_moved_and_deleted() {
    let world = World::without_key();
    let cli = &world.cli;
    let report = world.file("r.xml", &junit::report("2026-11-20T10:00:00Z", &[("adds", true)]));
    world.import(&["--run-key", "a", &report]);
    let renamed = cli.json(&["project", "rename", "web", "store"]);
    assert_eq!(
        renamed,
        json!({ "id": world.project, "name": "store", "stableBranch": "main" })
    );
    let renamed = cli.json(&["org", "rename", "Shop", "Corner Shop"]);
    assert_eq!(
        renamed,
        json!({ "id": world.org, "name": "Corner Shop", "plan": "pro" })
    );
    let bakery = cli.json(&["org", "create", "Bakery"]);
    let moved = cli.json(&["project", "move-to-org", "store", "Bakery"]);
    assert_eq!(moved["organizationId"], bakery["id"]);
    assert_eq!(
        cli.json(&["project", "list", "--org", "Corner Shop"])["projects"],
        json!([])
    );

    for needs_yes in [&["project", "delete", "store"][..], &["org", "delete", "Bakery"]] {
        let refused = cli.run(needs_yes);
        assert_eq!(refused.status.code(), Some(1), "{needs_yes:?}");
        assert_contains(&stderr_text(&refused), "--yes");
    }
    assert_eq!(world.count("SELECT count(*) FROM run"), 1);
    let deleted = cli.json(&["project", "delete", "store", "--yes"]);
    assert_eq!(
        deleted,
        json!({ "id": world.project, "name": "store", "deleted": true, "runs": 1, "results": 1 })
    );
    cli.json(&["project", "create", "--org", "Bakery", "store"]);
    let deleted = cli.json(&["org", "delete", "Bakery", "--yes"]);
    assert_eq!((&deleted["projects"], &deleted["runs"]), (&1.into(), &0.into()));
    assert_eq!(cli.json(&["project", "list"])["projects"], json!([]));
    assert_eq!(
        cli.json(&["org", "list"])["organizations"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let unknown = cli.run(&["project", "delete", "store", "--yes"]);
    assert_eq!(unknown.status.code(), Some(1));
}

#[test]
fn a_killed_deletion_resumes_while_others_import() {
    let world = World::without_key();
    world.cli.json(&["project", "create", "--org", "Shop", "doomed"]);
    world.database.execute(&format!(
        "CREATE TEMP TABLE many AS SELECT id AS project, number, now() - number * interval '1 minute' AS start \
             FROM project, generate_series(1, 4000) AS number WHERE name = 'doomed'; \
         SELECT assay_create_partition(start, now()) FROM many; \
         INSERT INTO run SELECT project, number, gen_random_uuid(), sha256(convert_to(number::text, 'UTF8')), false, NULL, \
             NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'passed', start, start, 1, NULL, 40, 40, 0, 0, 0 FROM many; \
         {}",
        insert_results(
            "SELECT project, start, 5, number, test, NULL, 0, 0, 0, 0 FROM many, generate_series(0, 39) AS test"
        )
    ));
    let report = world.file("r.xml", &junit::report("2026-11-20T10:00:00Z", &[("adds", true)]));
    let results = || world.count("SELECT count(*) FROM result");
    for round in 0..3 {
        let before = results();
        // The deletion waits for this row, so that it is killed in the middle: some batches are gone and some are left.
        // A batch has up to 501 runs. Postgres ends the batch of the killed client once the row is free. At most 501
        // runs from this one on are gone then, and the next round begins with a batch before its row.
        let mut holder = world.database.connection();
        holder
            .batch_execute(&format!(
                "BEGIN; SELECT FROM result_block WHERE run_number = {} FOR UPDATE",
                600 + round * 1_100
            ))
            .unwrap();
        let mut deletion = world
            .cli
            .command(&["project", "delete", "doomed", "--yes"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while results() == before && deletion.try_wait().unwrap().is_none() {
            thread::yield_now();
        }
        deletion.kill().unwrap();
        drop(holder);
        world.import(&["--run-key", &format!("run {round}"), &report]);
        deletion.wait().unwrap();
        let listed = world.cli.json(&["project", "list"]);
        assert_eq!(listed["projects"].as_array().unwrap().len(), 1, "{listed}");
    }
    assert!(results() > 20_000, "the last kill came too late");
    world.cli.json(&["org", "create", "Closing"]);
    world
        .database
        .execute("UPDATE organization SET deleted_at = now() WHERE name = 'Closing'");
    let doctor = world.cli.run(&["doctor"]);
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    for deletion in ["the organization \"Closing\" (", "the project \"doomed\" ("] {
        assert_contains(&doctor, &format!("the deletion of {deletion}"));
    }
    world.cli.json(&["project", "delete", "doomed", "--yes"]);
    assert_eq!((results(), world.count("SELECT count(*) FROM run")), (3, 3));
}

#[test]
fn a_projects_configuration_is_set_in_parts() {
    let world = World::without_key();
    let set = |arguments: &[&str]| world.cli.json(&[&["project", "set", "web"], arguments].concat());
    set(&[
        "--chat-events",
        "new_error,run_failed,run_failed",
        "--pr-comments",
        "on",
    ]);
    let changed = set(&["--stable-branch", "release/1"]);
    assert_eq!(changed["stableBranch"], "release/1");
    set(&["--no-chat"]);
    set(&["--flake-budget", "20,10"]);
    set(&["--no-flake-budget"]);
    for wrong in [
        &["--chat-events", "rain"][..],
        &["--no-chat", "--chat-events", "run_failed"],
        &["--pr-comments", "maybe"],
        &["--flake-budget", "10,20"],
        &["--no-flake-budget", "--flake-budget", "20,10"],
        &["--stable-branch", ""],
        &[],
    ] {
        let refused = world.cli.run(&[&["project", "set", "web"], wrong].concat());
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{wrong:?}: {}",
            stderr_text(&refused)
        );
    }
}

#[test]
fn a_key_is_deleted_once_it_is_revoked() {
    let world = World::without_key();
    let output = world
        .cli
        .json(&["key", "create", "--org", "Shop", "--days", "30"]);
    let id = text(&output["id"]);
    let refused = world.cli.run(&["key", "delete", &id]);
    assert_eq!(refused.status.code(), Some(1));
    assert_contains(&stderr_text(&refused), "assay-admin key revoke");
    world.cli.json(&["key", "revoke", &id]);
    let deleted = world.cli.json(&["key", "delete", &id]);
    assert_eq!(deleted, json!({ "id": id, "deleted": true }));
    assert_eq!(world.cli.json(&["key", "list"])["keys"], json!([]));
    let gone = world.cli.run(&["key", "delete", &id]);
    assert_eq!(gone.status.code(), Some(1));
    assert_contains(&stderr_text(&gone), "assay-admin key list");
}

#[test]
fn a_command_whose_effect_is_still_missing_prints_that() {
    let world = World::without_key();
    let shown = |arguments: &[&str]| {
        let output = world.cli.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr_text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let set = |arguments: &[&str]| shown(&[&["project", "set", "web"], arguments].concat());
    let printed = set(&["--chat-events", "run_failed"]);
    assert_contains(&printed, "assay-notify sends");
    for printed in [
        set(&["--no-chat"]),
        set(&["--pr-comments", "on"]),
        set(&["--stable-branch", "trunk"]),
    ] {
        assert!(!printed.contains(" yet"), "{printed}");
    }
    // The ingest key works.
    let ingest = ["key", "create-ingest", "--project", "web"];
    for printed in [shown(&ingest), shown(&[&ingest[..2], &["--help"]].concat())] {
        assert!(!printed.contains(" yet"), "{printed}");
        for part in ["ASSAY_INGEST_KEY", "`assay upload`", "`assay run`"] {
            assert!(printed.contains(part), "{part}: {printed}");
        }
    }
    let help = shown(&["project", "set", "--help"]);
    assert!(!help.contains(" yet"), "{help}");
}

#[test]
fn keys_of_both_kinds_can_be_renamed() {
    let world = World::without_key();
    let read = world
        .cli
        .json(&["key", "create", "--org", "Shop", "--days", "30"]);
    let ingest = ["key", "create-ingest", "--project", "web", "--name", "forks"];
    let ingest = world.cli.json(&ingest);
    for (key, name) in [(&read, "dashboard"), (&ingest, "CI of web")] {
        let id = text(&key["id"]);
        let renamed = world.cli.json(&["key", "rename", &id, name]);
        assert_eq!(renamed, json!({ "id": id, "name": name }));
    }
    let keys = world.cli.json(&["key", "list"]);
    let names: Vec<_> = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| &key["name"])
        .collect();
    assert_eq!(names, ["dashboard", "CI of web"]);
    let unknown = world
        .cli
        .run(&["key", "rename", "019aa3f4-5b1c-7def-8a3b-0123456789ab", "x"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_contains(&stderr_text(&unknown), "assay-admin key list");
    let wrong = world.cli.run(&["key", "rename", &text(&read["id"]), ""]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn an_ingest_key_has_a_name_an_expiry_and_limits() {
    let world = World::without_key();
    let create = ["key", "create-ingest", "--project", "web"];
    let flags = [
        "--name",
        "forks",
        "--days",
        "7",
        "--backfill",
        "--pull-requests-only",
    ];
    let key = world.cli.json(&[&create[..], &flags].concat());
    assert!(key["expiresAt"].is_string(), "{key}");
    let keys = world.cli.json(&["key", "list"]);
    let entry = &keys["keys"][0];
    assert_eq!(
        (
            &entry["name"],
            &entry["backfill"],
            &entry["pullRequestsOnly"],
            &entry["expiresAt"]
        ),
        (&"forks".into(), &true.into(), &true.into(), &key["expiresAt"])
    );
    let shown = world.cli.run(&["key", "list"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    for word in ["forks", "pull requests only", "old runs too"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    for wrong in [["--days", "0"], ["--days", "3651"], ["--name", ""]] {
        let refused = world.cli.run(&[&create[..], &wrong].concat());
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_key_is_replaced_by_one_of_the_same_kind_and_terms() {
    let world = World::without_key();
    let read = world
        .cli
        .json(&["key", "create", "--org", "Shop", "--days", "30"]);
    let create = ["key", "create-ingest", "--project", "web", "--name", "ci"];
    let ingest = world.cli.json(&create);
    for (former, prefix) in [(&read, "svc_ro_"), (&ingest, "svc_")] {
        let new = world
            .cli
            .json(&["key", "rotate", &text(&former["id"]), "--overlap", "2h"]);
        assert!(text(&new["key"]).starts_with(prefix));
        assert_ne!(new["key"], former["key"]);
        assert_eq!(new["replaces"], former["id"]);
        assert_eq!(new["expiresAt"].is_null(), former["expiresAt"].is_null(), "{new}");
    }
    let keys = world.cli.json(&["key", "list"]);
    let keys = keys["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 4);
    assert_eq!(keys.iter().filter(|key| key["name"] == "ci").count(), 2);
    let former = keys.iter().find(|key| key["id"] == ingest["id"]).unwrap();
    assert!(former["expiresAt"].is_string(), "the overlap ends: {former}");

    world
        .cli
        .json(&["key", "rotate", &text(&ingest["id"]), "--overlap", "0s"]);
    let expired = world.cli.run(&["key", "rotate", &text(&ingest["id"])]);
    assert_eq!(expired.status.code(), Some(1));
    assert_contains(&stderr_text(&expired), "revoked or expired");
    let unknown = world
        .cli
        .run(&["key", "rotate", "019aa3f4-5b1c-7def-8a3b-0123456789ab"]);
    assert_contains(&stderr_text(&unknown), "assay-admin key list");
    for wrong in ["1", "h", "-1h", "25h", "1w"] {
        let overlap = format!("--overlap={wrong}");
        let refused = world.cli.run(&["key", "rotate", &overlap, &text(&read["id"])]);
        assert_eq!(refused.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn uploads_are_listed_newest_first() {
    let world = World::without_key();
    let key = world
        .cli
        .json(&["key", "create-ingest", "--project", "web", "--name", "ci"]);
    let none = world.cli.run(&["uploads", "--project", "web"]);
    assert!(String::from_utf8(none.stdout).unwrap().contains("No report"));
    for minutes in [5, 3] {
        world.database.execute(&format!(
            "INSERT INTO upload (project_id, at, id, key_id, run_id, bytes, run_number, files, effect, client) VALUES \
             ('{}', now() - interval '{minutes} minutes', gen_random_uuid(), '{}', gen_random_uuid(), 2048, {minutes}, 4, \
              'added', 'assay/0.1.0')",
            world.project,
            text(&key["id"])
        ));
    }
    let listed = world.cli.json(&["uploads", "--project", "web"]);
    let listed = listed["uploads"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(
        (
            &listed[0]["runNumber"],
            &listed[0]["effect"],
            &listed[0]["keyName"],
            &listed[0]["files"]
        ),
        (&3.into(), &"added".into(), &"ci".into(), &4.into())
    );
    let shown = world.cli.run(&["uploads", "--project", "web", "--limit", "1"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("ci") && shown.contains("assay/0.1.0") && shown.contains("2.00 KiB"),
        "{shown}"
    );
    assert_eq!(shown.lines().count(), 2, "{shown}");
}

#[test]
fn keys_are_created_listed_and_revoked() {
    let world = World::without_key();
    let read = world
        .cli
        .json(&["key", "create", "--org", "Shop", "--days", "30"]);
    let ingest = world.cli.json(&["key", "create-ingest", "--project", "web"]);
    assert!(text(&read["key"]).starts_with("svc_ro_"));
    assert!(text(&ingest["key"]).starts_with("svc_") && !text(&ingest["key"]).starts_with("svc_ro_"));
    assert!(read["expiresAt"].is_string() && ingest["expiresAt"].is_null());

    world.cli.json(&["key", "revoke", &text(&read["id"])]);
    let keys = world.cli.json(&["key", "list", "--org", "Shop"]);
    let keys = keys["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 2);
    assert!(keys[0]["revokedAt"].is_string() && keys[1]["revokedAt"].is_null());
    assert_eq!(keys[1]["projectId"].as_str(), Some(world.project.as_str()));
    let shown = world.cli.run(&["key", "list", "--org", "Shop"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("revoked") && !shown.contains(&text(&read["key"])),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'), "no colours but on a terminal");

    let unknown = world
        .cli
        .run(&["key", "revoke", "019aa3f4-5b1c-7def-8a3b-0123456789ab"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(world.cli.run(&["key", "revoke", "mine"]).status.code(), Some(2));
    assert_eq!(
        world
            .cli
            .run(&["key", "create", "--org", "Shop", "--days", "31"])
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn a_trust_that_cannot_take_effect_is_refused() {
    let world = World::without_key();
    world.cli.json(&["project", "create", "--org", "Shop", "api"]);
    let add = |project: &str, issuer: &str, more: &[&str]| {
        let of_all = [
            "trust",
            "add",
            "--project",
            project,
            "--issuer",
            issuer,
            "--repository",
            "74",
        ];
        world.cli.run(&[&of_all[..], more].concat())
    };
    let github = "https://token.actions.githubusercontent.com";
    for issuer in [
        "https://token.actions.githubusercontent.com/",
        "https://example.org/?a=b",
        "https://example.org/a#b",
        "https://user:secret@example.org",
        "https://GitLab.com",
        "https://",
    ] {
        let refused = add("web", issuer, &[]);
        assert_eq!(refused.status.code(), Some(2), "{issuer}");
    }
    for flag in ["--audience", "--environment"] {
        assert_eq!(add("web", github, &[flag, ""]).status.code(), Some(2), "{flag}");
    }
    assert!(add("web", github, &["--ref", "refs/heads/*"]).status.success());
    assert!(
        add("web", github, &[]).status.success(),
        "several trusts of a project add up"
    );
    let double = add("api", github, &["--ref", "refs/heads/main"]);
    assert_eq!(double.status.code(), Some(1));
    assert_contains(&stderr_text(&double), "a job's report goes to one project");
    assert!(add("api", github, &["--audience", "of-the-api"]).status.success());
    assert!(add("api", "https://gitlab.com", &[]).status.success());
    let list = world.cli.run(&["trust", "list"]).stdout;
    assert_contains(&String::from_utf8(list).unwrap(), "of-the-api");
}
