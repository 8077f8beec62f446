//! `assay-admin doctor`, with each state of a database that it reports.

use std::process::{Command, Stdio};

use assay_testkit::{Cli, TestDatabase, World, assert_contains, program, stderr_text};
use serde_json::Value;

use crate::junit;

/// The exit status and the report, of a success or a failure.
fn doctor(cli: &Cli) -> (i32, Value) {
    let output = cli.run(&["doctor", "--json"]);
    let report =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr_text(&output)));
    (output.status.code().unwrap(), report)
}

/// The check of this name.
fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut checks = report["checks"].as_array().unwrap().iter();
    checks
        .find(|check| check["check"] == name)
        .unwrap_or_else(|| panic!("no check {name}: {report}"))
}

fn assert_check(check: &Value, text: &str) {
    assert_contains(&check.to_string(), text);
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
    let (status, report) = doctor(&world.cli);
    assert_eq!(status, 0, "{report}");
    for name in [
        "postgres",
        "schema",
        "clock",
        "size",
        "keys",
        "retention",
        "results",
        "verdicts",
        "packs",
    ] {
        assert_eq!(check(&report, name)["status"], "ok", "{report}");
        assert_eq!(
            check(&report, name)["advice"].as_array().map(Vec::len),
            Some(0),
            "{report}"
        );
    }
    assert_check(check(&report, "verdicts"), "1 project with 1 run");
    // The role of the test is a superuser, which no program needs.
    assert_eq!(check(&report, "roles")["status"], "warn");
    assert_eq!(report["status"], "warn");
    let strict = world.cli.run(&["doctor", "--strict"]);
    assert_eq!(strict.status.code(), Some(1), "{}", stderr_text(&strict));
    let shown = String::from_utf8(world.cli.run(&["doctor"]).stdout).unwrap();
    assert_contains(&shown, "ok    postgres    Postgres ");
    assert_contains(&shown, "\n                  -> ");
}

#[test]
fn a_database_out_of_reach_fails_with_its_reason() {
    let cli = Cli::new("postgresql://127.0.0.1:1/nowhere");
    let (status, report) = doctor(&cli);
    assert_eq!((status, &report["status"]), (1, &"fail".into()));
    assert_check(check(&report, "postgres"), "unreachable");
    assert_check(check(&report, "postgres"), "ASSAY_DATABASE_URL");
    let stderr = stderr_text(&cli.run(&["doctor"]));
    assert_contains(&stderr, "1 check failed");
}

#[test]
fn a_schema_behind_fails_and_one_ahead_warns() {
    let behind = TestDatabase::unmigrated();
    let (status, report) = doctor(&Cli::new(behind.url()));
    assert_eq!(status, 1);
    assert_eq!(check(&report, "schema")["status"], "fail");
    assert_check(check(&report, "schema"), "assay-admin migrate");

    let ahead = World::without_key();
    ahead
        .database
        .execute("INSERT INTO __diesel_schema_migrations (version) VALUES ('29991231000001')");
    let (status, report) = doctor(&ahead.cli);
    assert_eq!(status, 0, "{report}");
    assert_eq!(check(&report, "schema")["status"], "warn");
    assert_check(check(&report, "schema"), "29991231000001");
}

#[test]
fn missing_expired_and_expiring_keys_are_reported() {
    let world = World::without_key();
    let keys = || {
        let (status, report) = doctor(&world.cli);
        assert_eq!(status, 0, "{report}");
        check(&report, "keys").clone()
    };
    assert_check(&keys(), "has no read key");
    assert_check(&keys(), "assay-admin key create --org Shop --days 90");
    world
        .cli
        .json(&["key", "create", "--org", "Shop", "--days", "30"]);
    assert_eq!(keys()["status"], "ok");
    world
        .database
        .execute("UPDATE api_key SET expires_at = now() + interval '5 days'");
    assert_check(&keys(), "in 5 d");
    assert_check(&keys(), "assay-admin key rotate ");
    assert_eq!(keys()["status"], "warn");
    world
        .database
        .execute("UPDATE api_key SET expires_at = now() - interval '3 days'");
    assert_check(&keys(), "the last expired 3 d ago");
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
    let (status, report) = doctor(&world.cli);
    assert_eq!(status, 1, "{report}");
    assert_check(check(&report, "retention"), "1 run with 2 results");
    assert_eq!(check(&report, "retention")["status"], "warn");
    assert_check(check(&report, "retention"), "assay-admin prune");
    assert_check(check(&report, "verdicts"), "judged 20 d ago");
    assert_eq!(check(&report, "packs")["status"], "fail");
    world.cli.json(&["prune", "--all-of-it"]);
    let (_, report) = doctor(&world.cli);
    assert_eq!(check(&report, "retention")["status"], "ok");
}

