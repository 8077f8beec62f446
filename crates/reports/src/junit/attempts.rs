//! A case's attempts.

use assay_domain::attempt::{Attempt, AttemptStatus, ErrorDetail};

use super::{
    case::{Case, Child, ChildKind},
    dialect::Dialect,
    errors, playwright,
    suite::Suite,
};
use crate::{ctest, failure, go, input::Input, limits, outcome, text, vitest};

/// The attempts of a case, at least one; the final one last.
pub(super) fn of<'i>(
    input: &'i Input<'i>,
    dialect: Dialect,
    suite: &'i Suite<'i>,
    case: &Case<'_>,
) -> Vec<Attempt> {
    let reader = AttemptReader {
        input,
        dialect,
        browser: if dialect == Dialect::Playwright {
            playwright::project(suite, case)
        } else {
            suite.variant.as_ref().map(|variant| variant.platform.clone())
        },
        suite,
        has_reruns: case.has(ChildKind::Rerun),
    };
    let attempts = if case.children.is_empty() && case.output.is_empty() {
        let status = if dialect == Dialect::Vitest && vitest_never_ran(suite, case) {
            AttemptStatus::Skipped
        } else {
            status_by_attributes(input, case)
        };
        vec![reader.attempt(status, case.time, case.timestamp)]
    } else {
        reader.of_children(case)
    };
    if case.is_flaky {
        reader.as_flaky(attempts)
    } else {
        attempts
    }
}

/// Whether a case of Vitest without an outcome never ran, for example after `--bail`. Vitest lists it like a passed
/// case, but without any duration. Vitest 1 measures whole milliseconds, so there a duration of 0 may be a test that
/// ran.
fn vitest_never_ran(suite: &Suite<'_>, case: &Case<'_>) -> bool {
    suite.has_fine_clock && case.time == Some("0")
}

/// The status that GoogleTest, CTest, behave and others write as attributes of a case without outcomes.
fn status_by_attributes(input: &Input<'_>, case: &Case<'_>) -> AttemptStatus {
    let words = [case.status, case.result].into_iter().map(str::trim_ascii);
    let statuses = words
        .filter(|word| !word.is_empty())
        .map(|word| input.status(outcome::JUNIT, word));
    statuses
        .max_by_key(|status| match status {
            AttemptStatus::Passed => 0,
            AttemptStatus::Skipped | AttemptStatus::Interrupted => 1,
            AttemptStatus::Failed | AttemptStatus::TimedOut => 2,
        })
        .unwrap_or(AttemptStatus::Passed)
}

/// The text of an outcome as the reason why its case was skipped.
fn skip_reason(child: &Child<'_>) -> Option<String> {
    // gotestsum repeats the lines that `go test` writes around the reason.
    let attribute = if child.message.starts_with("=== RUN ") {
        go::failure_text(&child.message).into()
    } else {
        std::borrow::Cow::Borrowed(&*child.message)
    };
    text::skip_reason(&attribute).or_else(|| text::skip_reason(child.body()))
}

/// Builds the attempts of one case.
struct AttemptReader<'i> {
    input: &'i Input<'i>,
    suite: &'i Suite<'i>,
    dialect: Dialect,
    browser: Option<String>,
    /// Whether the later attempts have their own outcomes.
    has_reruns: bool,
}

