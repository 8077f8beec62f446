//! A test and its executions within one run of its package.

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail, Location},
    timestamp::Timestamp,
};

use super::{event::Event, output::failure_text};
use crate::{failure, input::Input, location::at_line, output::HeadAndTail, text, time};

/// A test.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) name: String,
    /// One execution, or several with `-count`.
    pub(super) executions: Vec<Execution>,
    /// Whether an event says that it passed or was skipped. `go test` misses a result after output without a line break.
    pub(super) has_passed: bool,
}

/// One execution of a test.
#[derive(Debug, Default)]
pub(super) struct Execution {
    pub(super) started_at: Option<Timestamp>,
    pub(super) status: Option<AttemptStatus>,
    pub(super) duration_ms: Option<u64>,
    pub(super) output: HeadAndTail,
    /// The latest action that is neither a result nor known.
    pub(super) unknown_action: Option<String>,
}

impl Test {
    pub(super) fn event(&mut self, event: &Event<'_>, at: Option<Timestamp>) {
        let is_repeated =
            event.action == "run" && self.executions.last().is_none_or(|last| last.status.is_some());
        if is_repeated {
            self.executions.push(Execution::default());
        }
        let Some(execution) = self.executions.last_mut() else {
            return;
        };
        match &*event.action {
            "run" => execution.started_at = at,
            "output" => execution.output.push(&event.output),
            action => {
                let Some(mut status) = status_of(action) else {
                    if !is_other_action(action) {
                        execution.unknown_action = Some(action.chars().take(60).collect());
                    }
                    return;
                };
                if status == AttemptStatus::Failed {
                    if execution.output.text().lines().any(is_timeout) {
                        status = AttemptStatus::TimedOut;
                    }
                } else if status == AttemptStatus::Passed {
                    execution.output.clear();
                }
                execution.status = Some(status);
                self.has_passed |= !status.is_failure();
                execution.duration_ms = event
                    .elapsed
                    .and_then(|seconds| time::duration_ms(seconds * 1000.0));
            }
        }
    }

    pub(super) fn failed(&self) -> bool {
        self.executions
            .iter()
            .any(|execution| execution.status.is_some_and(AttemptStatus::is_failure))
    }

    /// Whether all executions passed.
    pub(super) fn passed(&self) -> bool {
        let mut statuses = self.executions.iter().map(|execution| execution.status);
        statuses.all(|status| status == Some(AttemptStatus::Passed))
    }

    /// The test's name and its executions, each of one attempt; failed executions come last.
    pub(super) fn finish(self, input: &Input<'_>, panic: Option<&str>) -> (String, Vec<Attempt>) {
        let executions = self.executions.into_iter();
        let mut attempts: Vec<Attempt> = executions
            .map(|execution| execution.finish(input, panic))
            .collect();
        attempts.sort_by_key(|attempt| attempt.status.severity());
        (self.name, attempts)
    }
}

impl Execution {
    fn finish(self, input: &Input<'_>, panic: Option<&str>) -> Attempt {
        let status = self.status.unwrap_or(AttemptStatus::Interrupted);
        let reason = (status == AttemptStatus::Skipped).then(|| failure_text(&self.output.text()));
        let mut errors = Vec::new();
        if status.is_failure() {
            errors.extend(error(input, &self.output.text(), panic));
        }
        failure::as_reported(status, errors, self.duration_ms, self.started_at)
            .skipped_because(reason.as_deref().and_then(text::skip_reason))
    }
}

fn error(input: &Input<'_>, output: &str, panic: Option<&str>) -> Option<ErrorDetail> {
    let message = text::message(&failure_text(output)).or_else(|| panic.map(str::to_owned));
    let stack = text::stack(output).filter(|stack| Some(stack) != message.as_ref());
    let location = test_line(output).or_else(|| input.location_in(output));
    (message.is_some() || stack.is_some()).then_some(ErrorDetail {
        message,
        stack,
        snippet: None,
        location,
    })
}

/// The first `orders_test.go:17:`. Go writes it without its folder.
fn test_line(output: &str) -> Option<Location> {
    output.lines().find_map(|line| {
        let (file, rest) = line.trim_start().split_once(".go:")?;
        let (number, _) = rest.split_once(':')?;
        let plain = file.ends_with("_test") && !file.contains(['/', ' ', '\\']);
        plain.then_some(())?;
        Some(at_line(format!("{file}.go"), Some(number.parse().ok()?)))
    })
}

/// Whether an output says that a test ended by `FailNow` or `SkipNow` of another one. The rest of that one did not run.
pub(crate) fn is_goexit(output: &str) -> bool {
    let line = output.trim_start();
    let is_by_runner = line.starts_with("testing.go:") || line.starts_with("panic: ");
    is_by_runner && line.contains("test executed panic(nil) or runtime.Goexit")
}

/// Whether an action is neither a result nor unknown.
fn is_other_action(action: &str) -> bool {
    matches!(
        action,
        "start" | "pause" | "cont" | "build-output" | "build-fail" | "attr" | "artifacts"
    )
}

/// Whether an output line reports the time limit that all tests of a package share.
pub(crate) fn is_timeout(line: &str) -> bool {
    line.starts_with("panic: test timed out after")
}

pub(super) fn status_of(action: &str) -> Option<AttemptStatus> {
    match action {
        "pass" | "bench" => Some(AttemptStatus::Passed),
        "fail" => Some(AttemptStatus::Failed),
        "skip" => Some(AttemptStatus::Skipped),
        _ => None,
    }
}