#[test]
fn damaged_blocks_of_results_are_reported() {
    let world = World::without_key();
    let report = world.file(
        "r.xml",
        &junit::report("2026-11-20T10:00:00Z", &[("adds", true), ("sums", false)]),
    );
    let import = ["--no-ci", "--replace", &report];
    world.import(&import);
    let results = || check(&doctor(&world.cli).1, "results").clone();
    assert_eq!(results()["status"], "ok");
    assert_check(&results(), "1 block of results");
    let present = |bits: &str| format!("present = decode(rpad('{bits}', 128, '0'), 'hex')");
    for damage in [
        "status = '\\x00'",
        "status = '\\x0063'",
        "duration_ms = '{}'",
        "attempts = '{1}'",
        "block = 1",
        "status = '\\x000000', duration_ms = '{1,2,3}'",
        // Two bits as there should be, one of them of a test that the project does not have.
        &present("05"),
        &present("01"),
    ] {
        world
            .database
            .execute(&format!("UPDATE result_block SET {damage}"));
        assert_eq!(results()["status"], "fail", "{damage}");
        assert_check(&results(), "1 block cannot be read, one of run 1 of \\\"web\\\"");
        // As the advice says.
        world.import(&import);
        assert_eq!(results()["status"], "ok", "{damage}");
    }
    world
        .database
        .execute(&format!("UPDATE result_block SET {}", present("03")));
    assert_eq!(results()["status"], "ok");
    world.database.execute("UPDATE attempt SET status = 9");
    assert_check(
        &results(),
        "1 attempt with a status that does not exist, one of run 1 of",
    );
    world.database.execute("UPDATE run_pack SET pack = '\\x01'");
    let packs = check(&doctor(&world.cli).1, "packs").clone();
    assert_eq!(packs["status"], "fail");
    assert_check(&packs, "the pack of run 1 of \\\"web\\\": it ends too early");
}

#[test]
fn attempts_without_their_errors_are_reported() {
    let world = World::without_key();
    let cases = [("adds", true), ("sums", false), ("halves", false)];
    let report = world.file("r.xml", &junit::report("2026-11-20T10:00:00Z", &cases));
    world.import(&["--no-ci", &report]);
    let results = || check(&doctor(&world.cli).1, "results").clone();
    assert_eq!(results()["status"], "ok");
    for (damage, missing) in [
        (
            "UPDATE attempt_texts SET errors = errors[1:1]",
            "of 1 attempt are",
        ),
        ("UPDATE attempt_texts SET number = 7", "of 2 attempts are"),
        ("DELETE FROM attempt_texts", "of 2 attempts are"),
    ] {
        world.database.execute(damage);
        assert_eq!(results()["status"], "fail", "{damage}");
        assert_check(&results(), missing);
    }
}

#[test]
fn damaged_blocks_of_verdicts_are_reported_and_repaired() {
    let world = World::without_key();
    for day in 20..25 {
        let started = format!("2026-11-{day}T10:00:00Z");
        let cases = [("adds", true), ("sums", day % 2 == 0)];
        let report = world.file("r.xml", &junit::report(&started, &cases));
        world.import(&["--no-ci", &report]);
    }
    let verdicts = || check(&doctor(&world.cli).1, "verdicts").clone();
    let rows = || {
        let rows = "SELECT string_agg(verdict::text, ' ' ORDER BY test) FROM verdict";
        world.database.text(rows)
    };
    assert_eq!(verdicts()["status"], "ok");
    let sound = rows();
    for damage in [
        "UPDATE verdict_block SET impact = '{}'",
        "UPDATE verdict_block SET body = '{1,9}'",
        "UPDATE verdict_block SET bodies = '{}'",
        "UPDATE verdict_block SET block = 1",
        "UPDATE verdict_block SET status = status || ARRAY['healthy'], reason = reason || ARRAY['retry_rate']",
        "UPDATE verdict_evidence SET test = 7",
        "DELETE FROM verdict_block",
    ] {
        world.database.execute(damage);
        assert_eq!(verdicts()["status"], "fail", "{damage}");
        assert_check(&verdicts(), "cannot be read");
        world.cli.json(&["rebuild"]);
        assert_eq!(
            (verdicts()["status"].as_str(), rows()),
            (Some("ok"), sound.clone()),
            "{damage}"
        );
    }
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
    let (status, report) = doctor(&Cli::new(url));
    // A role belongs to the whole cluster, so it stays when the test's database is dropped.
    world.database.execute(&format!("DROP ROLE {name}"));
    assert_eq!(status, 1, "{report}");
    let is_reported = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .any(|check| check["status"] == "fail");
    assert!(is_reported, "{report}");
}

#[test]
fn a_private_database_is_checked_and_never_created() {
    let folder = tempfile::tempdir().unwrap();
    let assay = |arguments: &[&str]| {
        let output = Command::new(program("assay-admin"))
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
    let (status, report) = assay(&["doctor"]);
    assert_eq!((status, &report["status"]), (Some(0), &"warn".into()), "{report}");
    assert_check(check(&report, "private"), "holds no database yet");
    assert!(!folder.path().join(".assay").exists());

    assay(&["org", "create", "Mine", "--plan", "pro"]);
    assay(&["key", "create", "--org", "Mine", "--days", "90"]);
    assay(&["project", "create", "--org", "Mine", "web"]);
    let (status, report) = assay(&["doctor"]);
    assert_eq!(status, Some(0), "{report}");
    for name in ["private", "disk", "postgres", "schema", "roles", "keys"] {
        // The free space depends on the machine.
        assert!(
            name == "disk" || check(&report, name)["status"] == "ok",
            "{report}"
        );
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
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(check(&report, "redis")["status"], "warn");
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
