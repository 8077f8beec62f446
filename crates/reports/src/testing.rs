//! What the tests of the formats share: real reports, and a report told in one line an attempt.

use std::{fmt::Write, fs, path::Path};

use assay_domain::attempt::{Attempt, ErrorDetail, Location};

use crate::{decode, input::Input, report::{ReadError, Report, SourceFile}};

/// A report of the test data, read by the reader of its format.
pub(crate) fn read_file(
    path: &str,
    read: impl FnOnce(&Input<'_>) -> Result<Report, ReadError>,
) -> Result<Report, ReadError> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/reports").join(path);
    read_bytes(path, fs::read(file).expect("test data"), read)
}

/// Bytes, read by the reader of their format.
pub(crate) fn read_bytes(
    name: &str,
    bytes: Vec<u8>,
    read: impl FnOnce(&Input<'_>) -> Result<Report, ReadError>,
) -> Result<Report, ReadError> {
    let file = SourceFile {
        name: name.to_owned(),
        bytes,
        modified: None,
    };
    let text = decode::decode(&file)?;
    read(&Input {
        name,
        text: &text,
        root: None,
        known_files: None,
        modified: None,
    })
}

/// The report, one line an attempt.
pub(crate) fn told(report: &Report) -> String {
    let mut told = String::new();
    let time = |at: Option<assay_domain::timestamp::Timestamp>| at.map_or("?".to_owned(), |at| at.to_string());
    writeln!(
        told,
        "{:?}, {}, {} to {}",
        report.format,
        report.state,
        time(report.started_at),
        time(report.finished_at)
    )
    .unwrap();
    for warning in &report.warnings {
        writeln!(told, "warning: {warning}").unwrap();
    }
    for error in &report.errors {
        writeln!(told, "error: {}", error_line(error)).unwrap();
    }
    for test in &report.tests {
        let file = test.test.file_path.as_deref().map_or(String::new(), |file| format!(" ({file})"));
        writeln!(told, "{:?}{file}", test.test.name).unwrap();
        for attempt in &test.attempts {
            writeln!(told, "  {}", attempt_line(attempt)).unwrap();
        }
    }
    told
}

fn attempt_line(attempt: &Attempt) -> String {
    let mut line = attempt.status.to_string();
    if let Some(ms) = attempt.duration_ms {
        write!(line, " {ms} ms").unwrap();
    }
    if let Some(at) = attempt.started_at {
        write!(line, " at {at}").unwrap();
    }
    if let Some(browser) = &attempt.browser {
        write!(line, " in {browser}").unwrap();
    }
    for error in &attempt.errors {
        write!(line, " | {}", error_line(error)).unwrap();
    }
    line
}

fn error_line(error: &ErrorDetail) -> String {
    let lines = |text: &Option<String>| text.as_ref().map_or(0, |text| text.lines().count());
    let mut line = error
        .message
        .as_ref()
        .map_or("no message".to_owned(), |message| {
            let short: String = message.chars().take(160).collect();
            format!("{short:?}{}", if short.len() < message.len() { "…" } else { "" })
        });
    if let Some(Location { file, line: number, column }) = &error.location {
        write!(line, " at {file}").unwrap();
        for number in [number, column].into_iter().flatten() {
            write!(line, ":{number}").unwrap();
        }
    }
    write!(line, ", stack {}, snippet {}", lines(&error.stack), lines(&error.snippet)).unwrap();
    line
}
