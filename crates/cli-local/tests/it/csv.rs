//! CSV histories.

use assay_cli_local::analysis::{Analysis, Collector, read_csv};

pub(crate) fn analyze(text: &str) -> Analysis {
    let mut collector = Collector::new("main");
    read_csv(&mut collector, "h.csv", text.as_bytes()).unwrap();
    collector.judge(None).unwrap()
}

fn error_of(text: &str) -> String {
    read_csv(&mut Collector::new("main"), "h.csv", text.as_bytes())
        .unwrap_err()
        .to_string()
}

/// Ten runs: `steady` passes, `rescued` passes on retry in two runs, `red` fails from the seventh run on.
pub(crate) fn small_history() -> String {
    let mut text = String::from("duration_ms,status,retry,test,run,started_at,file,revision,ignored\n");
    for run in 0..10 {
        let at = format!("2026-11-{:02}T08:00:00Z", 10 + run);
        let mut row = |test: &str, status: &str, retry: u32, ms: u32| {
            text += &format!(
                "{ms},{status},{retry},{test},{},{at},shop.spec.ts,rev{run},x\n",
                400 + run
            );
        };
        row("shop > steady", "passed", 0, 20);
        if run % 5 == 3 {
            row("shop > rescued", "failed", 0, 1_500);
            row("shop > rescued", "passed", 1, 400);
        } else {
            row("shop > rescued", "passed", 0, 380);
        }
        row(
            "shop > red",
            if run < 6 { "passed" } else { "timedOut" },
            0,
            3_000,
        );
        row("shop > idle", "skipped", 0, 0);
    }
    text
}

#[test]
fn a_small_history_as_json() {
    let analysis = analyze(&small_history());
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_json_snapshot!("small_history", analysis);
    });
}

#[test]
fn without_a_retry_column_the_order_of_rows_decides() {
    let analysis = analyze(
        "test,run,started_at,status\na,1,2026-11-20T08:00:00Z,failed\na,1,2026-11-20T08:00:05Z,passed\n",
    );
    let entry = &analysis.tests[0].entry;
    assert_eq!(entry.figures.failure_rate, Some(1.0));
    assert_eq!(entry.last_run.as_ref().unwrap().status.as_str(), "passed");
    assert_eq!(
        entry.last_run.as_ref().unwrap().started_at.to_string(),
        "2026-11-20T08:00:00.000Z"
    );
    assert_eq!(
        entry.last_seen_at.unwrap().to_string(),
        "2026-11-20T08:00:05.000Z",
        "the final attempt's own start"
    );
}

#[test]
fn without_branches_every_run_is_on_the_stable_one() {
    let row = |run: u32| format!("a,{run},2026-11-{run:02}T08:00:00Z,failed\n");
    let text: String = (1..8).map(row).collect();
    let without = analyze(&format!("test,run,started_at,status\n{text}"));
    assert_eq!(without.tests[0].entry.status.as_str(), "broken");
    let on_branch = |branch: &str| {
        let rows: String = text.lines().map(|line| format!("{line},{branch}\n")).collect();
        analyze(&format!("test,run,started_at,status,branch\n{rows}"))
    };
    assert_eq!(
        on_branch("main").tests[0].entry.figures,
        without.tests[0].entry.figures
    );
    assert_ne!(on_branch("feature").tests[0].entry.status.as_str(), "broken");
}

#[test]
fn times_may_lack_a_zone_or_be_numbers() {
    for at in [
        "2026-11-20 08:00:00",
        "2026-11-20T08:00:00",
        "1795161600",
        "1795161600000",
        "2026-11-20T09:00:00+01:00",
    ] {
        let analysis = analyze(&format!("test,run,started_at,status\na,1,{at},passed\n"));
        assert_eq!(analysis.now.to_string(), "2026-11-20T08:00:00.000Z", "{at}");
    }
}

#[test]
fn an_invalid_row_is_reported_with_its_line_and_the_expected_value() {
    const HEAD: &str = "test,run,started_at,status,retry,duration_ms,branch\n";
    for (row, line, expected) in [
        (
            "a,1,2026-11-20T08:00:00Z,passed,0,1,main\na,1,yesterday,passed,0,1,main",
            3,
            "started_at \"yesterday\", expected a date-time",
        ),
        (
            "a,1,2026-11-20T08:00:00Z,ok,0,1,main",
            2,
            "status \"ok\", expected one of passed, failed, timedOut",
        ),
        (
            "a,1,2026-11-20T08:00:00Z,passed,-1,1,main",
            2,
            "retry \"-1\", expected a whole number",
        ),
        (
            "a,1,2026-11-20T08:00:00Z,passed,0,soon,main",
            2,
            "duration_ms \"soon\", expected milliseconds",
        ),
        (
            "a,1,2026-11-20T08:00:00Z,passed,0,-4,main",
            2,
            "duration_ms \"-4\", expected milliseconds",
        ),
        (",1,2026-11-20T08:00:00Z,passed,0,1,main", 2, "test is empty"),
        (
            "a,1,2026-11-20T08:00:00Z,passed,0",
            2,
            "the row has 5 columns, expected 7",
        ),
        (
            "\"a\nb\",1,2026-11-20T08:00:00Z,passed,0,1,main\na,1,2026-11-20T08:00:00Z,passed,0,1,other",
            4,
            "branch \"other\", but the run \"1\" has \"main\"",
        ),
    ] {
        let message = error_of(&format!("{HEAD}{row}\n"));
        assert!(message.starts_with(&format!("h.csv:{line}: ")), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    assert!(error_of("run,started_at,status\n").contains("no column \"test\""));
    assert!(error_of("").contains("no column \"test\""));
    assert!(error_of("test,run,started_at,status,test\n").contains("\"test\" twice"));
}

#[test]
fn runs_outside_of_the_window_are_ignored() {
    let mut collector = Collector::new("main");
    let text =
        "test,run,started_at,status\nold,1,2026-01-01T08:00:00Z,failed\nnew,2,2026-11-20T08:00:00Z,passed\n";
    read_csv(&mut collector, "h.csv", text.as_bytes()).unwrap();
    let analysis = collector.judge(None).unwrap();
    assert_eq!(
        (analysis.runs, analysis.runs_read, analysis.tests.len()),
        (1, 2, 1)
    );
    let earlier = collector
        .judge(Some("2026-01-02T00:00:00Z".parse().unwrap()))
        .unwrap();
    assert_eq!(earlier.tests[0].entry.test_name, "old");
    let none = collector
        .judge(Some("2026-06-01T00:00:00Z".parse().unwrap()))
        .unwrap_err()
        .to_string();
    assert!(
        none.contains("none of the 2 runs") && none.contains("2026-11-20T08:00:00.000Z"),
        "{none}"
    );
    assert_eq!(
        Collector::new("main").judge(None).unwrap_err().to_string(),
        "no run was read; the files contain no results of tests"
    );
}
