//! Backup and restore with Postgres' own programs.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use assay_testkit::{Cli, ServedWorld, Server, TestDatabase, World};

use crate::everything;

/// A program of Postgres, from the newest installed version.
fn postgres(name: &str) -> Command {
    let named = std::env::var_os("PG_BIN").map(PathBuf::from).into_iter();
    let installed = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut installed: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    installed.sort();
    let mut folders = named.chain(installed.into_iter().rev());
    let folder = folders.find(|folder| folder.join(name).exists());
    let mut command = Command::new(folder.map_or_else(|| name.into(), |folder| folder.join(name)));
    command.stdin(Stdio::null());
    command
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_restored_dump_answers_the_same_on_every_route() {
    let world = ServedWorld::new();
    for (index, minutes) in [20, 3 * 24 * 60, 20 * 24 * 60, 50 * 24 * 60]
        .into_iter()
        .enumerate()
    {
        let key = format!("run {index}");
        world.import_cases(
            minutes,
            &[("adds", index % 2 == 0), ("removes", true)],
            &["--run-key", &key],
        );
    }
    let before = everything::of(world.server.client(), &world.key, &world.project);
    let dump = world.folder.path().join("assay.dump");

    // A login that only reads makes the dump.
    let reader = format!("reader_{}", world.project.replace('-', ""));
    world
        .database
        .execute(&format!("CREATE ROLE {reader} LOGIN IN ROLE pg_read_all_data"));
    let as_reader = world
        .database
        .url()
        .replace("user=assay", &format!("user={reader}"));
    assert_ne!(as_reader, world.database.url());
    run(postgres("pg_dump")
        .arg("--format=custom")
        .arg("--file")
        .arg(&dump)
        .args(["--dbname", &as_reader]));
    world.database.execute(&format!("DROP ROLE {reader}"));
    let restored = TestDatabase::unmigrated();
    run(postgres("pg_restore")
        .args([
            "--exit-on-error",
            "--no-owner",
            "--no-privileges",
            "--dbname",
            restored.url(),
        ])
        .arg(&dump));
    let cli = Cli::new(restored.url());
    assert_eq!(cli.json(&["migrate"])["applied"], serde_json::json!([]));
    for (role, right) in [
        ("assay_server", "'api_key', 'SELECT'"),
        ("assay_importer", "'result_block', 'INSERT'"),
        ("assay_ingester", "'upload', 'INSERT'"),
        ("assay_notifier", "'message', 'INSERT'"),
    ] {
        let granted = restored.text(&format!("SELECT has_table_privilege('{role}', {right})"));
        assert_eq!(granted.as_deref(), Some("true"), "{role}");
    }

    let server = Server::start_with(restored.url(), &[("ASSAY_RATE_LIMIT", "0")]);
    let after = everything::of(server.client(), &world.key, &world.project);
    assert_eq!(after, before);
    // The restored database continues: derived rows are correct, and reports and prunings find their partitions.
    let rebuilt = cli.json(&["rebuild"]);
    assert_eq!(rebuilt["projects"][0]["result"]["runsChanged"], 0, "{rebuilt}");
    let moved = ServedWorld {
        server,
        world: World {
            cli,
            database: restored,
            ..world.world
        },
    };
    moved.import_cases(10, &[("adds", true)], &["--run-key", "later"]);
    moved.import_cases(200 * 24 * 60, &[("adds", true)], &["--run-key", "ancient"]);
    assert_eq!(moved.get("/runs?days=90")["total"], 5);
    let pruned = moved.cli.json(&["prune"]);
    assert_eq!(
        (&pruned["runs"], &pruned["periodsLeft"]),
        (&1.into(), &0.into()),
        "{pruned}"
    );
}
