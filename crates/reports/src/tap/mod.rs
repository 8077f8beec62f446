//! The Test Anything Protocol, versions 12 to 14, with the subtests and diagnostics of Node, node-tap, Mocha and Perl.

mod diagnostics;
mod line;

pub(crate) use self::line::{is_failure_of_run, total};

use std::borrow::Cow;

use assay_domain::{
    attempt::{Attempt, AttemptStatus},
    run::RunState,
};

use self::{
    diagnostics::Diagnostics,
    line::{Line, Outcome, TapResult, is_result, is_summary, plan},
};
use crate::{
    collect::{Collector, named},
    failure,
    header::missing_failures,
    hooks,
    input::Input,
    limits, memory, paths,
    report::{Format, ReadError, Report},
    text,
};

/// The format's name in messages.
const FORMAT: &str = "TAP";

/// What a result takes until the end of the file, beside its texts.
const RESULT: usize = 384;

/// Reads a file. Fails if it has no result, no plan, no bail-out and no version.
pub(crate) fn read(input: &Input<'_>) -> Result<Report, ReadError> {
    let mut reader = TapReader::default();
    let mut yaml: Option<usize> = None;
    let mut lines = input.text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let may_be_cut = lines.peek().is_none() && !input.text.ends_with('\n');
        // A result that is cut off would have the name of another test.
        if may_be_cut
            && reader.planned != Some(reader.outer_results + 1)
            && matches!(Line::of(line.trim()), Line::Result(..))
        {
            break;
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        if let Some(begun) = yaml {
            if line.trim() == "..." && indent == begun {
                yaml = None;
            } else {
                memory::hold(line.len());
                reader.push_note(line.get(begun.min(indent)..).unwrap_or_default());
            }
            continue;
        }
        if line.trim() == "---" && reader.is_after_result() {
            yaml = Some(indent);
            reader.begin_yaml();
            continue;
        }
        memory::hold(RESULT.saturating_add(line.len()));
        reader.line(line, indent);
        memory::check(input.name)?;
        input.check_tests(reader.results, || number + 1)?;
    }
    let is_empty = reader.results == 0 && reader.planned.is_none() && reader.bail_out_reason.is_none();
    if is_empty && !reader.has_version {
        return Err(input.broken(1, FORMAT, "expected `ok` or `not ok` on a line, found none"));
    }
    Ok(reader.finish(input))
}

/// Whether a text certainly begins with the protocol.
pub(crate) fn begins(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("TAP version 1") || plan(first.trim_end()).is_some() || is_result(first)
}

/// Whether a text contains results of the protocol between other text.
pub(crate) fn is_among_other_text(text: &str) -> bool {
    let ends = |line: &str| {
        matches!(
            Line::of(line.trim_end()),
            Line::Plan(_) | Line::Failure(_) | Line::BailOut(_)
        )
    };
    text.lines().any(is_result) && text.lines().any(ends)
}

/// A text without the back slashes that tools write before `#`.
fn unescaped(text: &str) -> Cow<'_, str> {
    match memchr::memchr(b'\\', text.as_bytes()) {
        Some(_) => Cow::Owned(text.replace("\\#", "#")),
        None => Cow::Borrowed(text),
    }
}

/// A result with the results of its subtests.
#[derive(Debug, Default)]
struct TestPoint {
    title: String,
    outcome: Option<Outcome>,
    duration_ms: Option<f64>,
    skip_reason: Option<String>,
    notes: Diagnostics,
    subtests: Vec<TestPoint>,
    browser: Option<String>,
    /// The script that prove named, of an outer result.
    script: Option<String>,
}

/// Reads one file.
#[derive(Debug, Default)]
struct TapReader {
    /// The results, by depth. Results of subtests precede the result of their test.
    levels: Vec<Vec<TestPoint>>,
    /// The depth of the latest result. Diagnostics that follow belong to it.
    latest_depth: Option<usize>,
    results: usize,
    /// The sum of all plans of the outermost level.
    planned: Option<u64>,
    outer_results: u64,
    /// Failed results, tests of subtests included.
    failures: u64,
    /// Results that are `not ok` and to do.
    failed_todos: u64,
    /// The number of failures in the comments at the end.
    counted_failures: u64,
    /// The same of results to do, if the tool counts them apart.
    counted_todos: u64,
    /// What prove or Test::More says about a script that failed.
    failure: String,
    bail_out_reason: Option<String>,
    has_version: bool,
    /// The latest outer line is a plan behind results: what follows is about the run.
    has_ended: bool,
    /// Comments that do not belong to the latest result. Node writes the output of a file that fails to load there.
    comments: Diagnostics,
    /// The script that prove named.
    script: String,
}

