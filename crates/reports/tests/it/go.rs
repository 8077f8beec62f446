//! `go test -json`: files without events, and long outputs. testdata/readings has further cases.

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
