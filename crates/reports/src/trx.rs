//! Visual Studio test results (TRX).

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use assay_domain::attempt::{Attempt, AttemptStatus};

use crate::{
    attempt_output::Collected,
    collect::{Collector, LocatedTest},
    failure,
    input::Input,
    junit::names,
    limits, memory, outcome,
    report::{Format, Report},
    retries, text, time,
    xml::{Document, Element, RESULT},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run<'a> {
    /// The results that contain no others, or failed by themselves.
    results: Vec<Element<'a>>,
    /// The class of each test, by the test's id.
    classes: HashMap<Cow<'a, str>, Cow<'a, str>>,
    summary: Element<'a>,
    /// The folder of the run, beside the report.
    folder: Cow<'a, str>,
}

impl<'a> Document<'a> for Run<'a> {
    const FORMAT: Format = Format::Trx;
    const NAME: &'static str = "TRX";
    const ROOTS: &'static [&'static str] = &["TestRun"];
    const WHOLE: &'static [&'static str] = &[
        "Times",
        "Deployment",
        "UnitTestResult",
        "TestResult",
        "TestResultAggregation",
        "GenericTestResult",
        "WebTestResult",
        "LoadTestResult",
        "ManualTestResult",
        "UnitTest",
        "ResultSummary",
    ];
    const PARTS: &'static [&'static str] = &[
        "Output",
        "StdOut",
        "StdErr",
        "ErrorInfo",
        "TextMessages",
        "Message",
        "StackTrace",
        "ResultFiles",
        "ResultFile",
        "InnerResults",
        "UnitTestResult",
        "TestMethod",
        "Counters",
        "RunInfos",
        "RunInfo",
        "Text",
    ];

    fn element(&mut self, input: &Input<'a>, report: &mut Report, element: Element<'a>) {
        match element.name {
            "Times" => {
                report.started_at = input.time(&element.value("start"));
                report.finished_at = input.time(&element.value("finish"));
            }
            "Deployment" => self.folder = element.value("runDeploymentRoot"),
            "ResultSummary" => self.summary = element,
            "UnitTest" => {
                if let Some(method) = element.element("TestMethod") {
                    self.classes
                        .insert(element.value("id"), method.value("className"));
                }
            }
            _ => {
                self.add_result(element);
            }
        }
    }

    fn results(&self) -> usize {
        self.results.len()
    }

    fn finish(mut self, input: &Input<'a>, report: &mut Report) {
        let mut tests = Collector::for_results(self.results.len());
        // The tool writes results in any order.
        self.results
            .sort_by_key(|result| retries::numbered(&result.value("testName")).map(|(_, number)| number));
        let failed = self.results.iter().filter(|result| has_failed(result));
        let failed: HashSet<Cow<'_, str>> = failed.map(|result| result.value("testName")).collect();
        for result in &self.results {
            let name = result.value("testName");
            let class = self
                .classes
                .get(&result.value("testId"))
                .map_or("", |class| &**class);
            if !memory::charge(class.len()) {
                break;
            }
            // `Shop.OrderTests, Shop.Tests, Version=1.0.0.0`
            let class = class.split(',').next().unwrap_or_default().trim();
            // SpecFlow names the class of a feature so.
            let retried = retries::numbered(&name)
                .filter(|(name, _)| class.ends_with("Feature") && failed.contains(*name));
            let name = retried.map_or(&*name, |(name, _)| name);
            let test = LocatedTest::of_class(input, class, names::class_and_name(class, name));
            let attempts = vec![attempt(input, result, &self.folder)];
            tests.add_or_join(test, attempts, |_, earlier, mut attempts| {
                if retried.is_none() || !retries::failed(earlier) {
                    return Some(attempts);
                }
                earlier.append(&mut attempts);
                None
            });
        }
        report.tests = tests.finish();
        let outcome = self.summary.value("outcome");
        for part in self.summary.descendants() {
            let is_failure = || outcome::status(outcome::TRX, &part.value("outcome"));
            if part.name == "RunInfo"
                && report.errors.len() < limits::REPORT_ERRORS
                && is_failure().is_some_and(AttemptStatus::is_failure)
            {
                let notice = text::message(part.text_of("Text"));
                report.errors.extend(notice.map(failure::error_saying));
            }
        }
        let counted = self.summary.element("Counters").map(|counters| {
            let count = |name: &&str| counters.value(name).trim().parse::<f64>().ok();
            ["failed", "error", "timeout"].iter().filter_map(count).sum()
        });
        report.check_header(input.name, counted);
        let ended_well =
            outcome.is_empty() || outcome::status(outcome::TRX, &outcome) == Some(AttemptStatus::Passed);
        // `Aborted`, `Timeout` and `Error` are about the run where no result has the word.
        let is_of_result = |result: &Element<'_>| outcome_of(result).eq_ignore_ascii_case(&outcome);
        match ended_well || outcome.eq_ignore_ascii_case("Failed") || self.results.iter().any(is_of_result) {
            true => report.check_summary(input.name, !ended_well, &outcome),
            false => report.add_summary_error(input.name, &outcome),
        }
    }
}

impl<'a> Run<'a> {
    /// Adds a result. A data-driven result contains others, and counts only if it failed by itself. Returns whether one of
    /// them failed.
    fn add_result(&mut self, mut result: Element<'a>) -> bool {
        memory::hold(RESULT);
        let failed = has_failed(&result);
        let Some(inner) = result
            .elements
            .iter_mut()
            .find(|part| part.name == "InnerResults")
        else {
            self.results.push(result);
            return failed;
        };
        let mut has_inner_failure = false;
        for inner in std::mem::take(&mut inner.elements) {
            has_inner_failure |= self.add_result(inner);
        }
        if failed && !has_inner_failure {
            self.results.push(result);
        }
        failed || has_inner_failure
    }
}

/// The outcome of a result. Without the attribute it is `Error`.
fn outcome_of<'a>(result: &Element<'a>) -> Cow<'a, str> {
    result.attribute("outcome").unwrap_or(Cow::Borrowed("Error"))
}

fn has_failed(result: &Element<'_>) -> bool {
    outcome::status(outcome::TRX, &outcome_of(result)).is_some_and(AttemptStatus::is_failure)
}

fn attempt(input: &Input<'_>, result: &Element<'_>, run_folder: &str) -> Attempt {
    let parts = |name: &'static str| result.descendants().filter(move |part| part.name == name);
    let first = |name| parts(name).next().map_or("", |part| &*part.text);
    let status = input.status(outcome::TRX, &outcome_of(result));
    let (message, stack) = (first("Message"), first("StackTrace"));
    let error = input.error(Some(message), Some(stack), None);
    let errors = error.into_iter().filter(|_| status.is_failure()).collect();
    let duration = duration_ms(&result.value("duration"));
    let start = input.time(&result.value("startTime"));
    let mut attempt =
        failure::as_reported(status, errors, duration, start).skipped_because(text::skip_reason(message));
    let mut collected = Collected::default();
    let folder = result.value("relativeResultsDirectory");
    for file in parts("ResultFile") {
        let file = file.value("path").replace('\\', "/");
        let parts = [run_folder, "In", &folder, &file].map(|part| part.trim_matches(['/', '\\']));
        let path = match run_folder.is_empty() || folder.is_empty() {
            true => file.clone(),
            false => parts.join("/"),
        };
        collected.file(input, None, None, Some(&path));
    }
    for printed in parts("StdOut").chain(parts("StdErr")) {
        collected.print(&printed.text);
    }
    collected.give_to(&mut attempt);
    attempt
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