impl TapReader {
    fn line(&mut self, line: &str, indent: usize) {
        // Subtests are indented by four spaces. Text outside of the protocol belongs to the result before it.
        let depth = indent / 4;
        match Line::of(line.trim()) {
            // prove writes it after the results of a script that passed.
            Line::Result(_)
                if line == "ok" && !self.script.is_empty() && self.planned == Some(self.outer_results) => {}
            Line::Result(result) if depth < limits::DEPTH => self.result(depth, &result),
            Line::Failure(line) => {
                line.clone_into(&mut self.failure);
                self.latest_depth = None;
            }
            Line::Plan(count) => {
                if depth == 0 {
                    self.has_ended = self.outer_results > 0;
                    self.planned = Some(self.planned.unwrap_or(0).saturating_add(count));
                }
            }
            Line::BailOut(reason) => self.bail_out_reason = Some(reason.to_owned()),
            Line::Script(script) if depth == 0 => {
                self.script = script.to_owned();
                self.latest_depth = None;
            }
            Line::Subtest => self.latest_depth = None,
            Line::Comment(comment) if is_summary(comment) => {
                self.latest_depth = None;
                match total(comment).filter(|_| depth == 0) {
                    Some(("fail" | "cancelled", tests)) => self.counted_failures += tests,
                    Some(("todo", tests)) => self.counted_todos += tests,
                    _ => {}
                }
            }
            Line::Comment(comment) if depth == 0 && self.has_ended && is_failure_of_run(comment) => {
                comment.clone_into(&mut self.failure);
            }
            Line::Comment(comment) => match self.latest_depth {
                Some(_) => self.push_note(comment),
                None => self.comments.push(comment),
            },
            Line::Other if self.latest_depth.is_some() => self.push_note(line.trim_end()),
            Line::Version => self.has_version = true,
            Line::Script(_) | Line::Other | Line::Result(..) => {}
        }
    }

    fn result(&mut self, depth: usize, result: &TapResult<'_>) {
        let subtests: Vec<TestPoint> = self
            .levels
            .drain((depth + 1).min(self.levels.len())..)
            .flatten()
            .collect();
        while self.levels.len() <= depth {
            self.levels.push(Vec::new());
        }
        let mut title = unescaped(result.title).into_owned();
        let (mut browser, mut duration_ms) = (None, result.duration_ms);
        if let Some((platform, milliseconds, rest)) = line::testem(&title) {
            browser = text::title(platform);
            duration_ms = duration_ms.or(Some(milliseconds));
            title = format!("{platform}{}{rest}", text::JOINT);
        }
        let title = if depth == 0 && !self.script.is_empty() && memory::charge(2 * self.script.len()) {
            format!("{}{}{title}", self.script, text::JOINT)
        } else {
            title
        };
        let point = TestPoint {
            title,
            outcome: Some(result.outcome),
            duration_ms,
            skip_reason: text::skip_reason(&unescaped(result.reason)),
            // Comments before a failed result may hold its error. Those of a passed result are not read.
            notes: std::mem::take(&mut self.comments),
            subtests,
            browser,
            script: (depth == 0 && !self.script.is_empty()).then(|| self.script.clone()),
        };
        if let Some(level) = self.levels.get_mut(depth) {
            level.push(point);
        }
        self.results += 1;
        self.has_ended &= depth > 0;
        self.failures += u64::from(result.outcome == Outcome::Failed);
        self.failed_todos += u64::from(result.outcome == Outcome::FailedTodo);
        self.outer_results += u64::from(depth == 0);
        self.latest_depth = Some(depth);
    }

    /// Whether a block of diagnostics may begin.
    fn is_after_result(&self) -> bool {
        self.latest_depth.is_some()
    }

    fn latest_result(&mut self) -> Option<&mut TestPoint> {
        self.levels.get_mut(self.latest_depth?)?.last_mut()
    }

