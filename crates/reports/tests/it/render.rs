//! Renders a report as text, one line per attempt, for snapshots that a person can check.

use std::fmt::Write as _;

use assay_domain::attempt::{Attempt, AttemptStatus, ErrorDetail};
use assay_reports::{Report, ReportedTest};

/// The report as text.
pub(crate) fn render(report: &Report) -> String {
    let mut out = String::new();
    let counts = counts(report);
    writeln!(out, "{} {}, {counts}", report.format, report.state).unwrap();
    let time =
        |at: Option<assay_domain::timestamp::Timestamp>| at.map_or_else(|| "?".into(), |at| at.to_string());
    writeln!(
        out,
        "from {} to {}",
        time(report.started_at),
        time(report.finished_at)
    )
    .unwrap();
    if let Some(shard) = report.shard {
        writeln!(out, "shard {} of {:?}", shard.index, shard.total).unwrap();
    }
    if let Some(key) = &report.run_key {
        writeln!(out, "run key {key}").unwrap();
    }
    if report.context != Default::default() {
        writeln!(out, "{:#?}", report.context).unwrap();
    }
    if report.is_cached {
        writeln!(out, "from a cache").unwrap();
    }
    for warning in &report.warnings {
        writeln!(out, "warning: {warning}").unwrap();
    }
    for error in &report.errors {
        writeln!(out, "error: {}", error_line(error)).unwrap();
    }
    if let Some(duration) = report.duration_ms {
        writeln!(out, "{duration} ms at an unknown time").unwrap();
    }
    for test in &report.tests {
        test_lines(&mut out, test);
    }
    out
}

fn test_lines(out: &mut String, test: &ReportedTest) {
    let file = test.test.file_path.as_deref().unwrap_or("-");
    writeln!(out, "\n{} [{file}]", test.test.name.escape_debug()).unwrap();
    if let Some(name) = &test.shown_as.name {
        writeln!(out, "  written as {}", name.escape_debug()).unwrap();
    }
    if let Some(file) = &test.shown_as.file_path {
        writeln!(out, "  found in {file}").unwrap();
    }
    for (number, attempts) in test.attempts.executions().enumerate() {
        if number > 0 {
            writeln!(out, "  executed again").unwrap();
        }
        for attempt in attempts {
            attempt_lines(out, attempt);
        }
    }
}

fn attempt_lines(out: &mut String, attempt: &Attempt) {
    writeln!(out, "  {}", attempt_line(attempt)).unwrap();
    for error in &attempt.errors {
        writeln!(out, "    {}", error_line(error)).unwrap();
    }
    let Some(output) = &attempt.output else { return };
    for file in &output.attachments {
        let place = file.path.as_ref().or(file.url.as_ref());
        let place = place.map_or("nowhere", String::as_str);
        let kind = file.kind.as_deref().unwrap_or("file");
        writeln!(out, "    {kind} {} in {place}", file.name.escape_debug()).unwrap();
    }
    if let Some(console) = &output.console {
        writeln!(out, "    printed {}", shortened(console, 2_000)).unwrap();
    }
    if let Some(limit) = output.timeout_ms {
        writeln!(out, "    may take {limit} ms").unwrap();
    }
}

fn attempt_line(attempt: &Attempt) -> String {
    let mut line = attempt.status.to_string();
    if let Some(duration) = attempt.duration_ms {
        write!(line, " {duration} ms").unwrap();
    }
    if let Some(at) = attempt.started_at {
        write!(line, " at {}", &at.to_string()[11..]).unwrap();
    }
    if let Some(browser) = &attempt.browser {
        write!(line, " in {browser}").unwrap();
    }
    if let Some(reason) = &attempt.skip_reason {
        write!(line, " because {}", short(reason)).unwrap();
    }
    line
}

fn short(text: &str) -> String {
    shortened(text, 240)
}

fn shortened(text: &str, characters: usize) -> String {
    let text = text.escape_debug().to_string();
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn error_line(error: &ErrorDetail) -> String {
    let mut line = error
        .message
        .as_deref()
        .map_or_else(|| "(no message)".into(), short);
    if let Some(at) = &error.location {
        write!(
            line,
            "  @ {}:{}:{}",
            at.file,
            at.line.unwrap_or(0),
            at.column.unwrap_or(0)
        )
        .unwrap();
    }
    if let Some(snippet) = &error.snippet {
        let marked = snippet.lines().find(|line| line.starts_with('>')).unwrap_or("?");
        write!(
            line,
            "  | frame of {} lines: {}",
            snippet.lines().count(),
            short(marked)
        )
        .unwrap();
    }
    if let Some(stack) = &error.stack {
        let last = stack.lines().last().unwrap_or_default().trim();
        write!(
            line,
            "  | stack of {} lines: … {}",
            stack.lines().count(),
            short(last)
        )
        .unwrap();
    }
    line
}

fn counts(report: &Report) -> String {
    let (mut passed, mut failed, mut skipped, mut recovered) = (0, 0, 0, 0);
    for test in &report.tests {
        let outcome = test.outcome().unwrap();
        match outcome.status {
            AttemptStatus::Passed => passed += 1,
            AttemptStatus::Failed | AttemptStatus::TimedOut => failed += 1,
            AttemptStatus::Skipped | AttemptStatus::Interrupted => skipped += 1,
        }
        recovered += usize::from(outcome.recovered);
    }
    let total = report.tests.len();
    format!("{total} tests: {passed} passed ({recovered} recovered), {failed} failed, {skipped} skipped")
}
