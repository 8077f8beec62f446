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
    for warning in &report.warnings {
        writeln!(out, "warning: {warning}").unwrap();
    }
    for error in &report.errors {
        writeln!(out, "error: {}", error_line(error)).unwrap();
    }
    for test in &report.tests {
        test_lines(&mut out, test);
    }
    out
}

fn test_lines(out: &mut String, test: &ReportedTest) {
    let file = test.test.file_path.as_deref().unwrap_or("-");
    writeln!(out, "\n{} [{file}]", test.test.name.escape_debug()).unwrap();
    for attempt in &test.attempts {
        writeln!(out, "  {}", attempt_line(attempt)).unwrap();
        for error in &attempt.errors {
            writeln!(out, "    {}", error_line(error)).unwrap();
        }
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
    line
}

fn error_line(error: &ErrorDetail) -> String {
    let short = |text: &str| {
        let text = text.escape_debug().to_string();
        if text.chars().count() <= 240 {
            text
        } else {
            text.chars().take(240).collect::<String>() + "…"
        }
    };
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
