//! `assay doctor`, with each state of a database that it reports.

use std::process::{Command, Stdio};

use assay_testkit::{Cli, TestDatabase, World, program, stderr_text};
use serde_json::Value;

use crate::junit;

/// The exit status and the report, of a success or a failure.
fn doctor(cli: &Cli) -> (i32, Value) {
    let output = cli.run(&["doctor", "--json"]);
    let found = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr_text(&output)));
    (output.status.code().unwrap(), found)
}

/// The check of this name.
fn check<'a>(found: &'a Value, name: &str) -> &'a Value {
    let mut checks = found["checks"].as_array().unwrap().iter();
    checks
        .find(|check| check["check"] == name)
        .unwrap_or_else(|| panic!("no check {name}: {found}"))
}

fn says(check: &Value, text: &str) {
    assert!(check.to_string().contains(text), "{text:?}: {check}");
}

#[test]
fn a_healthy_installation_is_ok_and_unchanged() {
    let world = World::without_key();
    world
        .cli
        .json(&["key", "create", "--org", "Shop", "--days", "90"]);
    let now = world
        .database
        .text("SELECT to_char(now() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')");
    let report = world.file("r.xml", &junit::report(&now.unwrap(), &[("adds", true)]));
    world.import(&["--no-ci", &report]);
    let (status, found) = doctor(&world.cli);
    assert_eq!(status, 0, "{found}");
    for name in [
        "postgres",
        "schema",
        "clock",
        "size",
        "keys",
        "retention",
        "verdicts",
        "packs",
    ] {
        assert_eq!(check(&found, name)["status"], "ok", "{found}");
        assert_eq!(
            check(&found, name)["advice"].as_array().map(Vec::len),
            Some(0),
            "{found}"
        );
    }
    says(check(&found, "verdicts"), "1 project with 1 run");
    // The role of the test is a superuser, which no program needs.
    assert_eq!(check(&found, "roles")["status"], "warn");
    assert_eq!(found["status"], "warn");
    let shown = String::from_utf8(world.cli.run(&["doctor"]).stdout).unwrap();
    assert!(shown.contains("ok    postgres    Postgres "), "{shown}");
    assert!(shown.contains("\n                  -> "), "{shown}");
}

#[test]
fn a_database_out_of_reach_fails_with_its_reason() {
    let cli = Cli::new("postgresql://127.0.0.1:1/nowhere");
    let (status, found) = doctor(&cli);
    assert_eq!((status, &found["status"]), (1, &"fail".into()));
    says(check(&found, "postgres"), "unreachable");
    says(check(&found, "postgres"), "ASSAY_DATABASE_URL");
    let stderr = stderr_text(&cli.run(&["doctor"]));
    assert!(stderr.contains("1 check failed"), "{stderr}");
}

#[test]
fn a_schema_behind_fails_and_one_ahead_warns() {
    let behind = TestDatabase::unmigrated();
    let (status, found) = doctor(&Cli::new(behind.url()));
    assert_eq!(status, 1);
    assert_eq!(check(&found, "schema")["status"], "fail");
    says(check(&found, "schema"), "assay migrate");

    let ahead = World::without_key();
    ahead
        .database
        .execute("INSERT INTO __diesel_schema_migrations (version) VALUES ('29991231000001')");
    let (status, found) = doctor(&ahead.cli);
    assert_eq!(status, 0, "{found}");
    assert_eq!(check(&found, "schema")["status"], "warn");
    says(check(&found, "schema"), "29991231000001");
}

#[test]
fn missing_expired_and_expiring_keys_are_reported() {
    let world = World::without_key();
    let keys = || {
        let (status, found) = doctor(&world.cli);
        assert_eq!(status, 0, "{found}");
        check(&found, "keys").clone()
    };
    says(&keys(), "has no read key");
    says(&keys(), "assay key create --org Shop --days 90");
    world
        .cli
        .json(&["key", "create", "--org", "Shop", "--days", "30"]);
    assert_eq!(keys()["status"], "ok");
    world
        .database
        .execute("UPDATE api_key SET expires_at = now() + interval '5 days'");
    says(&keys(), "in 5 d");
    assert_eq!(keys()["status"], "warn");
    world
        .database
        .execute("UPDATE api_key SET expires_at = now() - interval '3 days'");
    says(&keys(), "the last expired 3 d ago");
    // An organization whose plan has no read API needs no read key.
    world.cli.json(&["org", "set-plan", "Shop", "free"]);
    assert_eq!(keys()["status"], "ok");
}

