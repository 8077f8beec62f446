//! `assay-admin import`.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use assay_testkit::{World, assert_contains, stderr_text, text};
use serde_json::{Value, json};

use crate::junit;

const START: &str = "2026-11-20T10:00:00Z";

#[test]
fn a_report_is_stored_and_the_same_again_changes_nothing() {
    let world = World::without_key();
    let report = world.file("r.xml", &junit::report(START, &[("adds", true), ("sums", false)]));
    let first = world.import(&["--branch", "main", "--commit", "c0ffee", &report]);
    assert_eq!(first["runNumber"], 1);
    assert_eq!(first["status"], "failed");
    assert_eq!(
        first["counts"],
        json!({"total": 2, "passed": 1, "failed": 1, "skipped": 0, "recovered": 0})
    );
    assert_eq!((&first["tests"], &first["warnings"]), (&2.into(), &json!([])));
    assert_eq!(first["runId"], first["shardId"]);
    assert_eq!(first["changed"], true);

    let again = world.import(&["--branch", "main", "--commit", "c0ffee", &report]);
    assert_eq!(
        (&again["runId"], &again["changed"]),
        (&first["runId"], &false.into())
    );
    // A different report without a run key is another run.
    let other = world.file("o.xml", &junit::report(START, &[("adds", true)]));
    assert_eq!(world.import(&[&other])["runNumber"], 2);
}

