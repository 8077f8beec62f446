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
    const FORMAT: &'static str = "TRX";
    const ROOTS: &'static [&'static str] = &["TestRun"];

    fn begin_element(&mut self, tag: Tag<'a, '_>, _parent: &str) -> bool {
        match tag.name {
            "Times" => {
                self.started_at = tag.value("start");
                self.finished_at = tag.value("finish");
            }
            "UnitTestResult" => {
                self.open_results.push(TestResult {
                    id: tag.value("testId"),
                    name: tag.value("testName"),
                    outcome: tag.attribute("outcome"),
                    duration: tag.value("duration"),
                    start: tag.value("startTime"),
                    folder: tag.value("relativeResultsDirectory"),
                    ..TestResult::default()
                });
            }
            "ResultFile" => {
                if let Some(result) = self.open_results.last_mut()
                    && result.files.len() < limits::ATTACHMENTS
                {
                    result.files.push(tag.value("path"));
                }
            }
            "Deployment" => self.folder = tag.value("runDeploymentRoot"),
            "UnitTest" => self.definition = Some(tag.value("id")),
            "TestMethod" => {
                if let Some(id) = &self.definition {
                    self.classes.insert(id.clone(), tag.value("className"));
                }
            }
            "Counters" => {
                let counts = ["failed", "error", "timeout"];
                let counts = counts
                    .iter()
                    .filter_map(|name| tag.value(name).trim().parse::<f64>().ok());
                self.counted_failures = Some(counts.sum());
            }
            "ResultSummary" => self.outcome = tag.value("outcome"),
            "RunInfo" => {
                let status = outcome::status(outcome::TRX, &tag.value("outcome"));
                let is_failure = status.is_some_and(AttemptStatus::is_failure);
                self.notice = is_failure.then_some(Cow::Borrowed(""));
            }
            _ => {}
        }
        true
    }

    fn text(&mut self, name: &str, _parent: &str, text: Cow<'a, str>) {
        let target = match (name, self.open_results.last_mut()) {
            ("Message", Some(result)) => Some(&mut result.message),
            ("StackTrace", Some(result)) => Some(&mut result.stack),
            ("StdOut" | "StdErr", Some(result)) => Some(&mut result.output),
            ("Text", _) => self.notice.as_mut(),
            _ => None,
        };
        append(target, text);
    }

    fn end_element(&mut self, name: &str, _parent: &str) {
        match name {
            "UnitTestResult" => self.close_result(),
            "UnitTest" => self.definition = None,
            "RunInfo" => self.notices.extend(self.notice.take()),
            _ => {}
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
        let (duration, start) = (duration_ms(&self.duration), input.time(&self.start));
        let mut attempt = failure::as_reported(status, errors, duration, start)
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