impl AttemptReader<'_> {
    fn of_children(&self, case: &Case<'_>) -> Vec<Attempt> {
        let of_kind = |kind: ChildKind| case.children.iter().filter(move |child| child.kind == kind);
        let mut attempts: Vec<Attempt> = of_kind(ChildKind::Flaky)
            .map(|child| self.of_child(child))
            .collect();
        if case.is_muted() {
            attempts.push(self.skipped(case));
        } else if case.has(ChildKind::Error)
            && case.failure_as_flaky().is_none()
            && !case.is_expected_to_fail()
        {
            attempts.append(&mut self.failed(case));
        } else if self.dialect == Dialect::Ctest
            && of_kind(ChildKind::Skipped).any(|child| ctest::is_failure(&child.message))
        {
            let mut failed = self.attempt(AttemptStatus::Failed, case.time, case.timestamp);
            failed
                .errors
                .extend(of_kind(ChildKind::Skipped).filter_map(|child| self.error(child)));
            attempts.push(failed);
        } else if case.has(ChildKind::Skipped) {
            attempts.push(self.skipped(case));
        } else if let Some(unknown) = of_kind(ChildKind::Unknown).next() {
            self.input.notes.unknown_word(&format!("<{}>", unknown.element));
            let skipped = self.attempt(AttemptStatus::Skipped, case.time, case.timestamp);
            attempts.push(skipped.skipped_because(skip_reason(unknown)));
        } else if attempts.is_empty() && case.has(ChildKind::Rerun) {
            // The case has only reruns: the outcome of the first attempt is missing.
        } else {
            let status = status_by_attributes(self.input, case);
            attempts.push(self.attempt(status, case.time, case.timestamp));
        }
        attempts.extend(of_kind(ChildKind::Rerun).map(|child| self.of_child(child)));
        attempts
    }

    fn skipped(&self, case: &Case<'_>) -> Attempt {
        let reason = case.children.iter().find_map(skip_reason);
        self.attempt(AttemptStatus::Skipped, case.time, case.timestamp)
            .skipped_because(reason)
    }

    /// The attempts of a case with `flaky="true"`. Flank writes such a case with the failure of its first attempt only.
    fn as_flaky(&self, mut attempts: Vec<Attempt>) -> Vec<Attempt> {
        let failed = attempts
            .iter()
            .filter(|attempt| attempt.status.is_failure())
            .count();
        if failed == attempts.len() {
            attempts.push(self.attempt(AttemptStatus::Passed, None, None));
        } else if failed == 0
            && attempts
                .iter()
                .all(|attempt| attempt.status == AttemptStatus::Passed)
        {
            attempts.insert(0, self.attempt(AttemptStatus::Failed, None, None));
        }
        attempts
    }

    /// The case's own failures. They are several errors of one attempt, except in Vitest's reports.
    fn failed(&self, case: &Case<'_>) -> Vec<Attempt> {
        let children: Vec<&Child<'_>> = case
            .children
            .iter()
            .filter(|child| child.kind == ChildKind::Error)
            .collect();
        let most_errors = if self.dialect == Dialect::Vitest {
            limits::ATTEMPTS
        } else {
            limits::ERRORS
        };
        let mut status = AttemptStatus::Failed;
        let mut errors: Vec<ErrorDetail> = Vec::new();
        for child in children.iter().take(most_errors) {
            let error = self.error(child);
            if errors::status(child, error.as_ref()) == AttemptStatus::TimedOut {
                status = AttemptStatus::TimedOut;
            }
            errors.extend(error);
        }
        if errors.is_empty() {
            errors.extend(errors::of_output(self.input, &case.output));
        }
        if self.dialect == Dialect::Vitest && !errors.is_empty() {
            return self.of_vitest(case, errors);
        }
        let mut attempt = self.attempt(status, case.time, case.timestamp);
        attempt.errors = errors;
        vec![attempt]
    }

    fn of_vitest(&self, case: &Case<'_>, errors: Vec<ErrorDetail>) -> Vec<Attempt> {
        let attempts = vitest::attempts(errors);
        let last = attempts.len().saturating_sub(1);
        attempts
            .into_iter()
            .enumerate()
            .map(|(at, errors)| {
                // The time covers all attempts together, so only one attempt gets it.
                let time = if at == last { case.time } else { None };
                let mut attempt = self.attempt(failure::status(&errors), time, None);
                attempt.errors = errors;
                attempt
            })
            .collect()
    }

    /// An attempt with its own outcome.
    fn of_child(&self, child: &Child<'_>) -> Attempt {
        let error = self.error(child);
        let status = errors::status(child, error.as_ref());
        let mut attempt = self.attempt(status, child.time, child.timestamp);
        attempt.errors.extend(error);
        attempt
    }

    fn error(&self, child: &Child<'_>) -> Option<ErrorDetail> {
        if self.dialect == Dialect::Playwright {
            errors::of_playwright(self.input, child, self.has_reruns)
        } else {
            errors::of(self.input, self.dialect, child)
        }
    }

    fn attempt(&self, status: AttemptStatus, time: Option<&str>, timestamp: Option<&str>) -> Attempt {
        let duration = time.and_then(|time| self.suite.milliseconds(self.input, time));
        let start = timestamp.and_then(|timestamp| self.input.time(timestamp));
        let mut attempt = failure::as_reported(status, Vec::new(), duration, start);
        attempt.browser.clone_from(&self.browser);
        attempt
    }
}
