//! Visual Studio test results (TRX).

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use assay_domain::attempt::{Attempt, AttemptStatus, ErrorDetail};

use crate::{
    attempt_output::Collected,
    collect::{Collector, LocatedTest},
    failure,
    input::Input,
    junit::names,
    limits, memory, outcome,
    report::{Format, Report},
    retries, text, time,
    xml::{Document, Tag, append},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run<'a> {
    /// The open results. A data-driven result contains others.
    open_results: Vec<TestResult<'a>>,
    results: Vec<TestResult<'a>>,
    /// The id of the test definition that is open.
    definition: Option<Cow<'a, str>>,
    classes: HashMap<Cow<'a, str>, Cow<'a, str>>,
    started_at: Cow<'a, str>,
    finished_at: Cow<'a, str>,
    /// The number of failed results in the summary.
    counted_failures: Option<f64>,
    /// How the run ended, by the summary.
    outcome: Cow<'a, str>,
    /// The text of an error of the run.
    notice: Option<Cow<'a, str>>,
    notices: Vec<Cow<'a, str>>,
    /// The folder of the run, beside the report.
    folder: Cow<'a, str>,
}

/// The kind of an open element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementKind {
    Result,
    Message,
    Stack,
    Output,
    Definition,
    Notice,
    NoticeText,
    Other,
}

/// A `UnitTestResult`.
#[derive(Debug, Default)]
struct TestResult<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    outcome: Option<Cow<'a, str>>,
    duration: Cow<'a, str>,
    start: Cow<'a, str>,
    message: Cow<'a, str>,
    stack: Cow<'a, str>,
    output: Cow<'a, str>,
    /// Its folder within that of the run.
    folder: Cow<'a, str>,
    files: Vec<Cow<'a, str>>,
    /// Whether it contains other results.
    has_inner_results: bool,
    /// Whether one of them failed.
    has_inner_failure: bool,
}

impl<'a> Document<'a> for Run<'a> {
    type ElementKind = ElementKind;

    const FORMAT: &'static str = "TRX";
    const ROOTS: &'static [&'static str] = &["TestRun"];

    fn begin_element(&mut self, tag: Tag<'a, '_>, _parent: Option<ElementKind>) -> ElementKind {
        let value = |name: &str| tag.attribute(name).unwrap_or_default();
        let in_result = !self.open_results.is_empty();
        match tag.name {
            "Times" => {
                self.started_at = value("start");
                self.finished_at = value("finish");
                ElementKind::Other
            }
            "UnitTestResult" => {
                self.open_results.push(TestResult {
                    id: value("testId"),
                    name: value("testName"),
                    outcome: tag.attribute("outcome"),
                    duration: value("duration"),
                    start: value("startTime"),
                    folder: value("relativeResultsDirectory"),
                    ..TestResult::default()
                });
                ElementKind::Result
            }
            "Message" if in_result => ElementKind::Message,
            "StackTrace" if in_result => ElementKind::Stack,
            "StdOut" | "StdErr" if in_result => ElementKind::Output,
            "ResultFile" => {
                if let Some(result) = self.open_results.last_mut()
                    && result.files.len() < limits::ATTACHMENTS
                {
                    result.files.push(value("path"));
                }
                ElementKind::Other
            }
            "Deployment" => {
                self.folder = value("runDeploymentRoot");
                ElementKind::Other
            }
            "UnitTest" => {
                self.definition = Some(value("id"));
                ElementKind::Definition
            }
            "TestMethod" => {
                if let Some(id) = &self.definition {
                    self.classes.insert(id.clone(), value("className"));
                }
                ElementKind::Other
            }
            "Counters" => {
                let counts = ["failed", "error", "timeout"];
                let counts = counts
                    .iter()
                    .filter_map(|name| value(name).trim().parse::<f64>().ok());
                self.counted_failures = Some(counts.sum());
                ElementKind::Other
            }
            "ResultSummary" => {
                self.outcome = value("outcome");
                ElementKind::Other
            }
            "RunInfo"
                if outcome::status(outcome::TRX, &value("outcome"))
                    .is_some_and(AttemptStatus::is_failure) =>
            {
                self.notice = Some(Cow::Borrowed(""));
                ElementKind::Notice
            }
            "Text" if self.notice.is_some() => ElementKind::NoticeText,
            _ => ElementKind::Other,
        }
    }

    fn text(&mut self, kind: ElementKind, text: Cow<'a, str>) {
        let target = match kind {
            ElementKind::Message => self.open_results.last_mut().map(|result| &mut result.message),
            ElementKind::Stack => self.open_results.last_mut().map(|result| &mut result.stack),
            ElementKind::Output => self.open_results.last_mut().map(|result| &mut result.output),
            ElementKind::NoticeText => self.notice.as_mut(),
            ElementKind::Result | ElementKind::Definition | ElementKind::Notice | ElementKind::Other => None,
        };
        if let Some(target) = target {
            append(target, text);
        }
    }

    fn end_element(&mut self, kind: ElementKind) {
        match kind {
            ElementKind::Result => self.close_result(),
            ElementKind::Definition => self.definition = None,
            ElementKind::Notice => self.notices.extend(self.notice.take()),
            ElementKind::Message
            | ElementKind::Stack
            | ElementKind::Output
            | ElementKind::NoticeText
            | ElementKind::Other => {}
        }
    }

    fn results(&self) -> usize {
        self.results.len()
    }

    fn finish(mut self, input: &Input<'a>) -> Report {
        let mut tests = Collector::for_results(self.results.len());
        // The tool writes results in any order.
        self.results
            .sort_by_key(|result| retries::numbered(&result.name).map(|(_, number)| number));
        let failed = |result: &&TestResult<'_>| result.status().is_some_and(AttemptStatus::is_failure);
        let failed: HashSet<&str> = self
            .results
            .iter()
            .filter(failed)
            .map(|result| &*result.name)
            .collect();
        for result in &self.results {
            let retried = retries::numbered(&result.name).filter(|(name, _)| failed.contains(name));
            let name = retried.map_or(&*result.name, |(name, _)| name);
            let class = self.classes.get(&result.id).map_or("", |class| &**class);
            if !memory::charge(class.len()) {
                break;
            }
            // `Shop.OrderTests, Shop.Tests, Version=1.0.0.0`
            let class = class.split(',').next().unwrap_or_default().trim();
            let name = text::joined(names::class_and_name(class, name));
            let test = LocatedTest::of_class(input, class, name);
            let attempts = vec![result.attempt(input, &self.folder)];
            tests.add_or_join(test, attempts, |_, earlier, mut attempts| {
                if retried.is_none() || earlier.last().is_none_or(|last| !last.status.is_failure()) {
                    return Some(attempts);
                }
                earlier.append(&mut attempts);
                None
            });
        }
        let notices = self.notices.iter().take(limits::REPORT_ERRORS);
        let errors = notices.filter_map(|notice| text::message(notice).map(failure::error_saying));
        let mut report = Report {
            started_at: input.time(&self.started_at),
            finished_at: input.time(&self.finished_at),
            errors: errors.collect(),
            tests: tests.finish(),
            ..Report::empty(Format::Trx)
        };
        report.check_header(input.name, self.counted_failures);
        let ended_well = self.outcome.is_empty()
            || outcome::status(outcome::TRX, &self.outcome) == Some(AttemptStatus::Passed);
        report.check_summary(input.name, !ended_well, &self.outcome);
        report
    }
}