#[test]
fn a_folder_is_searched_and_other_files_are_skipped_with_a_message() {
    let world = World::without_key();
    world.file("out/a/one.xml", &junit::report(START, &[("one", true)]));
    world.file("out/two.xml", &junit::report(START, &[("two", true)]));
    world.file("out/package.json", "{\"name\": \"shop\"}");
    world.file("out/notes.txt", "not looked at");
    world.file(
        "out/node_modules/dep/junit.xml",
        &junit::report(START, &[("theirs", false)]),
    );
    let folder = world.folder.path().join("out").display().to_string();
    let output = world.cli.run(&["import", "--project", "web", "--json", &folder]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let imported: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(imported["counts"]["total"], 2);
    assert_contains(&stderr_text(&output), "package.json");

    let pattern = format!("{folder}/**/one.xml");
    assert_eq!(world.import(&[&pattern])["counts"]["total"], 1);
}

#[test]
fn an_unreadable_report_is_refused_whole() {
    let world = World::without_key();
    let good = world.file("good.xml", &junit::report(START, &[("adds", true)]));
    let bad = world.file("bad.json", "{\"name\": \"shop\"}");
    let empty = world.folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    for (paths, word) in [
        (&[bad.as_str()][..], "bad.json"),
        (&[good.as_str(), "/nowhere/report.xml"], "/nowhere/report.xml"),
        (&["/nowhere/report.xml"], "/nowhere/report.xml"),
        (&["/nowhere/*.xml"], "no file matches"),
        (&[empty.to_str().unwrap()], "no test report"),
    ] {
        let refused = world.cli.run(&[&["import", "--project", "web"], paths].concat());
        assert_eq!(refused.status.code(), Some(1), "{paths:?}");
        assert_contains(&stderr_text(&refused), word);
        assert!(refused.stdout.is_empty());
    }
    let unknown = world.cli.run(&["import", "--project", "wob", &good]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(
        world.import(&[&good])["runNumber"],
        1,
        "a refused import uses no number"
    );
}

#[test]
fn readable_files_beside_an_unreadable_one_are_stored() {
    let world = World::without_key();
    let good = world.file("good.xml", &junit::report(START, &[("adds", true)]));
    let bad = world.file("bad.json", "{\"name\": \"shop\"}");
    for (flags, status) in [(&["--json"][..], 1), (&["--json", "--lenient"], 0)] {
        let output = world
            .cli
            .run(&[&["import", "--project", "web"], flags, &[&good, &bad]].concat());
        assert_eq!(output.status.code(), Some(status), "{}", stderr_text(&output));
        assert_contains(&stderr_text(&output), "bad.json: no known report format");
        let imported: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&imported["runNumber"], &imported["counts"]["total"]),
            (&json!(1), &json!(1))
        );
        assert_eq!(imported["notRead"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn standard_input_is_a_report() {
    let world = World::without_key();
    let mut child = world
        .cli
        .command(&["import", "--project", "web", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(junit::report(START, &[("piped", true)]).as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let imported: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(imported["counts"]["passed"], 1);
}

#[test]
fn a_dry_run_says_where_each_value_comes_from_and_stores_nothing() {
    let world = World::without_key();
    let report = world.file("r.xml", &junit::report(START, &[("adds", true)]));
    let mut command = world.cli.command(&[
        "import",
        "--project",
        "web",
        "--dry-run",
        "--json",
        "--branch",
        "mine",
        "--shard",
        "1/2",
        &report,
    ]);
    let shown = json_of(in_gitlab(&mut command));
    let from = |what: &str| {
        let values = shown["values"].as_array().unwrap();
        let value = values
            .iter()
            .find(|value| value["what"] == what)
            .unwrap_or_else(|| panic!("{what}: {shown}"));
        (text(&value["value"]), text(&value["from"]))
    };
    assert_eq!(from("branch"), ("mine".into(), "flag".into()));
    assert_eq!(from("shard"), ("1/2".into(), "flag".into()));
    assert_eq!(from("commit"), ("c0ffee00".into(), "variables".into()));
    assert_eq!(from("CI provider"), ("gitlab-ci".into(), "variables".into()));
    assert_eq!(from("run key").1, "variables");
    assert_eq!(
        from("started at"),
        ("2026-11-20T10:00:00.000Z".into(), "report".into())
    );
    assert_eq!(shown["counts"]["total"], 1);
    assert_eq!(world.import(&[&report])["runNumber"], 1);
}

#[test]
fn an_import_names_the_verdicts_that_it_changed() {
    let world = World::without_key();
    let now =
        "SELECT to_char(now() at time zone 'utc' - interval '1 hour', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')";
    let now = world.database.text(now).unwrap();
    let import = |key: &str, passed: bool| {
        let tests = [("adds", true), ("sums", passed)];
        let report = world.file(&format!("{key}.xml"), &junit::report(&now, &tests));
        vec![
            "--run-key".to_owned(),
            key.to_owned(),
            "--branch".to_owned(),
            "main".to_owned(),
            "--commit".to_owned(),
            format!("c0ffee{}", key.len()),
            report,
        ]
    };
    let mut all_changes = Vec::new();
    let mut last = json!({ "totals > adds": "insufficient_data", "totals > sums": "insufficient_data" });
    for (index, passed) in [true, true, true, true, false, true, false, true, false]
        .into_iter()
        .enumerate()
    {
        let arguments = import(&"k".repeat(index + 1), passed);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let printed = world.import(&arguments);
        let changes = printed["verdictsChanged"].as_array().unwrap();
        assert_eq!(printed["verdictsChangedTotal"], changes.len());
        for change in changes {
            let name = text(&change["testName"]);
            assert_eq!(change["from"], last[&name], "{printed}");
            assert_eq!(change.as_object().unwrap().len(), 4, "{printed}");
            last[&name] = change["to"].clone();
            all_changes.push((name, text(&change["to"])));
        }
        let stored = world
            .database
            .texts("SELECT test.name || ' ' || status FROM verdict JOIN test ON ordinal = test");
        for (name, status) in last.as_object().unwrap() {
            let line = format!("{name} {}", text(status));
            assert!(stored.contains(&Some(line.clone())), "{line}: {stored:?}");
        }
        assert_eq!(
            world.import(&arguments)["verdictsChanged"],
            json!([]),
            "the same again"
        );
    }
    assert!(
        all_changes
            .iter()
            .any(|(name, to)| name == "totals > sums" && to == "flaky"),
        "{all_changes:?}"
    );
    let arguments = import("another", true);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    world
        .database
        .execute("UPDATE verdict_block SET status = array_fill('healthy'::text, ARRAY[cardinality(status)])");
    let output = world
        .cli
        .run(&[&["import", "--project", "web"], &arguments[..]].concat());
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.contains("1 verdict changed:") && shown.contains("flaky    healthy  totals > sums"),
        "{shown}"
    );
}

#[test]
fn unknown_branch_and_commit_are_a_warning() {
    let world = World::without_key();
    let report = world.file("r.xml", &junit::report(START, &[("adds", true)]));
    let output = world.cli.run(&["import", "--project", "web", &report]);
    let warned = stderr_text(&output);
    assert!(output.status.success(), "{warned}");
    assert!(
        warned.contains("give --branch") && warned.contains("give --commit"),
        "{warned}"
    );
}

#[test]
fn a_given_start_moves_the_run() {
    let world = World::without_key();
    let report = world.file("r.xml", &junit::report(START, &[("adds", false)]));
    world.import(&[
        "--started-at",
        "2026-11-10T08:00:00+02:00",
        "--duration-ms",
        "1500",
        &report,
    ]);
    let times = world.database.text(
        "SELECT to_char(started_at at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS.MS') || ' ' || \
         to_char(finished_at at time zone 'utc', 'HH24:MI:SS.MS') FROM run",
    );
    assert_eq!(times.as_deref(), Some("2026-11-10 06:00:00.000 06:00:01.500"));
    assert_eq!(world.count("SELECT count(*) FROM run"), 1);
}

#[test]
fn an_import_prints_a_sentence() {
    let world = World::without_key();
    let report = world.file("r.xml", &junit::report(START, &[("adds", true), ("sums", false)]));
    let output = world.cli.run(&["import", "--project", "web", &report]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.starts_with("Run 1 of \"web\" failed: 2 tests, 1 passed (0 recovered), 1 failed, 0 skipped"),
        "{printed}"
    );
}

/// The variables of a GitLab job.
fn in_gitlab(command: &mut Command) -> &mut Command {
    command
        .env("GITLAB_CI", "true")
        .env("CI_COMMIT_REF_NAME", "topic")
        .env("CI_COMMIT_SHA", "c0ffee00")
        .env("CI_PIPELINE_ID", "77")
}

fn json_of(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}
