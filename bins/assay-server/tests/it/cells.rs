//! An organization that is moved to another installation, by the commands of docs/scaling.md.

use std::{
    fs,
    process::{Command, Output, Stdio},
};

use assay_testkit::{ServedWorld, Server, TestDatabase, World, program, stderr_text, text};

use crate::{everything, failures::import_failures, ingest};

/// The commands of the page's section: export, import, delete.
fn commands() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scaling.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("\n## 4. Several installations\n").unwrap();
    let block = section.split("```").nth(1).unwrap();
    block.lines().skip(1).map(str::to_owned).collect()
}

/// Runs a block where `assay` is installed.
fn run(script: &str) -> Output {
    let programs = program("assay").parent().unwrap().display().to_string();
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {}", stderr_text(&output));
    output
}

#[test]
fn an_organization_that_was_moved_by_the_page_answers_the_same_on_every_route() {
    let world = ServedWorld::new();
    let runs = import_failures(&world);
    world.cli.json(&["org", "rename", "Shop", "Example Shop"]);
    world
        .cli
        .json(&["project", "create", "--org", "Example Shop", "api"]);
    let sender = world
        .cli
        .json(&["key", "create-ingest", "--project", "web", "--name", "CI"]);
    let sender = text(&sender["key"]);

    // The other installation has an organization already, with a project of the same name.
    let database = TestDatabase::new();
    let url = database.url().to_owned();
    let target = World::over(database, &url);
    target.import_cases(20, &[("adds", true), ("sums", false)], &["--run-key", "theirs"]);
    let target_server = Server::start_with_ingest(target.database.url(), &[("ASSAY_RATE_LIMIT", "0")]);
    let read_target = || everything::of(target_server.client(), &target.key, &target.project);
    let target_answers = read_target();

    let before = everything::of(world.server.client(), &world.key, &world.project);
    assert!(before.len() > 100, "{}", before.len());
    assert_eq!(
        target_server
            .client()
            .get("/api/v1/projects", Some(&world.key))
            .status,
        401
    );

    let folder = world.folder.path().join("move").display().to_string();
    let own = |url: &str| format!("'{url}'");
    let here = |script: &String| {
        script
            .replace(
                "postgresql://assay_owner:…@old.internal/assay",
                &own(world.database.url()),
            )
            .replace(
                "postgresql://assay_owner:…@new.internal/assay",
                &own(target.database.url()),
            )
            .replace("/srv/move", &folder)
    };
    let commands: Vec<String> = commands().iter().map(here).collect();
    let [export, import, delete] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    run(export);
    let imported = run(import);
    let imported = String::from_utf8(imported.stdout).unwrap();
    assert!(
        imported.starts_with("Imported the organization \"Example Shop\" with 2 projects"),
        "{imported}"
    );
    let after = everything::of(target_server.client(), &world.key, &world.project);
    if after != before {
        // A run may have left the engine's window meanwhile.
        let again = everything::of(world.server.client(), &world.key, &world.project);
        assert_eq!(after, again);
    }
    assert_eq!(
        read_target(),
        target_answers,
        "the organizations of the other installation are as before"
    );

    run(delete);
    assert_eq!(world.count("SELECT count(*) FROM organization"), 0);
    let gone = world.server.client().get("/api/v1/projects", Some(&world.key));
    assert_eq!(gone.status, 401, "{}", gone.text());

    // Its history goes on in the new installation: reports, verdicts, housekeeping.
    let fields = [("branch", "main"), ("commit", "abc"), ("runKey", "later")];
    let report = [("r.xml", ingest::PASSES.as_bytes())];
    let stored = ingest::send(&target_server, &sender, &fields, &report);
    assert_eq!(stored.status, 201, "{}", stored.text());
    assert_eq!(stored.json()["runNumber"], runs.len() + 1);
    let rebuilt = target.cli.json(&["rebuild", "--project", &world.project]);
    let result = &rebuilt["projects"][0]["result"];
    for derived in ["runsChanged", "branchesChanged", "daysChanged"] {
        assert_eq!(result[derived], 0, "{rebuilt}");
    }
    let pruned = target.cli.json(&["prune"]);
    assert_eq!(pruned["runs"], 0, "{pruned}");
}