impl Run<'_> {
    /// A result that contains others counts only if it failed by itself.
    fn close_result(&mut self) {
        let Some(result) = self.open_results.pop() else {
            return;
        };
        let failed = result.status().is_some_and(AttemptStatus::is_failure);
        if let Some(parent) = self.open_results.last_mut() {
            parent.has_inner_results = true;
            parent.has_inner_failure |= failed || result.has_inner_failure;
        }
        if !result.has_inner_results || (failed && !result.has_inner_failure) {
            self.results.push(result);
        }
    }
}

impl TestResult<'_> {
    /// The status; none for an unknown outcome. Without the attribute the outcome is `Error`.
    fn status(&self) -> Option<AttemptStatus> {
        outcome::status(outcome::TRX, self.outcome.as_deref().unwrap_or("Error"))
    }

    fn attempt(&self, input: &Input<'_>, run_folder: &str) -> Attempt {
        let status = self
            .status()
            .unwrap_or_else(|| input.status(outcome::TRX, self.outcome.as_deref().unwrap_or_default()));
        let message = text::message(&self.message);
        let stack = text::stack(&self.stack);
        let errors = if status.is_failure() && (message.is_some() || stack.is_some()) {
            let location = stack.as_deref().and_then(|stack| input.location_in(stack));
            vec![ErrorDetail {
                message: message.or_else(|| text::first_line(&self.stack).and_then(text::message)),
                stack,
                snippet: None,
                location,
            }]
        } else {
            Vec::new()
        };
        let mut attempt = Attempt {
            status,
            duration_ms: duration_ms(&self.duration),
            started_at: input.time(&self.start),
            browser: None,
            errors,
            skip_reason: None,
            output: None,
        }
        .skipped_because(text::skip_reason(&self.message));
        let mut collected = Collected::default();
        for file in &self.files {
            let file = file.replace('\\', "/");
            let parts = [run_folder, "In", &self.folder, &file].map(|part| part.trim_matches(['/', '\\']));
            let path = match run_folder.is_empty() || self.folder.is_empty() {
                true => file.clone(),
                false => parts.join("/"),
            };
            collected.file(input, None, None, Some(&path));
        }
        collected.print(&self.output);
        collected.give_to(&mut attempt);
        attempt
    }
}

/// Whole milliseconds of `hh:mm:ss.fffffff`, with days before a dot if there are any.
fn duration_ms(text: &str) -> Option<u64> {
    let mut parts = text.trim().rsplitn(3, ':');
    let seconds: f64 = parts.next().filter(|part| !part.is_empty())?.parse().ok()?;
    let minutes: f64 = parts.next().map_or(Ok(0.0), str::parse).ok()?;
    let hours = parts.next().unwrap_or("0");
    let (days, hours) = hours.split_once('.').unwrap_or(("0", hours));
    let (days, hours): (f64, f64) = (days.parse().ok()?, hours.parse().ok()?);
    time::duration_ms((((days * 24.0 + hours) * 60.0 + minutes) * 60.0 + seconds) * 1000.0)
}