#[test]
fn missing_pruning_judging_and_packing_are_reported() {
    let world = World::without_key();
    let report = world.file(
        "r.xml",
        &junit::report("2020-01-01T00:00:00Z", &[("adds", true), ("sums", false)]),
    );
    world.import(&["--run-key", "old", &report]);
    world
        .database
        .execute("UPDATE project SET evaluated_at = now() - interval '20 days'");
    world.database.execute("DELETE FROM run_pack");
    let (status, found) = doctor(&world.cli);
    assert_eq!(status, 1, "{found}");
    says(check(&found, "retention"), "1 run with 2 results");
    says(check(&found, "retention"), "assay prune");
    says(check(&found, "verdicts"), "judged 20 d ago");
    assert_eq!(check(&found, "packs")["status"], "fail");
    world.cli.json(&["prune", "--all-of-it"]);
    let (_, found) = doctor(&world.cli);
    assert_eq!(check(&found, "retention")["status"], "ok");
}

#[test]
fn a_role_that_may_not_read_fails_with_the_grant_that_helps() {
    let world = World::without_key();
    let name = format!("blind_{}", world.project.replace('-', ""));
    world.database.execute(&format!("CREATE ROLE {name} LOGIN"));
    let url = world
        .database
        .url()
        .replace("user=assay", &format!("user={name}"));
    assert_ne!(url, world.database.url());
    let (status, found) = doctor(&Cli::new(url));
    // A role belongs to the whole cluster, so it stays when the test's database is dropped.
    world.database.execute(&format!("DROP ROLE {name}"));
    assert_eq!(status, 1, "{found}");
    let stands = found["checks"]
        .as_array()
        .unwrap()
        .iter()
        .any(|check| check["status"] == "fail");
    assert!(stands, "{found}");
}

#[test]
fn a_private_database_is_checked_and_never_created() {
    let folder = tempfile::tempdir().unwrap();
    let assay = |arguments: &[&str]| {
        let output = Command::new(program("assay"))
            .args(arguments)
            .arg("--json")
            .current_dir(folder.path())
            .env_remove("ASSAY_DATABASE_URL")
            .env_remove("ASSAY_DATA_DIR")
            .env_remove("ASSAY_REDIS_URL")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let value: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr_text(&output)));
        (output.status.code(), value)
    };
    let (status, found) = assay(&["doctor"]);
    assert_eq!((status, &found["status"]), (Some(0), &"warn".into()), "{found}");
    says(check(&found, "private"), "holds no database yet");
    assert!(!folder.path().join(".assay").exists());

    assay(&["org", "create", "Mine", "--plan", "pro"]);
    assay(&["key", "create", "--org", "Mine", "--days", "90"]);
    assay(&["project", "create", "--org", "Mine", "web"]);
    let (status, found) = assay(&["doctor"]);
    assert_eq!(status, Some(0), "{found}");
    for name in ["private", "disk", "postgres", "schema", "roles", "keys"] {
        // The free space depends on the machine.
        assert!(name == "disk" || check(&found, name)["status"] == "ok", "{found}");
    }
}

#[test]
fn an_unreachable_redis_is_a_warning() {
    let world = World::without_key();
    let output = world
        .cli
        .command(&["doctor", "--json", "--redis-url", "redis://127.0.0.1:1"])
        .output()
        .unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(check(&found, "redis")["status"], "warn");
    assert!(output.status.success());
}

#[test]
fn no_malformed_address_shows_its_password() {
    // Nothing listens on this port, so that connecting to a parsed address fails.
    for address in [
        "assay:s3cr@t%pw@127.0.0.1:1/d",
        "postgresql://assay:s3cr%t@127.0.0.1:1/d",
        "postgresql://assay:s3cr%ZZt@127.0.0.1:1/d",
        "postgresql://assay:s3cr@t@127.0.0.1:1/d",
        "postgresql://assay:s3cr/t@127.0.0.1:1/d",
        "postgresql://assay:12/s3cr@127.0.0.1:1/d",
        "postgresql://assay:[s3cr@[127.0.0.1:1/d",
        "postgresql://assay:s3cr@127.0.0.1:1]/d",
        "postgresql://assay:s3cr t@127.0.0.1:1/d",
        "postgresql://127.0.0.1:1/d?password=s3cr&s3cr",
        "postgresql://127.0.0.1:1/d?password=s3cr&nonsense=1",
        "postgresql://assay:s3cr@127.0.0.1:1/d?sslmode=s3cr",
        "host=127.0.0.1 port=1 password=my s3cr",
        "host=127.0.0.1 port=1 password='s3cr",
        "host=127.0.0.1 port=1 password=s3cr sslmode=s3cr",
        "host=127.0.0.1 port=1 password=s3cr",
    ] {
        let cli = Cli::new(address);
        for arguments in [
            &["doctor", "--json"][..],
            &["doctor"],
            &["migrate"],
            &["org", "list"],
        ] {
            let output = cli.run(arguments);
            assert_eq!(
                output.status.code(),
                Some(1),
                "{address}: {}",
                stderr_text(&output)
            );
            let shown = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                stderr_text(&output)
            );
            assert!(!shown.contains("s3cr"), "{arguments:?} with {address}: {shown}");
        }
    }
}
