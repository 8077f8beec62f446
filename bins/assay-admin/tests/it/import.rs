//! `assay-admin import`.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use assay_testkit::{World, stderr_text, text};
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
fn a_changed_report_under_the_same_key_adds_to_the_earlier_or_replaces_it_on_request() {
    let world = World::without_key();
    let first = world.file("1.xml", &junit::report(START, &[("adds", false), ("gone", true)]));
    let second = world.file("2.xml", &junit::report(START, &[("adds", true)]));
    let code = ["--branch", "main", "--commit", "c0ffee"];
    let before = world.import(&[&code[..], &["--run-key", "b1", &first]].concat());
    assert_eq!(before["warnings"], json!([]));
    // It has some of the tests, with all that failed: a retry.
    let after = world.import(&[&code[..], &["--run-key", "b1", &second]].concat());
    assert_eq!(before["runId"], after["runId"]);
    assert_eq!(
        (&after["status"], &after["continues"]),
        (&"passed".into(), &true.into())
    );
    assert_eq!(
        (&after["counts"]["total"], &after["counts"]["recovered"]),
        (&2.into(), &1.into())
    );
    let replaced = world.import(&[&code[..], &["--run-key", "b1", "--replace", &second]].concat());
    assert_eq!(replaced["replaced"], json!({"tests": 2, "failed": 0}));
    assert_eq!(
        (&replaced["counts"]["total"], &replaced["warnings"]),
        (&1.into(), &json!([]))
    );
    // Values that this report lacks are kept from the earlier report.
    let third = world.file("3.xml", &junit::report(START, &[("adds", false)]));
    let bare = world.import(&["--run-key", "b1", &third]);
    assert_eq!(bare["warnings"].as_array().unwrap().len(), 1, "{bare}");
    assert!(
        bare["warnings"][0].as_str().unwrap().contains("--suite"),
        "{bare}"
    );
    let again = world.import(&["--run-key", "b1", &third]);
    assert_eq!(
        (&again["changed"], &again["warnings"]),
        (&false.into(), &json!([]))
    );
    // Another suite of the same build is another run.
    let suite = world.import(&["--run-key", "b1", "--suite", "e2e", &second]);
    assert_ne!(suite["runId"], after["runId"]);
}

