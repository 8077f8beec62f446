//! NUnit's XML: `test-run` of version 3, `test-results` of version 2.

use std::borrow::Cow;

use assay_domain::attempt::{Attempt, AttemptStatus, ErrorDetail};

use crate::{
    collect::{Collector, LocatedTest},
    failure,
    input::Input,
    junit::names,
    limits, outcome,
    report::{Format, Report},
    text,
    xml::{Document, Tag, append},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run<'a> {
    started_at: String,
    finished_at: Cow<'a, str>,
    /// The result of the whole run.
    result: Cow<'a, str>,
    /// The failures and errors that the header counts.
    counted_failures: f64,
    /// The open suites, each with its own failure.
    suites: Vec<Suite<'a>>,
    case: Option<Case<'a>>,
    cases: Vec<Case<'a>>,
    /// The names of suites that failed outside of their tests, with the errors.
    broken: Vec<(Cow<'a, str>, Failure<'a>)>,
}

#[derive(Default)]
struct Suite<'a> {
    name: Cow<'a, str>,
    /// The origin of the suite's failure: its set-up or tear-down, a child, its parent.
    site: Cow<'a, str>,
    failure: Option<Failure<'a>>,
    /// Whether it failed by its own word.
    failed: bool,
    has_cases: bool,
}

#[derive(Default)]
struct Case<'a> {
    name: Cow<'a, str>,
    full_name: Cow<'a, str>,
    result: Cow<'a, str>,
    label: Cow<'a, str>,
    start: Cow<'a, str>,
    /// Seconds.
    duration: Cow<'a, str>,
    /// Why it was skipped.
    reason: Cow<'a, str>,
    failures: Vec<Failure<'a>>,
}

#[derive(Default)]
struct Failure<'a> {
    message: Cow<'a, str>,
    stack: Cow<'a, str>,
}

impl<'a> Document<'a> for Run<'a> {
    const FORMAT: &'static str = "NUnit";
    const ROOTS: &'static [&'static str] = &["test-run", "test-results"];
    // In version 2 each level of a namespace takes two elements.
    const DEPTH: usize = 4 * limits::DEPTH;

    fn begin_element(&mut self, tag: Tag<'a, '_>, parent: &str) -> bool {
        match tag.name {
            "test-run" => {
                self.started_at = tag.value("start-time").into_owned();
                self.finished_at = tag.value("end-time");
                self.counted_failures = count(&tag.value("failed"));
                self.result = tag.value("result");
            }
            "test-results" => {
                self.started_at = format!("{}T{}", tag.value("date"), tag.value("time"));
                self.counted_failures = count(&tag.value("failures")) + count(&tag.value("errors"));
            }
            "test-suite" => {
                self.suites.push(Suite {
                    name: tag.attribute("fullname").unwrap_or_else(|| tag.value("name")),
                    site: tag.value("site"),
                    failed: ["result", "label"]
                        .iter()
                        .any(|name| FAILED.contains(&&*tag.value(name))),
                    ..Suite::default()
                });
            }
            "test-case" => {
                let name = tag.value("name");
                self.case = Some(Case {
                    full_name: tag.attribute("fullname").unwrap_or_else(|| name.clone()),
                    name,
                    result: tag.attribute("result").unwrap_or_else(|| {
                        // Applies to versions before 2.5. Pester writes a case that did not run without `executed`.
                        let result = match (&*tag.value("executed"), &*tag.value("success")) {
                            ("False" | "", "False") | ("False", _) => "Skipped",
                            (_, "False") => "Failed",
                            _ => "Passed",
                        };
                        Cow::Borrowed(result)
                    }),
                    label: tag.value("label"),
                    start: tag.value("start-time"),
                    duration: tag.attribute("duration").unwrap_or_else(|| tag.value("time")),
                    ..Case::default()
                });
            }
            "failure" => return matches!(parent, "test-case" | "test-suite") && self.open_failure(),
            "assertion" => {
                return self.case.is_some() && tag.value("result") != "Passed" && self.open_failure();
            }
            // The cause of an assembly that did not load.
            "reason" if parent == "test-suite" => {
                return self.suites.last().is_some_and(|suite| suite.failed) && self.open_failure();
            }
            "reason" => return parent == "test-case",
            _ => {}
        }
        true
    }

    fn text(&mut self, name: &str, parent: &str, text: Cow<'a, str>) {
        let failure = match &mut self.case {
            Some(case) if parent == "reason" => {
                return append(Some(&mut case.reason).filter(|_| name == "message"), text);
            }
            Some(case) => case.failures.last_mut(),
            None => self.suites.last_mut().and_then(|suite| suite.failure.as_mut()),
        };
        let target = match (name, failure) {
            ("message", Some(failure)) if FAILURES.contains(&parent) => Some(&mut failure.message),
            ("stack-trace", Some(failure)) if FAILURES.contains(&parent) => Some(&mut failure.stack),
            _ => None,
        };
        append(target, text);
    }

    fn end_element(&mut self, name: &str, _parent: &str) {
        match name {
            "test-case" => {
                self.cases.extend(self.case.take());
                if let Some(suite) = self.suites.last_mut() {
                    suite.has_cases = true;
                }
            }
            "test-suite" => self.close_suite(),
            _ => {}
        }
    }

    fn results(&self) -> usize {
        self.cases.len()
    }

    fn finish(self, input: &Input<'a>) -> Report {
        let mut report = Report::empty(Format::Nunit);
        report.widen(input.time(&self.started_at), None);
        report.widen(input.time(&self.finished_at), None);
        let mut tests = Collector::for_results(self.cases.len());
        for case in &self.cases {
            let attempt = case.attempt(input);
            report.widen(attempt.started_at, attempt.duration_ms);
            tests.add(case.test(input), vec![attempt]);
        }
        report.tests = tests.finish();
        report.mark_interrupted_by_tests();
        for (suite, failure) in &self.broken {
            report
                .errors
                .extend(failure.error(input).map(|error| failure::error_of(suite, error)));
        }
        report.check_header(input.name, Some(self.counted_failures));
        report.check_summary(input.name, FAILED.contains(&&*self.result), &self.result);
        report
    }
}

