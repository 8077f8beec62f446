//! The JSON of Rust's libtest, and cargo-nextest's in the same form.

use std::collections::HashSet;

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    run::RunState,
    test::TestName,
};
use serde::Deserialize;

use crate::{
    collect::{Collector, named},
    events::Events,
    failure,
    input::Input,
    json, limits, outcome,
    report::{Format, Report},
    text,
};

/// Reads one file.
#[derive(Debug, Default)]
pub(crate) struct Run {
    tests: Collector,
    /// Whether a suite ended as failed.
    has_failed: bool,
    /// Whether a suite is open.
    in_suite: bool,
    /// The open tests of the suite, in their order.
    running: Vec<String>,
    /// The tests of the suite that ended.
    ended: HashSet<String, foldhash::fast::RandomState>,
}

/// An event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Event {
    #[serde(rename = "type")]
    kind: json::Text,
    event: json::Text,
    name: json::Text,
    /// Seconds.
    exec_time: json::Number,
    stdout: json::Text,
    message: json::Text,
}

impl Events for Run {
    type Event<'e> = Event;

    const FORMAT: Format = Format::Libtest;
    const NAME: &'static str = "libtest JSON";

    fn event(&mut self, input: &Input<'_>, report: &mut Report, event: Event) -> bool {
        match (event.kind.as_deref(), event.event.as_deref()) {
            (Some("suite"), Some("started")) => {
                self.close_suite(report);
                self.in_suite = true;
            }
            (Some("suite"), Some(result)) => {
                self.has_failed |=
                    outcome::status(outcome::LIBTEST, result).is_none_or(AttemptStatus::is_failure);
                self.in_suite = false;
                self.running.clear();
                self.ended.clear();
            }
            (Some("test" | "bench"), Some(action)) => {
                if action == "started" {
                    if self.running.len() <= limits::TESTS {
                        self.running.push(event.name.0.unwrap_or_default());
                    }
                } else if action != "timeout" {
                    // `timeout` only marks a slow test.
                    let (test, attempts) = event.test(input, action);
                    self.ended.insert(event.name.0.unwrap_or_default());
                    self.tests.add(test, attempts);
                }
            }
            _ => return false,
        }
        true
    }

    fn results(&self) -> usize {
        self.tests.len()
    }

    fn finish(mut self, input: &Input<'_>, report: &mut Report) {
        self.close_suite(report);
        report.take_tests(self.tests);
        report.check_summary(input.name, self.has_failed, "failed");
    }
}

impl Run {
    /// Closes a suite that has no end event: one of its running tests ended the program.
    fn close_suite(&mut self, report: &mut Report) {
        if !std::mem::take(&mut self.in_suite) {
            return;
        }
        report.state = RunState::Interrupted;
        let running: Vec<String> = std::mem::take(&mut self.running)
            .into_iter()
            .filter(|name| !self.ended.contains(name))
            .collect();
        self.ended.clear();
        for name in &running {
            let (test, _) = parse_name(name);
            let attempt = failure::attempt(AttemptStatus::Interrupted, Vec::new(), None, None);
            self.tests.add(test, vec![attempt]);
        }
        if report.errors.len() < limits::REPORT_ERRORS {
            let list: Vec<&str> = running.iter().take(limits::ERRORS).map(String::as_str).collect();
            let message = format!(
                "A test program ended before its tests did. These were running: {}",
                list.join(", ")
            );
            report
                .errors
                .extend(text::message(&message).map(failure::error_saying));
        }
    }
}

impl Event {
    fn test(&self, input: &Input<'_>, action: &str) -> (TestName, Vec<Attempt>) {
        let status = input.status(outcome::LIBTEST, action);
        let errors = self
            .error(input)
            .filter(|_| status.is_failure())
            .into_iter()
            .collect();
        let (test, retries) = parse_name(self.name.or_empty());
        let earlier = (0..retries).map(|_| failure::attempt(AttemptStatus::Failed, Vec::new(), None, None));
        let last = failure::attempt(status, errors, self.exec_time.seconds_ms(), None)
            .skipped_because(text::skip_reason(self.message.or_empty()));
        (test, earlier.chain([last]).collect())
    }

    /// The error of a failed test.
    fn error(&self, input: &Input<'_>) -> Option<ErrorDetail> {
        let output = self.stdout.or_empty();
        let panic = text::plain(panic_in(output));
        let message = self.message.as_deref().unwrap_or(&panic);
        let stack = Some(output.trim()).filter(|stack| *stack != panic.trim());
        input.error(Some(message), stack, None)
    }
}

/// The test of a name and the number of earlier attempts. nextest writes `crate::binary$module::test#2` where libtest
/// writes `module::test`.
fn parse_name(name: &str) -> (TestName, usize) {
    let (binary, name) = name.split_once('$').unwrap_or(("", name));
    // A stress run numbers its repetitions, which are executions.
    let binary = binary.split_once("@stress-").map_or(binary, |(binary, _)| binary);
    let numbered = (!binary.is_empty()).then(|| name.rsplit_once('#')).flatten();
    let (name, attempt) = match numbered {
        Some((name, number)) => (name, number.parse().unwrap_or(1_usize)),
        None => (name, 1),
    };
    let test = named([binary, name], None);
    (test, attempt.saturating_sub(1).min(limits::COUNTED_ATTEMPTS))
}

/// The message of a panic, without the output before it and the backtrace after it; the last line if there is no panic.
fn panic_in(output: &str) -> &str {
    let Some(begin) = output.find("panicked at ") else {
        return output
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
    };
    // The first line names the thread and the location.
    let text = output.get(begin..).unwrap_or_default();
    let text = text.split_once('\n').map_or(text, |(_, text)| text);
    let end = ["\nstack backtrace:", "\nnote: "]
        .iter()
        .filter_map(|mark| text.find(mark))
        .min()
        .unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}
