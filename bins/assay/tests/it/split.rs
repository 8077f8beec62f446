//! `assay split`: the tests of a shard, by the durations that a server knows.

use std::{fs, process::Command, process::Output};

use assay_testkit::{Cli, ServedWorld, assert_contains, rfc3339, stderr_text};
use serde_json::Value;
use time::{Duration, OffsetDateTime};

/// A runner's list with four classes, of which the server knows three.
const LIST: &str = "org.shop.CartTest\norg.shop.SlowTest\norg.shop.PayTest\norg.shop.NewTest\n";

/// A server whose project passed thrice on main: the class `SlowTest` takes nine times as long as the other two.
fn served() -> ServedWorld {
    let world = ServedWorld::new();
    for (run, minutes_ago) in [(1, 90), (2, 60), (3, 30)] {
        let case = |class: &str, seconds: f64| {
            format!("<testcase classname=\"org.shop.{class}\" name=\"works\" time=\"{seconds}\"/>")
        };
        let cases = [case("CartTest", 1.0), case("SlowTest", 9.0), case("PayTest", 1.0)].concat();
        let report = format!("<testsuites><testsuite name=\"all\">{cases}</testsuite></testsuites>");
        let key = run.to_string();
        world.import_report(minutes_ago, &report, &["--branch", "main", "--run-key", &key]);
    }
    world
}

/// `assay split` of a list of classes with these arguments, which asks this server.
fn command(list: &str, arguments: &[&str], server: &str, key: &str) -> Command {
    let fixed = ["split", list, "--runner", "surefire", "--retry-for", "0"];
    let mut command = Cli::new("postgresql://127.0.0.1:1/nowhere").command(&[&fixed, arguments].concat());
    command
        .env("ASSAY_API_URL", format!("http://{server}/api/v1"))
        .env("ASSAY_READ_KEY", key);
    command
}

fn split(world: &ServedWorld, arguments: &[&str]) -> Output {
    let now = rfc3339(OffsetDateTime::now_utc() + Duration::minutes(1));
    let arguments = [&["--before", &now], arguments].concat();
    let list = world.file("list.txt", LIST);
    command(&list, &arguments, world.server.address(), &world.key)
        .output()
        .unwrap()
}

fn listed(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", stderr_text(output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn shards_take_equally_long_and_together_are_the_list() {
    let world = served();
    let first = split(&world, &["--index", "1", "--total", "2"]);
    let second = split(&world, &["--index", "2", "--total", "2"]);
    assert_eq!(listed(&first), ["org/shop/SlowTest.java"]);
    let others = ["CartTest", "PayTest", "NewTest"].map(|class| format!("org/shop/{class}.java"));
    assert_eq!(listed(&second), others);
    let plan = stderr_text(&second);
    assert!(
        plan.contains(
            "shard 2 of 2: 3 of 4, about 3 s (all shards: 3 to 9 s; durations of 3 runs of \"main\")"
        ) && plan.contains("1 of 4 have no duration"),
        "{plan}"
    );

    let json = split(&world, &["--index", "2", "--total", "2", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["milliseconds"], serde_json::json!([9_000, 3_000]), "{json}");
    assert_eq!(
        (&json["units"], &json["unknown"]),
        (&3.into(), &1.into()),
        "{json}"
    );

    let third = split(&world, &["--index", "5", "--total", "5"]);
    assert!(listed(&third).is_empty());
    assert_contains(&stderr_text(&third), "has no tests");
}

#[test]
fn durations_can_be_written_for_machines_without_a_server() {
    let world = served();
    let file = world.folder.path().join("timings.json").display().to_string();
    let written = split(&world, &["--write", &file]);
    assert!(written.status.success(), "{}", stderr_text(&written));
    let online = split(&world, &["--index", "1", "--total", "3"]);
    drop(world.server);
    let list = world.world.file("list.txt", LIST);
    let offline = |arguments: &[&str]| {
        let arguments = [&["--index", "1", "--total", "3"], arguments].concat();
        let key = "svc_ro_00000000000000000000000000000000";
        command(&list, &arguments, "127.0.0.1:1", key).output().unwrap()
    };
    assert_eq!(listed(&offline(&["--timings", &file])), listed(&online));
    assert_eq!(listed(&offline(&["--evenly"])).len(), 2);
    let refused = offline(&["--before", "2026-11-20T18:00:00Z"]);
    assert_eq!(refused.status.code(), Some(1));
    assert_contains(&stderr_text(&refused), "--evenly");
    assert!(refused.stdout.is_empty());
}

#[test]
fn the_checked_out_commit_gives_the_moment_that_shards_share() {
    let world = served();
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str], date: &str| {
        let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
        let status = Command::new("git")
            .args(identity)
            .args(arguments)
            .env("GIT_COMMITTER_DATE", date)
            .current_dir(folder.path())
            .status();
        assert!(status.unwrap().success());
    };
    let split = || {
        let list = folder.path().join("list.txt");
        fs::write(&list, LIST).unwrap();
        let list = list.display().to_string();
        let arguments = ["--index", "1", "--total", "2"];
        let mut command = command(&list, &arguments, world.server.address(), &world.key);
        command.current_dir(folder.path()).output().unwrap()
    };
    let outside = split();
    assert_eq!(outside.status.code(), Some(2));
    assert_contains(&stderr_text(&outside), "--before");

    git(&["init", "--quiet"], "");
    let before_all_reports = rfc3339(OffsetDateTime::now_utc() - Duration::days(1));
    git(
        &["commit", "--quiet", "--allow-empty", "--message", "Old"],
        &before_all_reports,
    );
    let old = split();
    assert_eq!(listed(&old).len(), 2);
    assert_contains(&stderr_text(&old), "No duration is known");

    let after = rfc3339(OffsetDateTime::now_utc() + Duration::minutes(1));
    git(
        &["commit", "--quiet", "--allow-empty", "--message", "New"],
        &after,
    );
    assert_eq!(listed(&split()), ["org/shop/SlowTest.java"]);
}

#[test]
fn wrong_usage_is_named() {
    let world = ServedWorld::new();
    for (arguments, reason) in [
        (
            &["--index", "3", "--total", "2"][..],
            "--index must be from 1 to --total",
        ),
        (&["--index", "1", "--total", "0"], "--total"),
        (&["--index", "1"], "--total"),
    ] {
        let refused = split(&world, arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert_contains(&stderr_text(&refused), reason);
    }
}
