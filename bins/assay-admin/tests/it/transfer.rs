//! `assay-admin org export` and `assay-admin org import`: killed midway, on a terminal, and with archives that they reject.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use assay_testkit::{Cli, TestDatabase, World, assert_contains, program, stderr_text, wait_until};
use diesel::{PgConnection, connection::SimpleConnection as _};
use serde_json::Value;

use crate::pty::{Session, Streams};

/// A database with runs, and a folder for its archive.
fn world() -> (World, PathBuf) {
    let world = World::new();
    for (minutes, key) in [(30, "a"), (20, "b"), (40 * 24 * 60, "c")] {
        world.import_cases(minutes, &[("adds", true), ("sums", false)], &["--run-key", key]);
    }
    let folder = world.folder.path().join("archive");
    (world, folder)
}

fn export(world: &World, folder: &Path) -> Value {
    world.cli.json(&["org", "export", "Shop", path(folder)])
}

fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

fn refused(cli: &Cli, arguments: &[&str], reasons: &[&str]) {
    let output = cli.run(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    let stderr = stderr_text(&output);
    for reason in reasons {
        assert!(stderr.contains(reason), "{reason} is missing: {stderr}");
    }
}

/// A lock on a table. The program stops midway at this table, after the tables before it.
fn block(database: &TestDatabase) -> PgConnection {
    let mut connection = database.connection();
    connection
        .batch_execute("BEGIN; LOCK TABLE run_pack IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    connection
}

fn others_waiting(database: &TestDatabase) -> Option<String> {
    database.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    )
}

fn others_working(database: &TestDatabase) -> Option<String> {
    database.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
         AND backend_type = 'client backend'",
    )
}

/// Kills a command midway.
fn kill_midway(mut command: Command, database: &TestDatabase) {
    let mut holder = block(database);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the program stops midway", || {
        others_waiting(database).as_deref() == Some("1")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    holder.batch_execute("ROLLBACK").unwrap();
    drop(holder);
    wait_until("the server ends its connection", || {
        others_working(database).as_deref() == Some("0")
    });
}

#[test]
fn a_killed_export_or_import_leaves_nothing_partial_and_can_be_repeated() {
    let (world, folder) = world();
    let target = TestDatabase::new();
    let target_cli = Cli::new(target.url());
    for _ in 0..2 {
        kill_midway(
            world.cli.command(&["org", "export", "Shop", path(&folder)]),
            &world.database,
        );
        assert!(folder.join("run.copy.zst").exists(), "it was midway");
        refused(
            &target_cli,
            &["org", "import", path(&folder)],
            &["did not finish; run `assay-admin org export` with this folder again"],
        );
    }
    let exported = export(&world, &folder);
    assert_eq!(exported["projects"], 1);

    for _ in 0..2 {
        kill_midway(target_cli.command(&["org", "import", path(&folder)]), &target);
        for table in ["organization", "project", "api_key", "run", "result"] {
            let rows = target.text(&format!("SELECT count(*) FROM {table}"));
            assert_eq!(rows.as_deref(), Some("0"), "{table}");
        }
    }
    let imported = target_cli.json(&["org", "import", path(&folder)]);
    assert_eq!(imported["rows"], exported["rows"]);
    assert_eq!(imported["verdicts"], 2);
    assert_eq!(
        target_cli.json(&["org", "list"]),
        world.cli.json(&["org", "list"])
    );
    assert_eq!(
        target_cli.json(&["project", "list"]),
        world.cli.json(&["project", "list"])
    );
    assert_eq!(
        target_cli.json(&["key", "list"]),
        world.cli.json(&["key", "list"])
    );
    refused(
        &target_cli,
        &["org", "import", path(&folder)],
        &[
            "is already in this database",
            &format!("assay-admin org delete {}", world.org),
        ],
    );
    // The organization is deleted and imported again.
    target_cli.json(&["org", "delete", "Shop", "--yes"]);
    assert_eq!(target_cli.json(&["org", "import", path(&folder)]), imported);
}

#[test]
fn an_import_waits_for_an_export_and_an_export_does_not_wait_for_an_import() {
    let (world, folder) = world();
    let mut holder = block(&world.database);
    let mut exporting = world.cli.command(&["org", "export", "Shop", path(&folder)]);
    let exporting = exporting.stdout(Stdio::null()).spawn().unwrap();
    wait_until("the export is midway", || {
        others_waiting(&world.database).as_deref() == Some("1")
    });
    let other = world.folder.path().join("other").display().to_string();
    refused(
        &world.cli,
        &["org", "export", "Shop", &other],
        &[
            "an import into the project \"web\" is running, or another export",
            "run the command again",
        ],
    );
    let report = world.file(
        "late.xml",
        &assay_testkit::junit(&[("adds", true)], "a.ts", |_| unreachable!()),
    );
    let mut importing = world
        .cli
        .command(&["import", "--project", "web", "--run-key", "late", &report]);
    let mut importing = importing
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the import waits", || {
        others_waiting(&world.database).as_deref() == Some("2")
    });
    holder.batch_execute("ROLLBACK").unwrap();
    let exported = exporting.wait_with_output().unwrap();
    assert!(exported.status.success());
    assert!(importing.wait().unwrap().success());
    assert_eq!(world.count("SELECT count(*) FROM run"), 4);
    let target = TestDatabase::new();
    Cli::new(target.url()).json(&["org", "import", path(&folder)]);
    assert_eq!(target.text("SELECT count(*) FROM run").as_deref(), Some("3"));
}

