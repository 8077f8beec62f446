//! The events of Swift Testing (`swift test --event-stream-output-path`), schema versions 0 to 6.4.

use std::collections::HashMap;

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    run::RunState,
    test::TestName,
    timestamp::Timestamp,
};
use serde::Deserialize;

use crate::{
    collect::{Collector, named},
    events::Events,
    failure, hooks,
    input::Input,
    json, limits,
    location::at_line,
    outcome,
    report::{Format, Report},
    text,
};

/// Reads one file.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// The functions by id. Suites are not among them.
    functions: HashMap<String, TestName>,
    running: HashMap<String, Running>,
    tests: Collector,
    /// The runs that began and did not end.
    open_runs: usize,
    has_ended: bool,
    has_failed: bool,
}

/// A test that began.
#[derive(Debug, Default)]
struct Running {
    began: Option<Timestamp>,
    errors: Vec<ErrorDetail>,
    has_failed: bool,
    is_cancelled: bool,
}

/// A record of the stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    kind: json::Text,
    payload: Payload,
}

/// A test or an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Payload {
    kind: json::Text,
    id: json::Text,
    name: json::Text,
    source_location: Option<SourceLocation>,
    instant: Instant,
    issue: Issue,
    messages: json::List<Message>,
    #[serde(rename = "testID")]
    test_id: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SourceLocation {
    #[serde(rename = "filePath")]
    file: json::Text,
    /// The same before version 6.3.
    #[serde(rename = "_filePath")]
    old_file: json::Text,
    line: json::Positive,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Instant {
    /// Seconds.
    since1970: json::Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Issue {
    is_known: json::Flag,
    /// None before version 6.3, in which every issue is a failure.
    is_failure: json::Flag,
    source_location: Option<SourceLocation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    symbol: json::Text,
    text: json::Text,
}

impl Events for Run {
    type Event<'e> = Record;

    const FORMAT: Format = Format::Swift;
    const NAME: &'static str = "Swift Testing JSON";

    fn event(&mut self, input: &Input<'_>, report: &mut Report, record: Record) -> bool {
        let payload = record.payload;
        match (record.kind.as_deref(), payload.kind.as_deref()) {
            (Some("test"), Some("function")) => {
                let id = payload.id.0.clone().unwrap_or_default();
                self.functions.insert(id, payload.test(input));
            }
            (Some("event"), Some(kind)) => self.happened(input, report, kind, &payload),
            // Suites, and records of later versions.
            (Some("test"), Some(_)) => {}
            _ => return false,
        }
        true
    }

    fn results(&self) -> usize {
        self.tests.len()
    }

    fn finish(mut self, input: &Input<'_>, report: &mut Report) {
        let mut unended: Vec<(String, Running)> = self.running.drain().collect();
        unended.sort_by(|(one, _), (other, _)| one.cmp(other));
        let is_interrupted = self.open_runs > 0 || !self.has_ended || !unended.is_empty();
        for (id, running) in unended {
            let attempt = failure::attempt(AttemptStatus::Interrupted, running.errors, None, running.began);
            self.tests.add(self.function(&id), vec![attempt]);
        }
        report.take_tests(self.tests);
        report.check_summary(input.name, self.has_failed, "failed");
        if is_interrupted {
            report.state = RunState::Interrupted;
        }
    }
}

impl Run {
    fn happened(&mut self, input: &Input<'_>, report: &mut Report, kind: &str, event: &Payload) {
        let id = event.test_id.or_empty();
        let is_function = self.functions.contains_key(id);
        report.widen(event.time(), None);
        match kind {
            "runStarted" => self.open_runs += 1,
            "runEnded" => {
                self.open_runs = self.open_runs.saturating_sub(1);
                self.has_ended = true;
                self.has_failed |= event.symbol() == Some("fail");
            }
            "testStarted" if is_function => {
                let running = Running {
                    began: event.time(),
                    ..Running::default()
                };
                self.running.insert(id.to_owned(), running);
            }
            "issueRecorded" => self.add_issue(input, report, id, event),
            "testCancelled" => {
                if let Some(running) = self.running.get_mut(id) {
                    running.is_cancelled = true;
                }
            }
            "testSkipped" if is_function => {
                let reason = event.messages.first().and_then(|message| message.text.as_deref());
                let reason = reason.and_then(|text| Some(text.split_once(" skipped: ")?.1.trim_matches('"')));
                let attempt = failure::attempt(AttemptStatus::Skipped, Vec::new(), None, event.time())
                    .skipped_because(reason.and_then(text::skip_reason));
                self.tests.add(self.function(id), vec![attempt]);
            }
            "testEnded" if is_function => {
                let running = self.running.remove(id).unwrap_or_default();
                let attempt = running.ended(input, event);
                self.tests.add(self.function(id), vec![attempt]);
            }
            _ => {}
        }
    }

    fn add_issue(&mut self, input: &Input<'_>, report: &mut Report, id: &str, event: &Payload) {
        if event.issue.is_known == Some(true) || event.issue.is_failure == Some(false) {
            return;
        }
        let error = event.error(input);
        match self.running.get_mut(id) {
            Some(running) => {
                running.has_failed = true;
                if running.errors.len() <= limits::ERRORS {
                    running.errors.extend(error);
                }
            }
            // An issue of a suite, or outside of all tests.
            None => hooks::push_error(&mut report.errors, id, error.into_iter().collect()),
        }
    }

    fn function(&self, id: &str) -> TestName {
        self.functions
            .get(id)
            .cloned()
            .unwrap_or_else(|| named([id], None))
    }
}

impl Running {
    /// The attempt of a test that ended. Its symbol is missing in streams without messages.
    fn ended(self, input: &Input<'_>, event: &Payload) -> Attempt {
        let word = match event.symbol() {
            _ if self.has_failed => "fail",
            _ if self.is_cancelled => "skip",
            symbol => symbol.unwrap_or("pass"),
        };
        let duration = self
            .began
            .zip(event.time())
            .and_then(|(began, ended)| u64::try_from(ended.since_ms(began)).ok());
        let status = input.status(outcome::SWIFT, word);
        failure::attempt(status, self.errors, duration, self.began)
    }
}

impl Payload {
    /// The test of a function. The id is `Module.Suite/function()/File.swift:3:2`; a test's class in JUnit XML is
    /// `Module.Suite`.
    fn test(&self, input: &Input<'_>) -> TestName {
        let id = self.id.or_empty();
        let name = self.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(id);
        let class = id.rsplit_once(name).map_or("", |(class, _)| class);
        let class = class.trim_end_matches(['/', '.']).replace('/', ".");
        let file = self
            .source_location
            .as_ref()
            .and_then(|location| location.file(input));
        named([&*class, name], file)
    }

    fn time(&self) -> Option<Timestamp> {
        self.instant.since1970.time()
    }

    fn symbol(&self) -> Option<&str> {
        self.messages.first()?.symbol.as_deref()
    }

    fn error(&self, input: &Input<'_>) -> Option<ErrorDetail> {
        let texts: Vec<&str> = self
            .messages
            .iter()
            .filter_map(|message| message.text.as_deref())
            .collect();
        let message = match texts.join("\n") {
            empty if empty.is_empty() => "an issue without a text".to_owned(),
            message => message,
        };
        let location = self.issue.source_location.as_ref();
        let location = location.and_then(|location| Some(at_line(location.file(input)?, *location.line)));
        input
            .error(Some(&message), None, None)
            .map(|error| ErrorDetail { location, ..error })
    }
}

impl SourceLocation {
    fn file(&self, input: &Input<'_>) -> Option<String> {
        let path = self.file.as_deref().or(self.old_file.as_deref())?;
        input.stored_file(path)
    }
}
