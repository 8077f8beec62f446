//! NUnit's XML: `test-run` of version 3, `test-results` of version 2.

use assay_domain::attempt::{Attempt, AttemptStatus, ErrorDetail};

use crate::{
    collect::{Collector, LocatedTest},
    failure,
    input::Input,
    junit::names,
    limits, outcome,
    report::{Format, Report},
    text,
    xml::{Document, Element, Tag},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run {
    /// The result of the whole run.
    result: String,
    /// The failures and errors that the header counts.
    counted_failures: f64,
    /// The open suites.
    suites: Vec<Suite>,
    tests: Collector,
}

#[derive(Default)]
struct Suite {
    name: String,
    /// The origin of the suite's failure: its set-up or tear-down, a child, its parent.
    site: String,
    /// The error of its own failure.
    error: Option<ErrorDetail>,
    /// Whether it failed by its own word.
    failed: bool,
    has_cases: bool,
}

impl<'a> Document<'a> for Run {
    const FORMAT: Format = Format::Nunit;
    const NAME: &'static str = "NUnit";
    const ROOTS: &'static [&'static str] = &["test-run", "test-results"];
    // In version 2 each level of a namespace takes two elements.
    const DEPTH: usize = 4 * limits::DEPTH;
    const WHOLE: &'static [&'static str] = &["test-case", "failure", "reason"];
    const PARTS: &'static [&'static str] = &[
        "failure",
        "reason",
        "assertions",
        "assertion",
        "message",
        "stack-trace",
    ];

    fn begin(&mut self, input: &Input<'a>, report: &mut Report, tag: Tag<'a, '_>, _parent: &str) -> bool {
        match tag.name {
            "test-run" => {
                report.widen(input.time(&tag.value("start-time")), None);
                report.widen(input.time(&tag.value("end-time")), None);
                self.counted_failures = count(&tag.value("failed"));
                self.result = tag.value("result").into_owned();
            }
            "test-results" => {
                let start = format!("{}T{}", tag.value("date"), tag.value("time"));
                report.widen(input.time(&start), None);
                self.counted_failures = count(&tag.value("failures")) + count(&tag.value("errors"));
            }
            "test-suite" => {
                let words = ["result", "label"].map(|name| tag.value(name));
                let mut failed = words.iter().find(|word| FAILED.contains(&&***word)).cloned();
                if tag.attribute("result").is_none() && is_false(&tag.value("success")) {
                    failed = Some("Failure".into());
                }
                if let Some(word) = &failed {
                    self.result = word.clone().into_owned();
                }
                let name = tag.attribute("fullname").unwrap_or_else(|| tag.value("name"));
                self.suites.push(Suite {
                    name: name.into_owned(),
                    site: tag.value("site").into_owned(),
                    failed: failed.is_some(),
                    ..Suite::default()
                });
            }
            _ => {}
        }
        true
    }

    fn element(&mut self, input: &Input<'a>, _report: &mut Report, element: Element<'a>) {
        let suite = self.suites.last_mut();
        if element.name == "test-case" {
            if let Some(suite) = suite {
                suite.has_cases = true;
            }
            self.tests
                .add(test(input, &element), vec![attempt(input, &element)]);
        } else if let Some(suite) = suite.filter(|suite| suite.failed || element.name == "failure") {
            // The reason is the cause of an assembly that did not load.
            suite.error = error(input, &element);
        }
    }

    fn end(&mut self, report: &mut Report, name: &str, _parent: &str) {
        if name == "test-suite" {
            self.close_suite(report);
        }
    }

    fn results(&self) -> usize {
        self.tests.len()
    }

    fn finish(self, input: &Input<'a>, report: &mut Report) {
        report.take_tests(self.tests);
        report.check_header(input.name, Some(self.counted_failures));
        report.check_summary(input.name, FAILED.contains(&&*self.result), &self.result);
    }
}

/// The results and labels of suites that failed.
const FAILED: &[&str] = &["Failed", "Failure", "Error", "Invalid", "NotRunnable"];

fn is_false(word: &str) -> bool {
    word.eq_ignore_ascii_case("false")
}