#[test]
fn shards_become_one_run_whatever_their_order() {
    let world = World::without_key();
    let shard = |index: u32, passed: bool| {
        let name = format!("case {index}");
        let report = world.file(&format!("{index}.xml"), &junit::report(START, &[(&name, passed)]));
        world.import(&[
            "--run-key",
            "b",
            "--shard",
            &format!("{index}/3"),
            "--replace",
            &report,
        ])
    };
    let second = shard(2, true);
    assert_eq!(
        (&second["status"], &second["runId"]),
        (&Value::Null, &second["shardId"])
    );
    let third = shard(3, true);
    assert_eq!(third["runId"], second["runId"]);
    assert_ne!(third["shardId"], second["shardId"]);
    let first = shard(1, true);
    assert_eq!(
        (&first["status"], &first["counts"]["total"]),
        (&"passed".into(), &3.into())
    );
    let replaced = shard(2, false);
    assert_eq!(
        (&replaced["shardId"], &replaced["status"]),
        (&second["shardId"], &"failed".into())
    );

    let whole = world.file("whole.xml", &junit::report(START, &[("whole", true)]));
    let refused = world
        .cli
        .run(&["import", "--project", "web", "--run-key", "b", &whole]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr_text(&refused).contains("--shard"),
        "{}",
        stderr_text(&refused)
    );
    assert_eq!(
        world.import(&[
            "--run-key",
            "b",
            "--shard",
            "2/3",
            "--replace",
            &world.file("2.xml", &junit::report(START, &[("case 2", true)]))
        ])["status"],
        "passed"
    );
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
    assert!(
        stderr_text(&output).contains("package.json"),
        "{}",
        stderr_text(&output)
    );

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
        assert!(stderr_text(&refused).contains(word), "{}", stderr_text(&refused));
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
        assert!(
            stderr_text(&output).contains("bad.json: no known report format"),
            "{}",
            stderr_text(&output)
        );
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
fn the_variables_of_ci_join_shards_without_a_flag() {
    let world = World::without_key();
    let mut runs = Vec::new();
    for index in ["1", "2"] {
        let report = world.file(&format!("{index}.xml"), &junit::report(START, &[(index, true)]));
        let mut command = world
            .cli
            .command(&["import", "--project", "web", "--json", &report]);
        command.env("CI_NODE_INDEX", index).env("CI_NODE_TOTAL", "2");
        runs.push(json_of(in_gitlab(&mut command)));
    }
    assert_eq!(runs[0]["runId"], runs[1]["runId"]);
    assert_eq!(
        (&runs[0]["status"], &runs[1]["status"]),
        (&Value::Null, &"passed".into())
    );

    let report = world.file("alone.xml", &junit::report(START, &[("alone", true)]));
    let mut command = world
        .cli
        .command(&["import", "--project", "web", "--json", "--no-ci", &report]);
    assert_ne!(json_of(in_gitlab(&mut command))["runId"], runs[0]["runId"]);
}

#[test]
fn two_jobs_of_a_workflow_are_two_runs_and_reports_of_one_job_are_parts_of_one() {
    let world = World::without_key();
    let send = |job: &str, attempt: &str, name: &str, passed: bool, arguments: &[&str]| {
        let file = format!("{name} {attempt} {passed}.xml");
        let report = world.file(&file, &junit::report(START, &[(name, passed)]));
        let arguments = [&["import", "--project", "web", "--json", &report], arguments].concat();
        let mut command = world.cli.command(&arguments);
        command
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_RUN_ID", "4711")
            .env("GITHUB_RUN_ATTEMPT", attempt)
            .env("GITHUB_REF_NAME", "main")
            .env("GITHUB_SHA", "c0ffee00")
            .env("GITHUB_JOB", job)
            .env("RUNNER_NAME", format!("r{attempt}"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let unit = send("unit", "1", "adds", false, &[]);
    let lint = send("lint", "1", "is tidy", true, &[]);
    assert_ne!(unit["runId"], lint["runId"]);
    let more = send("unit", "1", "adds more", true, &[]);
    assert_eq!(
        (&more["runId"], &more["counts"]["total"]),
        (&unit["runId"], &2.into())
    );
    assert_eq!(more["warnings"], serde_json::json!([]));
    // The same test again on the same machine is beside the first result, unless the user says what it is.
    send("twice", "1", "adds", false, &[]);
    let beside = send("twice", "1", "adds", true, &[]);
    assert_eq!(
        (&beside["status"], &beside["continues"]),
        (&"failed".into(), &false.into())
    );
    assert!(
        beside["warnings"][0].as_str().unwrap().contains("--attempt 2"),
        "{beside}"
    );
    // The job ran again.
    let again = send("unit", "2", "adds", true, &[]);
    assert_eq!(
        (&again["runId"], &again["status"]),
        (&unit["runId"], &"passed".into())
    );
    assert_eq!(
        (&again["continues"], &again["counts"]["recovered"]),
        (&true.into(), &1.into())
    );
    let replaced = send("unit", "2", "adds less", true, &["--replace"]);
    assert_eq!(replaced["replaced"], serde_json::json!({"tests": 2, "failed": 0}));
    assert_eq!(replaced["counts"]["total"], 1);
    let windows = send("unit", "1", "adds on windows", true, &["--suite", "unit windows"]);
    assert!(windows["runId"] != unit["runId"] && windows["runId"] != lint["runId"]);
    assert_eq!(world.count("SELECT count(*) FROM run"), 4);
    let suites = world.database.texts("SELECT suite FROM run ORDER BY number");
    let suites: Vec<_> = suites.iter().flatten().map(String::as_str).collect();
    assert_eq!(suites, ["unit", "lint", "twice", "unit windows"]);
}

type Variables = &'static [(&'static str, &'static str)];

/// A build on each service, with the variables of the first and the second attempt of one job.
const RERUNS: [(&str, Variables, Variables); 6] = [
    (
        "GITHUB_ACTIONS=true GITHUB_RUN_ID=4711 GITHUB_JOB=unit GITHUB_SHA=c0ffee",
        &[("GITHUB_RUN_ATTEMPT", "1"), ("RUNNER_NAME", "r1")],
        &[("GITHUB_RUN_ATTEMPT", "2"), ("RUNNER_NAME", "r2")],
    ),
    (
        "GITLAB_CI=true CI_PIPELINE_ID=4711 CI_JOB_NAME=unit CI_COMMIT_SHA=c0ffee",
        &[("CI_JOB_ID", "999")],
        &[("CI_JOB_ID", "1000")],
    ),
    (
        "CIRCLECI=true CIRCLE_WORKFLOW_WORKSPACE_ID=4711 CIRCLE_JOB=unit CIRCLE_SHA1=c0ffee",
        &[
            ("CIRCLE_BUILD_NUM", "9"),
            ("CIRCLE_WORKFLOW_JOB_ID", "j"),
            ("CIRCLE_WORKFLOW_ID", "4711"),
        ],
        &[
            ("CIRCLE_BUILD_NUM", "10"),
            ("CIRCLE_WORKFLOW_JOB_ID", "k"),
            ("CIRCLE_WORKFLOW_ID", "4712"),
        ],
    ),
    (
        "BUILDKITE=true BUILDKITE_BUILD_ID=4711 BUILDKITE_STEP_KEY=unit BUILDKITE_COMMIT=c0ffee",
        &[("BUILDKITE_RETRY_COUNT", "0"), ("BUILDKITE_JOB_ID", "j")],
        &[("BUILDKITE_RETRY_COUNT", "1"), ("BUILDKITE_JOB_ID", "k")],
    ),
    (
        "TF_BUILD=True BUILD_BUILDID=4711 SYSTEM_JOBNAME=unit BUILD_SOURCEVERSION=c0ffee",
        &[("SYSTEM_JOBATTEMPT", "1"), ("SYSTEM_JOBID", "j")],
        &[("SYSTEM_JOBATTEMPT", "2"), ("SYSTEM_JOBID", "k")],
    ),
    (
        "BITBUCKET_BUILD_NUMBER=4711 BITBUCKET_COMMIT=c0ffee",
        &[("BITBUCKET_STEP_RUN_NUMBER", "1"), ("BITBUCKET_STEP_UUID", "{s}")],
        &[("BITBUCKET_STEP_RUN_NUMBER", "2"), ("BITBUCKET_STEP_UUID", "{t}")],
    ),
];

#[test]
fn a_job_that_runs_again_continues_its_run_on_each_service() {
    let world = World::without_key();
    for (build, first, second) in RERUNS {
        let send = |attempt: &[(&str, &str)], passed: bool| {
            let report = world.file(
                &format!("{passed}.xml"),
                &junit::report(START, &[("adds", passed), ("rounds", true)]),
            );
            let mut command = world
                .cli
                .command(&["import", "--project", "web", "--json", &report]);
            command.envs(build.split(' ').filter_map(|variable| variable.split_once('=')));
            json_of(command.envs(attempt.iter().copied()))
        };
        let failed = send(first, false);
        let passed = send(second, true);
        assert_eq!(failed["status"], "failed", "{build}");
        assert_eq!(
            (&passed["runId"], &passed["status"]),
            (&failed["runId"], &"passed".into()),
            "{build}"
        );
        assert_eq!(passed["counts"]["recovered"], 1, "{build}");
        assert_eq!(
            (&passed["continues"], &passed["warnings"][0]),
            (&true.into(), &passed["warnings"][0])
        );
        // Without another attempt, the same tests again are no retry.
        let beside = world.file(
            "beside.xml",
            &junit::report(START, &[("adds", false), ("rounds", false)]),
        );
        let mut command = world
            .cli
            .command(&["import", "--project", "web", "--json", &beside]);
        command.envs(build.split(' ').filter_map(|variable| variable.split_once('=')));
        let beside = json_of(command.envs(second.iter().copied()));
        assert_eq!(
            (&beside["continues"], &beside["counts"]["failed"]),
            (&true.into(), &2.into()),
            "{build}"
        );
        assert!(beside["warnings"].to_string().contains("--suite"), "{build}");
    }
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
