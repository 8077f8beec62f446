//! `assay analyze`.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use assay_testkit::{Cli, Server, World, stderr_text};
use serde_json::Value;

use crate::junit;

/// The command line with the address of a missing database, because analysis needs none.
fn cli() -> Cli {
    Cli::new("postgresql://127.0.0.1:1/nowhere")
}

fn testdata(path: &str) -> String {
    format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"))
}

fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn path(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Twelve reports: `steady` passes, `red` fails from the eighth on, `odd` in every third.
fn reports(started_at: impl Fn(u32) -> String) -> Vec<(String, String)> {
    let cases = |run: u32| {
        [
            ("steady", true),
            ("red", run < 8),
            ("odd", !run.is_multiple_of(3)),
        ]
    };
    (1..13)
        .map(|run| {
            (
                format!("run-{run:02}.xml"),
                junit::report(&started_at(run), &cases(run)),
            )
        })
        .collect()
}

fn days(run: u32) -> String {
    format!("2026-11-{run:02}T08:00:00Z")
}

fn report_folder() -> tempfile::TempDir {
    let reports = reports(days);
    folder(
        &reports
            .iter()
            .map(|(name, xml)| (name.as_str(), xml.clone()))
            .collect::<Vec<_>>(),
    )
}

fn csv() -> String {
    let mut text = String::from("test,run,started_at,status,duration_ms\n");
    for run in 1..13_u32 {
        for (test, failed) in [
            ("steady", false),
            ("red", run >= 8),
            ("odd", run.is_multiple_of(3)),
        ] {
            let status = if failed { "failed" } else { "passed" };
            text += &format!("totals > {test},run-{run:02},{},{status},12\n", days(run));
        }
    }
    text
}

/// The verdict on the test that fails from the eighth run on.
fn verdict_on_red(analysis: &Value) -> &str {
    let tests = analysis["tests"].as_array().unwrap();
    tests
        .iter()
        .find(|test| test["testName"] == "totals > red")
        .unwrap()["status"]
        .as_str()
        .unwrap()
}

fn statuses(analysis: &Value) -> Vec<(&str, &str)> {
    let tests = analysis["tests"].as_array().unwrap();
    tests
        .iter()
        .map(|test| {
            (
                test["testName"].as_str().unwrap(),
                test["status"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn reports_and_the_same_history_as_csv_get_equal_verdicts() {
    let reports = report_folder();
    let history = folder(&[("history.csv", csv())]);
    let of_reports = cli().json(&["analyze", &path(&reports, "")]);
    let of_csv = cli().json(&["analyze", &path(&history, "history.csv")]);
    assert_eq!(
        of_reports["now"], "2026-11-12T08:00:00.000Z",
        "the newest run's start"
    );
    assert_eq!(
        (&of_reports["runs"], &of_reports["windowDays"]),
        (&12.into(), &14.into())
    );
    assert_eq!(
        statuses(&of_reports),
        [
            ("totals > red", "broken"),
            ("totals > odd", "flaky"),
            ("totals > steady", "healthy")
        ]
    );
    for (a, b) in of_reports["tests"]
        .as_array()
        .unwrap()
        .iter()
        .zip(of_csv["tests"].as_array().unwrap())
    {
        for field in [
            "testName",
            "status",
            "statusReason",
            "alsoActive",
            "timeLostMs",
            "flakeScore",
            "flakeRate",
            "flipRate",
            "failureRate",
            "impact",
            "runsConsidered",
            "failureStreak",
            "lastSeenAt",
        ] {
            assert_eq!(a[field], b[field], "{field} of {}", a["testName"]);
        }
    }
    let errors = &of_reports["tests"][0]["errors"];
    assert_eq!(
        (&errors[0]["category"], &errors[0]["occurrences"]),
        (&"assertion".into(), &5.into())
    );
    assert_eq!(of_csv["tests"][0].get("errors"), None);
    assert!(
        of_csv["tests"][1]["evidence"]["signals"][0]["runs"]
            .as_array()
            .unwrap()
            .contains(&"run-12".into())
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server's window ends at its own clock"
)]
fn clock() -> time::OffsetDateTime {
    std::time::SystemTime::now().into()
}

/// The import, the flaky list and the analysis compute equal figures, to the last digit.
#[test]
fn an_analysis_agrees_with_stored_verdicts_and_the_live_list() {
    let world = World::without_key();
    // The live list's window ends at the time of the request.
    let now = clock();
    let at = |run: u32| {
        let at = now - time::Duration::hours(20 * i64::from(13 - run));
        at.format(&time::format_description::well_known::Rfc3339).unwrap()
    };
    for (name, xml) in reports(at) {
        let file = world.file(&format!("history/{name}"), &xml);
        world.import(&[&file, "--no-ci"]);
    }
    let analysis = cli().json(&[
        "analyze",
        &world.folder.path().join("history").display().to_string(),
    ]);

    let key = world
        .cli
        .json(&["key", "create", "--org", "Shop", "--days", "30"]);
    let server = Server::start(world.database.url());
    let get = |path: &str| {
        let answer = server.client().get(
            &format!("/api/v1/projects/{}/{path}", world.project),
            key["key"].as_str(),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let live = get("flaky");
    let reported: Vec<&Value> = analysis["tests"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|test| test["status"] == "broken" || test["status"] == "flaky")
        .collect();
    let live = live["tests"].as_array().unwrap();
    assert_eq!(live.len(), reported.len());
    for (live, ours) in live.iter().zip(&reported) {
        let name = live["testName"].as_str().unwrap();
        let stored = get(&format!(
            "tests/{}/status",
            name.replace(' ', "%20").replace('>', "%3E")
        ));
        for field in [
            "status",
            "statusReason",
            "flakeScore",
            "flipRate",
            "failureRate",
            "runsConsidered",
            "failureStreak",
        ] {
            assert_eq!(live[field], ours[field], "{field} of {name}, live");
            assert_eq!(stored[field], ours[field], "{field} of {name}, stored");
        }
        for field in [
            "testName",
            "filePath",
            "explanation",
            "alsoActive",
            "timeLostMs",
            "flakeRate",
            "impact",
            "runsInWindow",
            "lastSeenAt",
        ] {
            assert_eq!(live[field], ours[field], "{field} of {name}");
        }
        for field in ["status", "startedAt", "runNumber"] {
            assert_eq!(
                live["lastRun"][field], ours["lastRun"][field],
                "{field} of {name}'s last run"
            );
        }
    }
}

#[test]
fn the_table_lists_broken_and_flaky_tests_first() {
    let reports = report_folder();
    let output = cli().run(&["analyze", &path(&reports, "")]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert!(
        output.stderr.is_empty(),
        "no progress but on a terminal: {}",
        stderr_text(&output)
    );
    let table = String::from_utf8(output.stdout).unwrap();
    let place = |text: &str| table.find(text).unwrap_or_else(|| panic!("{text} in {table}"));
    assert!(place("broken") < place("totals > red") && place("totals > red") < place("totals > odd"));
    assert!(place("▁▁▁▁▁▁▁█████") > 0);
    assert!(place("FAILED OR RETRIED") > 0);
    assert!(place("1 broken, 1 flaky, and 1 other test: 1 healthy, 0 with too few runs for a verdict") > 0);
    assert!(!table.contains("totals > steady") && !table.contains('\u{1b}'));
}

#[test]
fn the_table_lists_failing_tests_separately() {
    let mut rows = String::from("test,run,started_at,status\n");
    for run in 1..=12 {
        let status = if run == 12 { "failed" } else { "passed" };
        rows += &format!(
            "late,{run},{},{status}\nsteady,{run},{},passed\n",
            days(run),
            days(run)
        );
    }
    let history = folder(&[("h.csv", rows)]);
    let output = cli().run(&["analyze", &path(&history, "h.csv")]);
    let table = String::from_utf8(output.stdout).unwrap();
    let place = |text: &str| table.find(text).unwrap_or_else(|| panic!("{text} in {table}"));
    assert!(place("Failing now") < place("late"));
    assert!(place("0 broken, 0 flaky, 1 failing now, and 1 other test: 1 healthy") > place("late"));
}

#[test]
fn the_page_is_one_document() {
    let reports = report_folder();
    let output = cli().run(&["analyze", &path(&reports, ""), "--output", "html"]);
    let page = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"),
        "{}",
        stderr_text(&output)
    );
    assert!(page.contains("expected 3, got 4"), "the error's own text");
}

#[test]
fn a_history_may_come_from_a_pipe() {
    for format in [&["--format", "csv"][..], &[]] {
        let mut child = Command::new(assay_testkit::program("assay"))
            .args([&["analyze", "-", "--json"], format].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(csv().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let analysis: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(analysis["runs"], 12);
    }
}

#[test]
fn the_time_and_the_stable_branch_may_be_given() {
    let history = folder(&[("h.csv", csv())]);
    let file = path(&history, "h.csv");
    let earlier = cli().json(&["analyze", &file, "--now", "2026-11-07T09:00:00+01:00"]);
    assert_eq!(
        (&earlier["now"], &earlier["runs"]),
        (&"2026-11-07T08:00:00.000Z".into(), &7.into())
    );
    assert_eq!(verdict_on_red(&earlier), "healthy", "not broken yet");

    let mut branched = String::from("test,run,started_at,status,branch\n");
    for line in csv().lines().skip(1) {
        let (row, _) = line.rsplit_once(',').unwrap();
        branched += &format!("{row},trunk\n");
    }
    let history = folder(&[("h.csv", branched)]);
    let file = path(&history, "h.csv");
    assert_eq!(
        verdict_on_red(&cli().json(&["analyze", &file, "--stable-branch", "trunk"])),
        "broken"
    );
    let output = cli().run(&["analyze", &file, "--json"]);
    assert!(
        stderr_text(&output).contains("no run is on the stable branch \"main\"")
            && stderr_text(&output).contains("trunk")
    );
    assert!(
        !statuses(&serde_json::from_slice(&output.stdout).unwrap())
            .iter()
            .any(|(_, status)| *status == "broken")
    );
}

#[test]
fn runs_without_a_branch_are_on_the_stable_one_where_others_name_one() {
    let mut branched = String::from("test,run,started_at,status,branch\n");
    for line in csv().lines().skip(1) {
        let (row, _) = line.rsplit_once(',').unwrap();
        let branch = if row.contains("run-02") { "main" } else { "" };
        branched += &format!("{row},{branch}\n");
    }
    let history = folder(&[("h.csv", branched)]);
    let file = path(&history, "h.csv");
    let output = cli().run(&["analyze", &file, "--json"]);
    let analysis: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdict_on_red(&analysis), "broken");
    assert_eq!(analysis["runsAssumedStable"], 11);
    assert!(
        stderr_text(&output)
            .contains("11 of 12 runs name no branch and are judged as on the stable branch \"main\""),
        "{}",
        stderr_text(&output)
    );
    let page = cli().run(&["analyze", &file, "--output", "html"]);
    assert!(String::from_utf8_lossy(&page.stdout).contains("11 runs without a branch judged as on it."));

    let apart = cli().run(&["analyze", &file, "--json", "--without-branch", "unknown"]);
    assert!(apart.stderr.is_empty(), "{}", stderr_text(&apart));
    let apart: Value = serde_json::from_slice(&apart.stdout).unwrap();
    assert_ne!(verdict_on_red(&apart), "broken");
    assert_eq!(apart["runsAssumedStable"], 0);
}

/// The tutorial shows this command first. The server judges the same reports as runs of the stable branch.
#[test]
fn the_analysis_judges_the_sample_reports_like_the_service() {
    let analysis = cli().json(&["analyze", &testdata("demo/storefront")]);
    let count = |status: &str| {
        let statuses = statuses(&analysis);
        statuses.iter().filter(|(_, found)| *found == status).count()
    };
    assert_eq!((count("broken"), count("flaky")), (2, 9));
}

#[test]
fn reports_with_a_file_per_class_are_one_run_and_two_formats_count_once() {
    let suite = |name: &str, passed: bool| junit::report("2026-11-20T08:00:00Z", &[(name, passed)]);
    let surefire = folder(&[
        ("build/TEST-a.xml", suite("a", true)),
        ("build/TEST-b.xml", suite("b", true)),
        (
            "later/TEST-a.xml",
            junit::report("2026-11-20T10:00:00Z", &[("a", true)]),
        ),
        ("notes.json", "{}".to_owned()),
    ]);
    let output = cli().run(&["analyze", &path(&surefire, ""), "--json"]);
    let analysis: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&analysis["runs"], analysis["tests"].as_array().unwrap().len()),
        (&2.into(), 2)
    );
    assert!(
        stderr_text(&output).contains("notes.json"),
        "{}",
        stderr_text(&output)
    );

    let ctrf = r#"{"reportFormat":"CTRF","results":{"tool":{"name":"x"},"summary":{},"tests":[{"name":"a","status":"passed","duration":4,"start":1795161600000}]}}"#;
    let both = folder(&[("run-1.json", ctrf.to_owned()), ("run-1.xml", suite("a", false))]);
    let analysis = cli().json(&["analyze", &path(&both, "")]);
    assert_eq!(
        (&analysis["runs"], &analysis["tests"][0]["failureRate"]),
        (&1.into(), &0.0.into())
    );
}

#[test]
fn every_kind_of_report_can_be_analysed() {
    let output = cli().run(&[
        "analyze",
        &testdata("reports/samples"),
        &testdata("reports/playwright"),
        "--json",
        "--now",
        "2026-11-21T00:00:00Z",
    ]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let analysis: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(analysis["tests"].as_array().unwrap().len() > 20);
}

#[test]
fn tests_that_cannot_be_judged_are_named() {
    let empty = folder(&[("notes.txt", String::new())]);
    let wrong = folder(&[
        (
            "h.csv",
            "test,run,started_at,status\na,1,2026-11-20T08:00:00Z,ok\n".to_owned(),
        ),
        ("broken.xml", "<testsuite><testcase".to_owned()),
    ]);
    for (arguments, status, sentence) in [
        (
            vec!["analyze".to_owned(), path(&empty, "")],
            1,
            "no test report and no history was found",
        ),
        (
            vec!["analyze".to_owned(), path(&wrong, "h.csv")],
            1,
            "h.csv:2: status \"ok\", expected one of passed",
        ),
        (
            vec!["analyze".to_owned(), path(&wrong, "nothing.xml")],
            1,
            "no such file or folder",
        ),
        (vec!["analyze".to_owned()], 2, "PATH"),
        (
            vec![
                "analyze".to_owned(),
                path(&wrong, "h.csv"),
                "--now".to_owned(),
                "noon".to_owned(),
            ],
            2,
            "date-time",
        ),
        (
            vec![
                "analyze".to_owned(),
                path(&wrong, "h.csv"),
                "--format".to_owned(),
                "docx".to_owned(),
            ],
            2,
            "auto, csv",
        ),
        (
            vec![
                "analyze".to_owned(),
                path(&wrong, "h.csv"),
                "--output".to_owned(),
                "pdf".to_owned(),
            ],
            2,
            "html",
        ),
    ] {
        let output = cli().run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?}: {}",
            stderr_text(&output)
        );
        assert!(
            stderr_text(&output).contains(sentence),
            "{arguments:?}: {}",
            stderr_text(&output)
        );
        assert!(output.stdout.is_empty());
    }
}

/// A TRX file of two tests; `Rounds` has this outcome.
fn trx(start: &str, rounds: &str) -> String {
    let result = |name: &str, outcome: &str| {
        format!(
            "<UnitTestResult testId='{name}' testName='{name}' outcome='{outcome}' startTime='{start}' duration='00:00:00.5'/>"
        )
    };
    format!(
        "<TestRun><Times start='{start}' finish='{start}'/><Results>{}{}</Results></TestRun>",
        result("Adds", "Passed"),
        result("Rounds", rounds)
    )
}

fn analyzed(files: &[(String, String)], more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let folder = path(&folder, "");
    let mut arguments = vec!["analyze", &*folder, "--now", "2026-11-14T00:00:00Z"];
    arguments.extend(more);
    cli().json(&arguments)
}

#[test]
fn the_legs_of_a_build_are_variants_of_one_run() {
    for (net48, net8) in [
        ("builds/{}/shop_net48.trx", "builds/{}/shop_net8.0.trx"),
        ("builds/{}/net48/shop.trx", "builds/{}/net8.0/shop.trx"),
        ("shop_net48-{}.trx", "shop_net8.0-{}.trx"),
    ] {
        let files: Vec<(String, String)> = (1..13)
            .flat_map(|build| {
                let name = |pattern: &str| pattern.replace("{}", &format!("{build:02}"));
                [
                    (
                        name(net48),
                        trx(&format!("2026-11-{build:02}T09:00:00Z"), "Failed"),
                    ),
                    (
                        name(net8),
                        trx(&format!("2026-11-{build:02}T09:00:40Z"), "Passed"),
                    ),
                ]
            })
            .collect();
        let joined = analyzed(&files, &[]);
        assert_eq!(
            (&joined["runs"], statuses(&joined)),
            (&12.into(), vec![("Rounds", "broken"), ("Adds", "healthy")])
        );
        let apart = analyzed(&files, &["--one-run-per-file"]);
        assert_eq!(
            (&apart["runs"], statuses(&apart)[0]),
            (&24.into(), ("Rounds", "flaky"))
        );
    }
}

/// Surefire writes a file for each class into one folder, which is one run.
#[test]
fn folders_of_files_that_are_one_run_are_legs_of_a_build() {
    let class = |class: &str, time: &str, passes: bool| {
        let failure = if passes {
            ""
        } else {
            "<failure message='off by one'/>"
        };
        format!(
            "<testsuite name='shop.{class}' tests='1' timestamp='{time}'><testcase classname='shop.{class}' \
             name='adds' time='0.5'>{failure}</testcase></testsuite>"
        )
    };
    let files: Vec<(String, String)> = (1..13)
        .flat_map(|day| {
            ["linux", "windows"].map(|leg| {
                let time = format!("2026-11-{day:02}T09:00:00Z");
                ["Cart", "Order"].map(|name| {
                    let passes = name == "Cart" || leg == "linux";
                    (
                        format!("{day:02}/{leg}/TEST-shop.{name}.xml"),
                        class(name, &time, passes),
                    )
                })
            })
        })
        .flatten()
        .collect();
    let joined = analyzed(&files, &[]);
    assert_eq!(
        (&joined["runs"], statuses(&joined)),
        (
            &12.into(),
            vec![("shop.Order > adds", "broken"), ("shop.Cart > adds", "healthy")]
        )
    );
    assert_eq!(analyzed(&files, &["--one-run-per-file"])["runs"], 24);
}

#[test]
fn a_warning_says_that_too_many_reports_were_not_compared() {
    // Names without a number.
    let leg = |leg: usize| {
        let report = trx(&format!("2026-11-13T09:00:{leg:02}Z"), "Passed");
        (format!("{}.trx", "x".repeat(leg)), report)
    };
    let legs: Vec<(String, String)> = (1..=33).map(leg).collect();
    let legs: Vec<_> = legs
        .iter()
        .map(|(name, report)| (name.as_str(), report.clone()))
        .collect();
    for (count, arguments, runs, is_warned) in [
        (32, &[][..], 1, false),
        (33, &[], 33, true),
        (33, &["--one-run-per-file"], 33, false),
    ] {
        let folder = folder(&legs[..count]);
        let reports = folder.path().display().to_string();
        let output = cli().run(&[&["analyze", &reports, "--json"], arguments].concat());
        let analysis: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(analysis["runs"], runs, "{count} {arguments:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr.contains("33 reports in"), is_warned, "{stderr}");
    }
}

#[test]
fn reports_that_may_be_of_different_builds_are_runs_of_their_own() {
    let at = |time: &str| trx(&format!("2026-11-13T{time}Z"), "Passed");
    let other = at("09:10:00")
        .replace("Adds", "Subtracts")
        .replace("Rounds", "Halves");
    for (one, other, second) in [
        // Numbers count builds.
        ("run-1.trx", "run-2.trx", at("09:10:00")),
        ("builds/12/r.trx", "builds/13/r.trx", at("09:10:00")),
        // More than an hour apart, and without a test in common.
        ("linux.trx", "windows.trx", at("10:01:00")),
        ("unit.trx", "e2e.trx", other),
    ] {
        let files = [(one.to_owned(), at("09:00:00")), (other.to_owned(), second)];
        assert_eq!(analyzed(&files, &[])["runs"], 2, "{one} {other}");
    }
    let legs = [
        ("linux.trx".to_owned(), at("09:00:00")),
        ("windows.trx".to_owned(), at("09:59:00")),
    ];
    assert_eq!(analyzed(&legs, &[])["runs"], 1);
}

#[test]
fn a_rerun_of_failed_tests_is_a_part_of_the_run_that_it_repeats() {
    let rerun = "<TestRun><Times start='2026-11-13T09:05:00Z' finish='2026-11-13T09:05:01Z'/><Results><UnitTestResult \
                 testId='Rounds' testName='Rounds' outcome='Passed' startTime='2026-11-13T09:05:00Z' \
                 duration='00:00:00.5'/></Results></TestRun>";
    let files = [
        ("13/a.trx".to_owned(), trx("2026-11-13T09:00:00Z", "Failed")),
        ("13/b.trx".to_owned(), rerun.to_owned()),
    ];
    let analysis = analyzed(&files, &[]);
    assert_eq!(analysis["runs"], 1);
    let rounds = &analysis["tests"]
        .as_array()
        .unwrap()
        .iter()
        .find(|test| test["testName"] == "Rounds")
        .unwrap();
    assert_eq!(rounds["lastRun"]["status"], "passed", "{rounds}");
}

#[test]
fn a_history_of_names_that_change_is_that_of_one_test() {
    let mut csv = String::from("test,run,started_at,status\n");
    for run in 1..13_u32 {
        let status = if run.is_multiple_of(4) { "failed" } else { "passed" };
        let (day, address) = (days(run), 0x7f3a_1c1d_2e30_u64 + u64::from(run) * 7_919);
        csv += &format!("eq #<Cart:{address:#x}>,run-{run},{day},{status}\n");
        csv += &format!("adds,run-{run},{day},passed\n");
        // Two such names in one run are two executions, and no retry.
        csv += &format!("twice #<Cart:{address:#x}>,run-{run},{day},failed\n");
        csv += &format!("twice #<Cart:{:#x}>,run-{run},{day},passed\n", address + 64);
    }
    let folder = folder(&[("history.csv", csv)]);
    let file = path(&folder, "history.csv");
    let analysis = cli().json(&["analyze", &file]);
    let mut found = statuses(&analysis);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("adds", "healthy"),
            ("eq #<Cart:<address>>", "flaky"),
            // One of two executions passed in every run: the code cannot be broken.
            ("twice #<Cart:<address>>", "broken"),
        ]
    );
    let written = cli().json(&["analyze", &file, "--written-names"]);
    assert_eq!(written["tests"].as_array().unwrap().len(), 1 + 12 + 24);
}
