//! Starts, ends, and refused starts.

use std::{
    net::TcpListener,
    path::Path,
    process::{Command, Output},
};

use assay_testkit::{TestDatabase, assert_contains, program};

use crate::private::Private;

#[test]
fn the_private_database_is_migrated_and_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Private::start(folder.path(), &[]);
    server.ready();
    assert_eq!(server.client().get("/api/v1/projects", None).status, 401);
    server.signal("KILL");
    server.ended();

    let mut again = Private::start(folder.path(), &[]);
    again.ready();
    again.signal("INT");
    assert!(again.ended().success(), "{}", again.log());
}

#[test]
fn the_command_line_shares_the_private_database_of_a_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Private::start(folder.path(), &[]);
    server.ready();
    for arguments in [
        &["org", "create", "Mine", "--plan", "pro"][..],
        &["project", "create", "--org", "Mine", "web"],
    ] {
        let output = assay_admin(folder.path(), arguments);
        assert!(output.status.success(), "{}", stderr_text(&output));
    }
    let key = assay_admin(folder.path(), &["key", "create", "--org", "Mine", "--days", "30"]);
    let key = String::from_utf8(key.stdout).unwrap();
    let answer = server.client().get("/api/v1/projects", key.lines().next());
    assert_eq!(answer.json()["projects"][0]["name"], "web");
}

#[test]
fn a_signal_during_the_start_ends_it_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Private::start(folder.path(), &["--demo"]);
    server.wait_for_log("making a private database");
    server.signal("TERM");
    assert!(server.ended().success(), "{}", server.log());
}

#[test]
fn an_unmigrated_database_is_refused_saying_what_to_run() {
    let database = TestDatabase::unmigrated();
    let output = start(database.url(), "127.0.0.1:0");
    assert_eq!(output.status.code(), Some(1));
    assert_contains(&stderr_text(&output), "assay-admin migrate");
}

#[test]
fn a_database_that_cannot_be_reached_is_refused() {
    let output = start("postgresql://127.0.0.1:1/nowhere", "127.0.0.1:0");
    assert_eq!(output.status.code(), Some(1));
    assert_contains(&stderr_text(&output), "unreachable");
}

#[test]
fn a_taken_address_is_refused_by_name() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let refused = |listen: &str, operators: &str| {
        let output = Command::new(program("assay-server"))
            .env("ASSAY_DATABASE_URL", "postgresql:///nowhere")
            .args([
                "--listen",
                listen,
                "--front-listen",
                "off",
                "--admin-listen",
                operators,
            ])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        stderr_text(&output)
    };
    for (error, setting) in [
        (refused(&taken, "127.0.0.1:0"), "--listen (ASSAY_LISTEN)"),
        (
            refused("127.0.0.1:0", &taken),
            "--admin-listen (ASSAY_ADMIN_LISTEN)",
        ),
    ] {
        let expected = format!("already listens on {taken}; name another address with {setting}\n");
        assert!(error.ends_with(&expected), "{error}");
    }
}

fn start(database_url: &str, listen: &str) -> Output {
    Command::new(program("assay-server"))
        .env("ASSAY_DATABASE_URL", database_url)
        .env("ASSAY_LISTEN", listen)
        .env("ASSAY_FRONT_LISTEN", "off")
        .env("ASSAY_ADMIN_LISTEN", "127.0.0.1:0")
        .output()
        .unwrap()
}

fn assay_admin(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program("assay-admin"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("ASSAY_DATABASE_URL")
        .env_remove("ASSAY_DATA_DIR")
        .output()
        .unwrap()
}

fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