/// The elements that have a message and a stack: a failure, one of several assertions, and the reason of a suite.
const FAILURES: &[&str] = &["failure", "assertion", "reason"];

/// The results and labels of suites that failed.
const FAILED: &[&str] = &["Failed", "Failure", "Error", "Invalid", "NotRunnable"];

/// A count of the header; 0 without one.
fn count(text: &str) -> f64 {
    text.trim().parse().unwrap_or(0.0)
}

impl Run<'_> {
    /// Begins a failure of the open case or suite. Returns whether there is room for it.
    fn open_failure(&mut self) -> bool {
        match (&mut self.case, self.suites.last_mut()) {
            (Some(case), _) if case.failures.len() <= limits::ERRORS => {
                case.failures.push(Failure::default())
            }
            (None, Some(suite)) => suite.failure = Some(Failure::default()),
            _ => return false,
        }
        true
    }

    /// Keeps a suite's failure if no test has it: that of a tear-down, or of an assembly that did not load. A failed
    /// set-up also fails the suite's tests.
    fn close_suite(&mut self) {
        let Some(suite) = self.suites.pop() else { return };
        let is_own = suite.site == "TearDown" || !suite.has_cases;
        if let Some(parent) = self.suites.last_mut() {
            parent.has_cases |= suite.has_cases || suite.failed;
        }
        let without_cause = || Failure {
            message: Cow::Borrowed("failed without a test"),
            stack: Cow::Borrowed(""),
        };
        let failure = suite
            .failure
            .filter(|failure| !failure.message.trim().is_empty() || !failure.stack.is_empty());
        if let Some(failure) = failure
            .or_else(|| suite.failed.then(without_cause))
            .filter(|_| is_own)
            && self.broken.len() < limits::REPORT_ERRORS
        {
            self.broken.push((suite.name, failure));
        }
    }
}

impl Case<'_> {
    /// Class > method with its arguments, as in TRX.
    fn test(&self, input: &Input<'_>) -> LocatedTest {
        let (full, name) = (&*self.full_name, &*self.name);
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
        LocatedTest::of_class(input, class, text::joined(names::class_and_name(class, name)))
    }

    fn attempt(&self, input: &Input<'_>) -> Attempt {
        let reported = input.status(outcome::NUNIT, &self.result);
        let status = if &*self.label == "Cancelled" {
            AttemptStatus::Interrupted
        } else if reported == AttemptStatus::Skipped && !self.failures.is_empty() {
            AttemptStatus::Failed
        } else {
            reported
        };
        // The failure of a test repeats all its assertions in one text.
        let failures = match self.failures.as_slice() {
            [_, _, _, ..] => self.failures.get(1..).unwrap_or_default(),
            all => all.get(..1).unwrap_or_default(),
        };
        let errors = failures
            .iter()
            .filter_map(|failure| failure.error(input))
            .collect();
        let start = input.time(&self.start);
        failure::attempt(status, errors, input.seconds_to_ms(&self.duration), start)
            .skipped_because(text::skip_reason(&self.reason))
    }
}

impl Failure<'_> {
    fn error(&self, input: &Input<'_>) -> Option<ErrorDetail> {
        input.error(Some(self.message.trim()), Some(self.stack.trim()), None)
    }
}