/// A count of the header; 0 without one.
fn count(text: &str) -> f64 {
    text.trim().parse().unwrap_or(0.0)
}

impl Run {
    /// Keeps a suite's failure if no test has it: that of a tear-down, or of an assembly that did not load. A failed
    /// set-up also fails the suite's tests.
    fn close_suite(&mut self, report: &mut Report) {
        let Some(suite) = self.suites.pop() else { return };
        if let Some(parent) = self.suites.last_mut() {
            parent.has_cases |= suite.has_cases || suite.failed;
        }
        let without_cause = || failure::error_saying("failed without a test");
        let is_own = suite.site == "TearDown" || !suite.has_cases;
        let error = suite.error.or_else(|| suite.failed.then(without_cause));
        if let Some(error) = error.filter(|_| is_own && report.errors.len() < limits::REPORT_ERRORS) {
            report.errors.push(failure::error_of(&suite.name, error));
        }
    }
}

/// Class > method with its arguments, as in TRX.
fn test(input: &Input<'_>, case: &Element<'_>) -> LocatedTest {
    let name = &*case.value("name");
    let full = case.attribute("fullname");
    let full = full.as_deref().unwrap_or(name);
    let parts = full
        .strip_suffix(name)
        .and_then(|class| class.strip_suffix('.'))
        .map(|class| (class, name));
    // Arguments may contain dots.
    let end = full.find(['(', '<']).unwrap_or(full.len());
    let cut = || {
        let dot = full.get(..end)?.rfind('.')?;
        Some((full.get(..dot)?, full.get(dot + 1..)?))
    };
    let (class, name) = parts.or_else(cut).unwrap_or(("", full));
    LocatedTest::of_class(input, class, names::class_and_name(class, name))
}

fn attempt(input: &Input<'_>, case: &Element<'_>) -> Attempt {
    let is_failure = |part: &&Element<'_>| match part.name {
        "failure" => true,
        "assertion" => part.value("result") != "Passed",
        _ => false,
    };
    let failures: Vec<&Element<'_>> = case
        .descendants()
        .filter(is_failure)
        .take(1 + limits::ERRORS)
        .collect();
    let reported = match case.attribute("result") {
        Some(result) => input.status(outcome::NUNIT, &result),
        // Applies to versions before 2.5. Pester writes a case that did not run without `executed`.
        None if !failures.is_empty() => AttemptStatus::Failed,
        None => match (case.value("executed"), is_false(&case.value("success"))) {
            (executed, _) if is_false(&executed) => AttemptStatus::Skipped,
            (executed, true) if executed.is_empty() => AttemptStatus::Skipped,
            (_, true) => AttemptStatus::Failed,
            (_, false) => AttemptStatus::Passed,
        },
    };
    let status = if case.value("label") == "Cancelled" {
        AttemptStatus::Interrupted
    } else if reported == AttemptStatus::Skipped && !failures.is_empty() {
        AttemptStatus::Failed
    } else {
        reported
    };
    // The failure of a test repeats all its assertions in one text.
    let own = match failures.as_slice() {
        [_, assertions @ ..] if assertions.len() > 1 => assertions,
        all => all.get(..1).unwrap_or_default(),
    };
    let errors = own.iter().filter_map(|failure| error(input, failure)).collect();
    let duration = case.attribute("duration").unwrap_or_else(|| case.value("time"));
    let (duration, start) = (
        input.seconds_to_ms(&duration),
        input.time(&case.value("start-time")),
    );
    let reason = case.element("reason");
    let reason = reason.and_then(|reason| text::skip_reason(reason.text_of("message")));
    failure::attempt(status, errors, duration, start).skipped_because(reason)
}

/// The error of an element with a message and a stack: a failure, one of several assertions, or the reason of a suite.
fn error(input: &Input<'_>, failure: &Element<'_>) -> Option<ErrorDetail> {
    let (message, stack) = (failure.text_of("message"), failure.text_of("stack-trace"));
    input.error(Some(message.trim()), Some(stack.trim()), None)
}