    fn begin_yaml(&mut self) {
        if let Some(point) = self.latest_result() {
            point.notes.begin_yaml();
        }
    }

    fn push_note(&mut self, line: &str) {
        if let Some(point) = self.latest_result() {
            point.notes.push(line);
        }
    }

    fn finish(mut self, input: &Input<'_>) -> Report {
        let mut report = Report::empty(Format::Tap);
        let mut tests = Collector::default();
        // Inner results without an outer one after them lack the outer names: the report ends within their test.
        let outer = std::mem::take(&mut self.levels).into_iter().next();
        for point in outer.into_iter().flatten() {
            let file = point.script.as_deref().map(|script| input.stored_path(script));
            point.collect(input, file.as_deref(), &mut Vec::new(), &mut tests, &mut report);
        }
        report.tests = tests.finish();
        // AVA counts them as failures.
        let todos = self.failed_todos.saturating_sub(self.counted_todos);
        let missing = missing_failures(input.name, self.counted_failures, self.failures + todos);
        report.errors.extend(missing);
        report.check_summary(input.name, !self.failure.is_empty(), &self.failure);
        if let Some(reason) = &self.bail_out_reason {
            report.state = RunState::Interrupted;
            let message = format!("Bail out! {reason}");
            report
                .errors
                .extend(input.error(Some(message.trim()), None, None));
        } else {
            let problem = match self.planned {
                Some(planned) if planned == self.outer_results => None,
                Some(planned) => Some(format!(
                    "it plans {planned} results and has {}",
                    self.outer_results
                )),
                None => Some("it has no plan".to_owned()),
            };
            if let Some(problem) = problem {
                report.state = RunState::Interrupted;
                report.warnings.push(format!(
                    "{}: the report is incomplete: {problem}; its results were read",
                    input.name
                ));
            }
        }
        report
    }
}

impl TestPoint {
    /// Adds its tests. A result with subtests is a test only if it failed and none of them did. Returns whether one failed.
    fn collect(
        self,
        input: &Input<'_>,
        file: Option<&str>,
        titles: &mut Vec<String>,
        tests: &mut Collector,
        report: &mut Report,
    ) -> bool {
        let Self {
            title,
            outcome,
            duration_ms,
            skip_reason,
            notes,
            subtests,
            browser,
            script: _,
        } = self;
        let status = outcome.map_or(AttemptStatus::Failed, Outcome::status);
        let failed = status.is_failure();
        let has_subtests = !subtests.is_empty();
        let mut any_failed = false;
        titles.push(title);
        for subtest in subtests {
            any_failed |= subtest.collect(input, file, titles, tests, report);
        }
        if !has_subtests || (failed && !any_failed) {
            let diagnosis = notes.read();
            if let ([title], true) = (titles.as_slice(), failed)
                && paths::is_of_file(title, diagnosis.file())
            {
                // Node reports a file that does not load as a test.
                if report.errors.len() < limits::REPORT_ERRORS {
                    let file = input.stored_path(title);
                    let errors = diagnosis.errors(input).into_iter();
                    let errors = errors.map(|error| failure::error_of(&file, error));
                    report.errors.extend(errors);
                }
            } else if memory::charge(titles.iter().map(String::len).sum()) {
                let name = named(titles.iter().map(String::as_str), file.map(str::to_owned));
                let errors = if failed {
                    diagnosis.errors(input)
                } else {
                    Vec::new()
                };
                let status = if failed && diagnosis.is_timeout() {
                    AttemptStatus::TimedOut
                } else {
                    status
                };
                let duration = diagnosis.duration_ms().or(duration_ms);
                let duration = duration.and_then(crate::time::duration_ms);
                let attempt = failure::attempt(status, errors, duration, None).skipped_because(skip_reason);
                let attempt = Attempt { browser, ..attempt };
                if !(failed && hooks::add(tests, &mut report.errors, &name, std::slice::from_ref(&attempt))) {
                    tests.add(name, vec![attempt]);
                }
            }
        }
        if has_subtests && !any_failed && status == AttemptStatus::Passed {
            let name = named(titles.iter().map(String::as_str), file.map(str::to_owned));
            report.add_passed_groups([name]);
        }
        titles.pop();
        failed || any_failed
    }
}