#[test]
fn a_folder_that_is_no_archive_or_was_changed_is_refused_by_name() {
    let (world, folder) = world();
    let target = TestDatabase::new();
    let target_cli = Cli::new(target.url());
    let import = |reasons: &[&str]| refused(&target_cli, &["org", "import", path(&folder)], reasons);
    import(&["is no archive", "it has no manifest.json"]);
    export(&world, &folder);
    for file in fs::read_dir(&folder).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only its owner may read it");
    }
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);

    let rows = folder.join("result_block.copy.zst");
    let whole = fs::read(&rows).unwrap();
    let mut changed = whole.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    for damaged in [&changed[..], &whole[..middle]] {
        fs::write(&rows, damaged).unwrap();
        import(&[
            &format!("{} is damaged", rows.display()),
            "copy the archive again",
        ]);
    }
    fs::remove_file(&rows).unwrap();
    import(&[&format!("could not read {}", rows.display())]);
    fs::write(&rows, &whole).unwrap();

    let manifest = folder.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    for (from, to, reasons) in [
        (
            "\"version\": 1",
            "\"version\": 2",
            &[
                "in version 2 of the format",
                "import it with the version that wrote it",
            ][..],
        ),
        (
            "\"assay-organization\"",
            "\"invoices\"",
            &["is no archive of an organization"],
        ),
        (
            "\"schema\": \"",
            "\"schema\": \"1999-",
            &["the archive has the schema \"1999-", "assay-admin migrate"],
        ),
        (
            "{",
            "",
            &["manifest.json cannot be read", "copy the archive again"],
        ),
    ] {
        assert_contains(&text, from);
        fs::write(&manifest, text.replacen(from, to, 1)).unwrap();
        import(reasons);
    }
    fs::write(&manifest, text).unwrap();
    assert_eq!(
        target.text("SELECT count(*) FROM organization").as_deref(),
        Some("0")
    );
    target_cli.json(&["org", "import", path(&folder)]);
}

#[test]
fn an_export_overwrites_nothing_and_names_what_it_could_not_write() {
    let (world, folder) = world();
    let export_to =
        |folder: &str, reasons: &[&str]| refused(&world.cli, &["org", "export", "Shop", folder], reasons);
    let used = world.file("used/notes.txt", "mine");
    let used = Path::new(&used).parent().unwrap().to_path_buf();
    export_to(path(&used), &["has other files; name a new folder"]);
    assert_eq!(fs::read_dir(&used).unwrap().count(), 1);
    export_to(
        &format!("{}/notes.txt/x", used.display()),
        &["could not make the folder"],
    );
    refused(
        &world.cli,
        &["org", "export", "Shp", path(&folder)],
        &["did you mean \"Shop\"?"],
    );
    assert!(!folder.exists());
    export(&world, &folder);
    export_to(path(&folder), &["has an export already"]);

    // The file of the branches is larger than the limit of files.
    world.database.execute(&format!(
        "INSERT INTO branch SELECT '{}', md5(number::text), now() FROM generate_series(1, 5000) AS number",
        world.project
    ));
    let full = world.folder.path().join("full");
    let limited = |limit: &str| -> Output {
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"");
        let mut command = Command::new("bash");
        command.args(["-c", &script]).arg(program("assay-admin"));
        command.args(["org", "export", "Shop", path(&full)]);
        command.env("ASSAY_DATABASE_URL", world.database.url());
        command.stdin(Stdio::null()).output().unwrap()
    };
    let output = limited("32");
    assert_eq!(output.status.code(), Some(1));
    let stderr = stderr_text(&output);
    let file = full.join("branch.copy.zst").display().to_string();
    for reason in [
        "did not finish",
        &format!("could not write {file}: File too large"),
        "run the same command again",
    ] {
        assert!(stderr.contains(reason), "{reason} is missing: {stderr}");
    }
    assert!(limited("unlimited").status.success());
}

#[test]
fn progress_is_shown_on_a_terminal() {
    let (world, folder) = world();
    let mut holder = block(&world.database);
    let mut session = Session::start(
        world.cli.command(&["org", "export", "Shop", path(&folder)]),
        100,
        Streams::All,
    );
    session.until("exporting Shop");
    holder.batch_execute("ROLLBACK").unwrap();
    let (status, shown) = session.end();
    assert!(
        status.success() && shown.contains("Exported the organization \"Shop\""),
        "{shown}"
    );
    assert_contains(&shown, "assay-admin org import ");

    let target = TestDatabase::new();
    let mut holder = block(&target);
    let target_cli = Cli::new(target.url());
    let mut session = Session::start(
        target_cli.command(&["org", "import", path(&folder)]),
        100,
        Streams::All,
    );
    session.until("Importing");
    session.until("left");
    holder.batch_execute("ROLLBACK").unwrap();
    let (status, shown) = session.end();
    assert!(status.success(), "{shown}");
    assert_contains(&shown, "the engine computes the same 2 verdicts");
}
