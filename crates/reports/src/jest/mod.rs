//! Jest's and Vitest's JSON.

mod model;

use std::{borrow::Cow, collections::HashMap};

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    run::RunState,
};

pub(crate) use self::model::Run;
use self::model::{Assertion, TestFile};
use crate::{
    collect::{Collector, named},
    failure,
    frame::{Parts, dedent},
    input::Input,
    json::{self, Shape},
    limits,
    location::at_line,
    memory, outcome,
    report::{Format, Report},
    text, time, vitest,
};

/// The heading of an error outside of tests.
const OUTSIDE: &str = "Test suite failed to run";

impl json::Document for Run {
    const FORMAT: Format = Format::Jest;
    const SHAPE: Shape = Shape::of_list("Jest JSON", "testResults");

    fn add_to(self, input: &Input<'_>, report: &mut Report) {
        // Only Jest counts these.
        let vitest = self.num_runtime_error_test_suites.is_none();
        report.widen(self.start_time.time(), None);
        if self.was_interrupted == Some(true) {
            report.state = RunState::Interrupted;
        }
        let mut tests = Collector::default();
        for file in &self.test_results {
            report.widen(file.start_time.time(), None);
            report.widen(file.end_time.time(), None);
            let file_path = input.stored_file(file.name.or_empty());
            // jest-junit adds a nameless test for a file that failed to load. Other reporters then write it, too.
            let has_name = |test: &&Assertion| test.title.is_some() || !test.ancestor_titles.is_empty();
            let sections = Sections::of(file);
            for test in file.assertion_results.iter().filter(has_name) {
                if !memory::charge(file_path.as_deref().map_or(0, str::len)) {
                    break;
                }
                // Vitest calls a skipped test "skipped". A pending one did not end: its worker did, or the run was stopped.
                if vitest && test.status.as_deref() == Some("pending") {
                    report.state = RunState::Interrupted;
                }
                let name = named(titles(test), file_path.clone());
                let attempts = if vitest {
                    vitest_attempts(input, test)
                } else {
                    jest_attempts(input, test, &sections)
                };
                tests.add(name, attempts);
            }
            report
                .errors
                .extend(file_error(input, file, &sections, file_path));
        }
        report.tests = tests.finish();
        let broken_files = self.num_runtime_error_test_suites.unwrap_or(0.0);
        let counted = self.num_failed_tests.map(|failed| failed + broken_files);
        report.check_header(input.name, counted);
        report.check_summary(input.name, self.success == Some(false), "success: false");
    }
}

/// The error of a file that failed outside of its tests: it did not load, or a hook failed. Jest writes it among the errors
/// of failed tests; Vitest does not.
fn file_error(
    input: &Input<'_>,
    file: &TestFile,
    sections: &Sections<'_>,
    path: Option<String>,
) -> Option<ErrorDetail> {
    let own = sections.0.get(OUTSIDE).and_then(|own| own.first());
    let own = own.and_then(|own| own.strip_prefix(OUTSIDE));
    let failed = |test: &Assertion| test.status.as_deref() == Some("failed");
    let explains_nothing =
        file.status.as_deref() != Some("failed") || file.assertion_results.iter().any(failed);
    if own.is_none() && explains_nothing {
        return None;
    }
    let message = text::plain(own.unwrap_or(file.message.or_empty()));
    let whole = path.map(|file| at_line(file, None));
    let mut error = input.error_of_stack(&dedent(message.trim_start_matches('\n')), None).unwrap_or_else(|| {
        failure::error_saying("The file failed outside of its tests, probably in a hook. The report does not say why; JUnit XML does.")
    });
    error.location = error.location.or(whole);
    Some(error)
}

/// The status of the final attempt.
fn final_status(input: &Input<'_>, test: &Assertion) -> AttemptStatus {
    input.status(outcome::JEST, test.status.or_empty())
}

fn attempt(status: AttemptStatus, errors: Vec<ErrorDetail>) -> Attempt {
    failure::as_reported(status, errors, None, None)
}

fn failed(errors: Vec<ErrorDetail>) -> Attempt {
    attempt(failure::status(&errors), errors)
}

/// Jest counts the invocations and keeps the error of each earlier one.
fn jest_attempts(input: &Input<'_>, test: &Assertion, sections: &Sections<'_>) -> Vec<Attempt> {
    let retried = test.retry_reasons.len().max(test.retry_messages.len());
    let counted = test.invocations.map(|count| count - 1.0);
    let earlier = counted
        .and_then(time::counted_attempts)
        .unwrap_or(0)
        .max(retried)
        .min(limits::ATTEMPTS);
    let mut attempts: Vec<Attempt> = (0..earlier)
        .map(|retry| {
            let printed = test.retry_messages.get(retry);
            let reason = test.retry_reasons.get(retry).or(printed);
            let frame = printed.and_then(|message| code_frame(message));
            failed(
                reason
                    .and_then(|reason| input.error_of_stack(reason, frame.as_deref()))
                    .into_iter()
                    .collect(),
            )
        })
        .collect();
    let last = match final_status(input, test) {
        AttemptStatus::Passed => attempt(AttemptStatus::Passed, Vec::new()),
        AttemptStatus::Skipped | AttemptStatus::Interrupted => attempt(AttemptStatus::Skipped, Vec::new()),
        AttemptStatus::Failed | AttemptStatus::TimedOut => {
            let sections = sections.of_test(test);
            let errors = test
                .failure_messages
                .iter()
                .enumerate()
                .filter_map(|(index, message)| {
                    let frame = sections.get(index).and_then(|section| code_frame(section));
                    input.error_of_stack(&without_heading(message, test), frame.as_deref())
                });
            failed(errors.collect())
        }
    };
    attempts.push(timed(last, test));
    attempts
}

