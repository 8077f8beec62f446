//! Many imports into one project: with few connections, and during a restart of the database.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Output, Stdio},
    thread,
    time::Duration,
};

use assay_testkit::{Cli, assert_contains, stderr_text, wait_until};
use diesel::{Connection as _, PgConnection, connection::SimpleConnection as _};

use crate::{
    quiet,
    world::{Report, Source, World},
};

/// Holds every project's lock until the transaction ends.
pub(crate) const LOCK: &str = "BEGIN; SELECT FROM project FOR NO KEY UPDATE";
/// Imports that wait for the lock.
pub(crate) const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR NO KEY UPDATE%'";

fn spawn(command: &mut Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn succeeded(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    output
}

fn assert_rebuilt_is_the_same(world: &World) {
    let rebuilt = &world.cli.json(&["rebuild", "--project", "web"])["projects"][0]["result"];
    for what in ["runsChanged", "verdictsChanged"] {
        assert_eq!(rebuilt[what], 0, "{rebuilt}");
    }
}

fn shared(world: &World) -> &assay_testkit::TestDatabase {
    match &world.database {
        Source::Shared(database) => database,
        Source::Own(_) => panic!("this database is in a cluster of its own"),
    }
}

#[test]
fn thirty_imports_under_a_limit_of_ten_connections_all_succeed() {
    let _shared = quiet::shared();
    let mut world = World::new();
    let database = shared(&world);
    let role = format!("crowd_{}", std::process::id());
    database.execute(&format!(
        "CREATE ROLE {role} LOGIN CONNECTION LIMIT 10 IN ROLE assay_importer"
    ));
    let (head, _) = world.database.url().split_once("&user=").unwrap();
    let administrator = std::mem::replace(&mut world.cli, Cli::new(format!("{head}&user={role}")));
    let shards = (1..=30).map(|shard| Report {
        build: 1,
        shard: Some((shard, 30)),
        tests: 40,
        age_s: 600,
    });
    let children: Vec<Child> = shards
        .map(|shard| spawn(&mut world.import_command(&shard)))
        .collect();
    for child in children {
        succeeded(child);
    }
    world.cli = administrator;
    assert_eq!(world.get("/runs?days=90")["total"], 1);
    assert_rebuilt_is_the_same(&world);
    shared(&world).execute(&format!("DROP ROLE {role}"));
}

#[test]
fn an_import_that_gets_no_connection_in_time_prints_why_and_what_to_do() {
    let _shared = quiet::shared();
    let mut world = World::new();
    let role = format!("none_{}", std::process::id());
    shared(&world).execute(&format!(
        "CREATE ROLE {role} LOGIN CONNECTION LIMIT 0 IN ROLE assay_importer"
    ));
    let (head, _) = world.database.url().split_once("&user=").unwrap();
    let administrator = std::mem::replace(&mut world.cli, Cli::new(format!("{head}&user={role}")));
    let mut import = world.import_command(&Report::whole(1, 3, 10));
    world.cli = administrator;
    let output = import.args(["--retry-for", "3s"]).output().unwrap();
    let message = stderr_text(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_contains(&message, "waiting for a connection to the database, ");
    assert_contains(&message, "too many connections");
    assert_contains(&message, "CONNECTION LIMIT");
    shared(&world).execute(&format!("DROP ROLE {role}"));
}

#[test]
fn every_command_waits_for_a_free_connection() {
    let _shared = quiet::shared();
    let mut world = World::new();
    let role = format!("late_{}", std::process::id());
    shared(&world).execute(&format!(
        "CREATE ROLE {role} LOGIN CONNECTION LIMIT 0 IN ROLE assay_server"
    ));
    let (head, _) = world.database.url().split_once("&user=").unwrap();
    world.cli = Cli::new(format!("{head}&user={role}"));
    let mut command = spawn(&mut world.cli.command(&["org", "list"]));
    let mut lines = BufReader::new(command.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    assert!(
        line.starts_with("assay-admin: waiting for a connection to the database, "),
        "{line}"
    );
    assert_contains(&line, "too many connections");
    shared(&world).execute(&format!("ALTER ROLE {role} CONNECTION LIMIT 20"));
    let output = command.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", lines.collect::<Vec<_>>());
    assert!(!output.stdout.is_empty());
    shared(&world).execute(&format!("DROP ROLE {role}"));
}

#[test]
fn an_import_is_stored_though_the_database_restarts_while_it_waits() {
    let _alone = quiet::alone();
    let mut world = World::with_own_postgres();
    world.import(&Report::whole(1, 20, 30));
    let waiting = |world: &mut World| {
        let mut lock = world.postgres().connect().unwrap();
        lock.batch_execute(LOCK).unwrap();
        lock
    };
    let is_waiting = |url: &str| {
        let mut connection = PgConnection::establish(url).unwrap();
        let wait_for_lock = "DO $$ BEGIN IF (SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock') = 0 \
                   THEN RAISE 'none'; END IF; END $$";
        connection.batch_execute(wait_for_lock).is_ok()
    };
    let url = world.database.url().to_owned();

    let lock = waiting(&mut world);
    let import = spawn(&mut world.import_command(&Report::whole(2, 20, 20)));
    wait_until("the import waits for the lock", || is_waiting(&url));
    world.postgres().stop();
    drop(lock);
    // Longer than the five seconds for which the connection pool retries.
    thread::sleep(Duration::from_secs(8));
    world.postgres().start_again();
    let output = succeeded(import);
    assert_contains(&stderr_text(&output), "waiting for the database");

    // Without time for another attempt it fails, with the known cause.
    let lock = waiting(&mut world);
    let mut command = world.import_command(&Report::whole(3, 20, 10));
    let import = spawn(command.args(["--retry-for", "0"]));
    wait_until("the import waits for the lock", || is_waiting(&url));
    world.postgres().stop();
    drop(lock);
    let output = import.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr_text(&output));
    assert_contains(&stderr_text(&output), "import it again");
    world.postgres().start_again();
    world.import(&Report::whole(3, 20, 10));
    assert_rebuilt_is_the_same(&world);
}
