//! Visual Studio's results: a report with every outcome, and files of other formats.

use assay_domain::run::RunState;
use assay_reports::{Format, Options, ReadError, Report};

use crate::{
    render::render,
    support::{self, inline, rooted},
};

fn sample() -> String {
    String::from_utf8(support::file("samples/mstest.trx").bytes).unwrap()
}

fn read(text: &str) -> Result<Report, ReadError> {
    let options = Options {
        format: Some(Format::Trx),
        ..Options::default()
    };
    assay_reports::read(vec![inline("r.trx", text)], &options)
}

#[test]
fn every_outcome_is_read() {
    let marked = inline("r.trx", format!("\u{feff}{}", sample()));
    insta::assert_snapshot!(
        "trx-mstest",
        render(&rooted(vec![marked], "/home/runner/work/shop"))
    );
}

#[test]
fn a_cut_off_file_keeps_its_complete_tests() {
    let whole = sample();
    let report = read(&whole[..whole.find("Skipped").unwrap()]).unwrap();
    assert_eq!(report.state, RunState::Interrupted);
    assert_eq!(report.tests.len(), 2);
}

#[test]
fn other_files_are_refused() {
    for (text, expected) in [
        (
            "",
            "r.trx:1: not a readable TRX report: the file is empty; expected <TestRun>",
        ),
        (
            "<testsuites/>",
            "expected <TestRun> as the root, found <testsuites>",
        ),
        (
            "<TestRun><Results></TestRun>",
            "expected </Results>, found </TestRun>",
        ),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
