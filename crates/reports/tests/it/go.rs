//! `go test -json`: streams of events that are cut off, broken or mixed with output.

use assay_domain::{attempt::AttemptStatus, run::RunState};
use assay_reports::{Format, Options};

use crate::{render::render, support::inline};

fn read_as_go(text: &str) -> Result<assay_reports::Report, assay_reports::ReadError> {
    let options = Options {
        format: Some(Format::Go),
        ..Options::default()
    };
    assay_reports::read(vec![inline("go.jsonl", text)], &options)
}

fn read(text: &str) -> Result<String, String> {
    read_as_go(text)
        .map(|report| render(&report))
        .map_err(|error| error.to_string())
}

#[test]
fn a_group_that_fails_by_itself_is_a_test() {
    let event = |action: &str, test: &str| {
        format!("{{\"Action\":\"{action}\",\"Package\":\"p\",\"Test\":\"{test}\"}}\n")
    };
    let stream = [
        event("run", "TestA"),
        event("run", "TestA/x"),
        event("pass", "TestA/x"),
        event("fail", "TestA"),
        event("run", "TestB"),
        event("run", "TestB/x"),
        event("pass", "TestB/x"),
        event("pass", "TestB"),
        "{\"Action\":\"fail\",\"Package\":\"p\"}\n".to_owned(),
    ]
    .concat();
    let report = read_as_go(&stream).unwrap();
    let tests: Vec<&str> = report.tests.iter().map(|test| test.test.name.as_str()).collect();
    assert_eq!(tests, ["p > TestA", "p > TestA/x", "p > TestB/x"]);
}

#[test]
fn a_package_from_the_cache_marks_its_report() {
    for (end, is_cached) in [("(cached)", true), ("0.003s", false)] {
        let stream = format!(
            "{{\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"TestA\"}}\n\
             {{\"Action\":\"output\",\"Package\":\"p\",\"Output\":\"ok  \\tp\\t{end}\\n\"}}\n\
             {{\"Action\":\"pass\",\"Package\":\"p\"}}\n"
        );
        assert_eq!(read_as_go(&stream).unwrap().is_cached, is_cached, "{end}");
    }
}

#[test]
fn a_stream_that_is_cut_off_marks_its_run() {
    let stream = "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"TestA\"}\n\
                  {\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"TestA\"}\n\
                  {\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"TestB\"}\n{\"Action\":\"outp";
    let report = read_as_go(stream).unwrap();
    assert_eq!(report.state, RunState::Interrupted);
    let statuses: Vec<AttemptStatus> = report.tests.iter().map(|test| test.attempts[0].status).collect();
    assert_eq!(statuses, [AttemptStatus::Passed, AttemptStatus::Interrupted]);
}

/// As Go 1.27 writes them. The tests after `TestB` did not run.
#[test]
fn a_package_that_ends_within_its_tests_marks_its_run() {
    let stream = |output: &[&str], test_ended: bool| {
        let event = |action: &str, test: &str, output: &str| {
            format!(
                "{}\n",
                serde_json::json!({"Action": action, "Package": "p", "Test": test, "Output": output})
            )
        };
        let mut stream = event("run", "TestA", "") + &event("pass", "TestA", "") + &event("run", "TestB", "");
        if test_ended {
            stream += &event("output", "TestB", "--- FAIL: TestB (0.00s)\n");
            stream += &event("fail", "TestB", "");
        }
        for line in output {
            stream += &event("output", if *line == "FAIL\n" { "" } else { "TestB" }, line);
        }
        stream + &event("output", "", "FAIL\tp\t0.002s\n") + &event("fail", "", "")
    };
    for (output, test_ended, state) in [
        (["signal: killed\n"].as_slice(), false, RunState::Interrupted),
        (&["exit status 3\n"], false, RunState::Interrupted),
        (
            &["panic: nil map [recovered, repanicked]\n", "\n"],
            true,
            RunState::Interrupted,
        ),
        (&["FAIL\n", "exit status 1\n"], true, RunState::Completed),
        // A test that prints the panic from which it recovers.
        (&["panic: caught\n", "FAIL\n"], true, RunState::Completed),
    ] {
        let report = read_as_go(&stream(output, test_ended)).unwrap();
        assert_eq!(report.state, state, "{output:?}");
        let statuses: Vec<AttemptStatus> = report.tests.iter().map(|test| test.attempts[0].status).collect();
        assert_eq!(
            statuses,
            [AttemptStatus::Passed, AttemptStatus::Failed],
            "{output:?}"
        );
    }
}

#[test]
fn a_file_that_is_no_stream_of_events_is_an_error() {
    for (text, expected) in [
        (
            "",
            "go.jsonl:1: not a readable go test -json report: expected an event on each line, found none",
        ),
        ("ok  \tp\t0.1s\n", "found none"),
        (
            "\n{\"a\": 1}\n",
            "go.jsonl:1: not a readable go test -json report: expected an event on each line, found none",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn stored_outputs_are_bounded() {
    let line = format!(
        "{{\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"T\",\"Output\":\"{}\\n\"}}\n",
        "x".repeat(1000)
    );
    let mut stream = "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"T\"}\n".to_owned();
    stream.push_str(&line.repeat(2_000));
    stream.push_str(
        "{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"T\"}\n{\"Action\":\"fail\",\"Package\":\"p\"}\n",
    );
    let report = read_as_go(&stream).unwrap();
    let error = &report.tests[0].attempts[0].errors[0];
    assert!(error.message.as_ref().unwrap().len() < 20_000);
    assert!(error.stack.as_ref().unwrap().len() < 40_000);
}