/// The time of the final attempt. Both tools write only that one.
fn timed(last: Attempt, test: &Assertion) -> Attempt {
    Attempt {
        duration_ms: test.duration.ms(),
        started_at: test.start_at.time(),
        ..last
    }
}

fn code_frame(printed: &str) -> Option<String> {
    let clean = text::plain(printed);
    let frame = Parts::of(&clean).snippet;
    (!frame.trim().is_empty()).then(|| dedent(frame))
}

/// The sections of a file's printed message, one per error, by the first line of their heading.
struct Sections<'a>(HashMap<&'a str, Vec<&'a str>>);

impl<'a> Sections<'a> {
    fn of(file: &'a TestFile) -> Self {
        let message = file.message.or_empty();
        let mut sections: HashMap<&str, Vec<&str>> = HashMap::new();
        for section in message.split("  ● ").skip(1) {
            let same = sections.entry(first_line(section)).or_default();
            if same.len() < limits::ERRORS {
                same.push(section);
            }
        }
        Self(sections)
    }

    /// The sections of the message about one test.
    fn of_test(&self, test: &Assertion) -> Vec<&'a str> {
        let heading = heading(test);
        let same = self.0.get(first_line(&heading)).into_iter().flatten();
        same.filter_map(|section| section.strip_prefix(heading.as_str()))
            .filter(|section| section.starts_with('\n'))
            .collect()
    }
}

fn titles(test: &Assertion) -> impl Iterator<Item = &str> {
    let outer = test.ancestor_titles.iter().map(String::as_str);
    outer.chain(test.title.as_deref())
}

/// The titles of a test as Jest prints them above an error.
fn heading(test: &Assertion) -> String {
    titles(test).collect::<Vec<_>>().join(" › ")
}

/// A message without the test's heading, which Jest's in-memory result has above it.
fn without_heading<'a>(message: &'a str, test: &Assertion) -> Cow<'a, str> {
    if !message.contains("● ") {
        return Cow::Borrowed(message);
    }
    let clean = text::plain(message);
    let below = clean
        .trim_start()
        .strip_prefix("● ")
        .and_then(|rest| rest.strip_prefix(heading(test).as_str()))
        .filter(|rest| rest.starts_with('\n'));
    below.map_or(Cow::Borrowed(message), |below| Cow::Owned(dedent(below)))
}

fn first_line(text: &str) -> &str {
    text.split('\n').next().unwrap_or_default()
}

/// The attempts of a test of Vitest.
fn vitest_attempts(input: &Input<'_>, test: &Assertion) -> Vec<Attempt> {
    let messages = test.failure_messages.iter();
    let errors = messages.filter_map(|message| input.error_of_stack(message, None));
    let failed_attempts = vitest::attempts(errors).into_iter();
    let mut attempts: Vec<Attempt> = failed_attempts.map(vitest_failed).collect();
    match final_status(input, test) {
        AttemptStatus::Passed => attempts.push(attempt(AttemptStatus::Passed, Vec::new())),
        // The messages of a skipped test are its reasons, not errors.
        AttemptStatus::Skipped | AttemptStatus::Interrupted => {
            let reason = test
                .failure_messages
                .iter()
                .find_map(|message| text::skip_reason(message));
            attempts = vec![attempt(AttemptStatus::Skipped, Vec::new()).skipped_because(reason)];
        }
        AttemptStatus::Failed | AttemptStatus::TimedOut if attempts.is_empty() => {
            attempts.push(failed(Vec::new()))
        }
        AttemptStatus::Failed | AttemptStatus::TimedOut => {}
    }
    if let Some(last) = attempts.pop() {
        attempts.push(timed(last, test));
    }
    attempts
}

/// Vitest 3 prints a placeholder instead of the message of a time-out.
fn vitest_failed(errors: Vec<ErrorDetail>) -> Attempt {
    let placeholder = |error: &ErrorDetail| {
        error
            .message
            .as_deref()
            .is_some_and(|text| text.contains("STACK_TRACE_ERROR"))
    };
    if errors.iter().any(placeholder) {
        attempt(AttemptStatus::TimedOut, errors)
    } else {
        failed(errors)
    }
}
