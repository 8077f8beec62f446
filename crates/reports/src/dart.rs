//! The JSON events of `dart test` and `flutter test`.

use std::collections::HashMap;

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    run::RunState,
    set_up,
    test::TestName,
};
use serde::Deserialize;

use crate::{
    collect::Collector,
    events::Events,
    failure,
    input::Input,
    json, limits, memory, outcome,
    report::{Format, Report},
    text, time,
};

/// Reads one file.
#[derive(Debug, Default)]
pub(crate) struct Run {
    suites: HashMap<u64, Suite>,
    /// Full names of groups. Each contains the names of the groups around it.
    groups: HashMap<u64, String>,
    running: HashMap<u64, Test>,
    tests: Collector,
    success: Option<bool>,
}

/// An event.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Event {
    #[serde(rename = "type")]
    kind: json::Text,
    /// Milliseconds since the start.
    time: json::Number,
    suite: Option<Suite>,
    group: Option<Group>,
    test: Option<Test>,
    #[serde(rename = "testID")]
    test_id: json::Number,
    result: json::Text,
    skipped: json::Flag,
    hidden: json::Flag,
    error: json::Text,
    stack_trace: json::Text,
    message: json::Text,
    success: json::Flag,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Suite {
    id: json::Number,
    platform: json::Text,
    path: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Group {
    id: json::Number,
    name: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Test {
    id: json::Number,
    name: json::Text,
    #[serde(rename = "suiteID")]
    suite_id: json::Number,
    #[serde(rename = "groupIDs")]
    group_ids: json::List<f64>,
    metadata: Metadata,
    /// Milliseconds since the start of the run.
    #[serde(skip)]
    began_ms: Option<f64>,
    #[serde(skip)]
    errors: Vec<ErrorDetail>,
    /// Attempts that another attempt followed.
    #[serde(skip)]
    attempts: Vec<Attempt>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    skip_reason: json::Text,
}

impl Events for Run {
    type Event<'e> = Event;

    const FORMAT: Format = Format::Dart;
    const NAME: &'static str = "dart test JSON";

    fn event(&mut self, input: &Input<'_>, report: &mut Report, event: Event) -> bool {
        let test_id = event.test_id.and_then(id);
        match event.kind.as_deref() {
            Some("suite") => {
                let suite = event.suite.unwrap_or_default();
                self.suites.extend(suite.id.and_then(id).map(|id| (id, suite)));
            }
            Some("group") => {
                let group = event.group.unwrap_or_default();
                let name = group.name.0.unwrap_or_default();
                self.groups.extend(group.id.and_then(id).map(|id| (id, name)));
            }
            Some("testStart") => {
                let mut test = event.test.unwrap_or_default();
                test.began_ms = *event.time;
                self.running.extend(test.id.and_then(id).map(|id| (id, test)));
            }
            Some("error") => {
                let error = input.error(event.error.as_deref(), event.stack_trace.as_deref(), None);
                if let Some(test) = test_id.and_then(|id| self.running.get_mut(&id))
                    && test.errors.len() <= limits::ERRORS
                {
                    test.errors.extend(error);
                }
            }
            // The runner announces a retry before it starts it.
            Some("print") if event.message.or_empty().starts_with("Retry: ") => {
                if let Some(test) = test_id.and_then(|id| self.running.get_mut(&id))
                    && test.attempts.len() < limits::ATTEMPTS
                {
                    let errors = std::mem::take(&mut test.errors);
                    test.attempts
                        .push(failure::attempt(AttemptStatus::Failed, errors, None, None));
                }
            }
            Some("testDone") => {
                let test = test_id.and_then(|id| self.running.remove(&id));
                if let Some(test) = test {
                    self.finish_test(input, report, test, &event);
                }
            }
            Some("done") => self.success = event.success.or(Some(false)),
            Some("start" | "allSuites" | "print" | "debug") => {}
            _ => return false,
        }
        true
    }

    fn results(&self) -> usize {
        self.tests.len().max(self.running.len())
    }

    fn finish(mut self, input: &Input<'_>, report: &mut Report) {
        let mut running: Vec<(u64, Test)> = std::mem::take(&mut self.running).into_iter().collect();
        running.sort_unstable_by_key(|(id, _)| *id);
        for (_, test) in running.into_iter().filter(|(_, test)| !test.is_loading()) {
            let attempt = failure::attempt(AttemptStatus::Interrupted, Vec::new(), None, None);
            self.add(input, test, attempt);
        }
        report.take_tests(self.tests);
        match self.success {
            None => report.state = RunState::Interrupted,
            Some(success) => report.check_summary(input.name, !success, "success: false"),
        }
    }
}

impl Run {
    fn finish_test(&mut self, input: &Input<'_>, report: &mut Report, mut test: Test, done: &Event) {
        let reported = input.status(outcome::OTHERS, done.result.or_empty());
        let status = if reported == AttemptStatus::Passed && done.skipped == Some(true) {
            AttemptStatus::Skipped
        } else {
            reported
        };
        let name = test.name.0.clone().unwrap_or_default();
        let kind = match &name {
            _ if name.ends_with("(setUpAll)") => Some(set_up::NAME),
            _ if name.ends_with("(tearDownAll)") => Some(set_up::TEAR_DOWN),
            _ => None,
        };
        if done.hidden == Some(true) || test.is_loading() || kind.is_some() {
            // An entry that is not a test counts only if it failed.
            if status.is_failure() && report.errors.len() < limits::REPORT_ERRORS {
                let errors = std::mem::take(&mut test.errors);
                if let Some(kind) = kind {
                    let attempt = failure::attempt(status, errors.clone(), None, None);
                    let class = self.groups_of(&test).last().unwrap_or_default().to_owned();
                    let named = Test {
                        name: json::Lenient(Some(format!("{class} {kind}"))),
                        attempts: Vec::new(),
                        errors: Vec::new(),
                        metadata: Metadata::default(),
                        group_ids: test.group_ids.clone(),
                        ..test
                    };
                    self.add(input, named, attempt);
                }
                let errors = errors.into_iter().map(|error| failure::error_of(&name, error));
                report.errors.extend(errors);
            }
            return;
        }
        let duration = test
            .began_ms
            .zip(*done.time)
            .map(|(began_ms, end_ms)| end_ms - began_ms);
        let errors = std::mem::take(&mut test.errors);
        let reason = text::skip_reason(test.metadata.skip_reason.or_empty());
        let attempt = failure::attempt(status, errors, duration.and_then(time::duration_ms), None)
            .skipped_because(reason);
        self.add(input, test, attempt);
    }

    fn add(&mut self, input: &Input<'_>, test: Test, last: Attempt) {
        let suite = test.suite_id.and_then(id).and_then(|id| self.suites.get(&id));
        let platform = suite.map_or("", |suite| suite.platform.or_empty());
        // Tests run on `vm` unless another platform is chosen.
        let browser = if platform == "vm" { "" } else { platform };
        let path = suite.map_or("", |suite| suite.path.or_empty());
        let browser_bytes = browser.len().saturating_mul(1 + test.attempts.len());
        let groups_bytes = self.groups_of(&test).map(str::len).sum::<usize>();
        if !memory::charge(browser_bytes.saturating_add(groups_bytes + path.len())) {
            return;
        }
        let name = TestName {
            name: self.name_of(&test, browser),
            file_path: (!path.is_empty()).then(|| input.stored_path(path)),
        };
        let mut attempts = test.attempts;
        attempts.push(last);
        for attempt in &mut attempts {
            attempt.browser = text::title(browser);
        }
        self.tests.add(name, attempts);
    }

    /// The names of the groups around a test, the outermost first.
    fn groups_of(&self, test: &Test) -> impl Iterator<Item = &str> {
        let names = test
            .group_ids
            .iter()
            .filter_map(move |group| self.groups.get(&id(*group)?));
        names.map(String::as_str).take(limits::DEPTH)
    }

    /// Platform > groups > test. Every name begins with the name of the group around it.
    fn name_of(&self, test: &Test, browser: &str) -> String {
        let full = test.name.or_empty();
        let mut parts = vec![browser];
        let mut outer_name = "";
        for group in self.groups_of(test) {
            parts.push(without_group(group, outer_name));
            outer_name = group;
        }
        parts.push(without_group(full, outer_name));
        text::joined(parts)
    }
}

impl Test {
    /// The runner reports the loading of a file as a test.
    fn is_loading(&self) -> bool {
        self.group_ids.is_empty() && self.name.or_empty().starts_with("loading ")
    }
}

/// The part of a full name after the name of the group around it.
fn without_group<'a>(name: &'a str, outer_name: &str) -> &'a str {
    name.strip_prefix(outer_name).unwrap_or(name).trim_start()
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates"
)]
fn id(number: f64) -> Option<u64> {
    (number >= 0.0).then_some(number as u64)
}
