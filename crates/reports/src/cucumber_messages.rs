//! Cucumber's messages (NDJSON, `--format message`), which its other formats are made of: the only ones with retries.

use std::collections::HashMap;

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    run::RunState,
    timestamp::Timestamp,
};
use serde::Deserialize;

use crate::{
    collect::{Collector, LocatedTest},
    cucumber::{FeatureFile, numbered},
    events::{self, Events},
    failure, hooks,
    input::Input,
    json, limits, outcome,
    report::{Format, ReadError, Report},
    text, time,
};

/// The report of a run.
pub(crate) fn read(input: &Input<'_>) -> Result<Report, ReadError> {
    let report = events::read::<Run>(input)?;
    let is_unnamed = |error: &ErrorDetail| {
        error
            .message
            .as_deref()
            .is_some_and(|text| text.contains(UNNAMED))
    };
    if report.tests.is_empty() && report.errors.iter().any(is_unnamed) {
        return Err(input.broken(
            1,
            Run::NAME,
            "expected the pickles of the test cases that started, found none",
        ));
    }
    Ok(report)
}

/// What is said of test cases without a scenario.
const UNNAMED: &str = "scenarios are not in the file";

/// Reads one file.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// The outlines and tables by the ids of scenarios and of rows of examples.
    nodes: HashMap<String, Node>,
    /// The scenarios by the ids of pickles.
    scenarios: HashMap<String, Scenario>,
    /// The ids of pickles by those of test cases, and the texts of steps by their ids.
    pickles: HashMap<String, String>,
    steps: HashMap<String, String>,
    /// The attempts that began, in their order, and the place of each by its id.
    began: Vec<Began>,
    places: HashMap<String, usize>,
    has_ended: bool,
    has_failed: bool,
    /// Whether the tool accepts pending steps by default.
    is_lenient: bool,
}

/// A scenario or outline of a feature, or a row of its examples.
#[derive(Debug, Clone, Default)]
struct Node {
    /// Feature and rule.
    parents: Vec<String>,
    name: String,
    /// The name of the table, and the number of the row in it, from 1; of an example.
    table: String,
    example: u32,
}

#[derive(Debug)]
struct Scenario {
    uri: String,
    name: String,
    nodes: Vec<String>,
}

/// An attempt of a test case.
#[derive(Debug)]
struct Began {
    case: String,
    attempt: u64,
    at: Option<Timestamp>,
    status: AttemptStatus,
    has_ended: bool,
    errors: Vec<ErrorDetail>,
    reason: Option<String>,
    /// Its first pending step.
    pending: Option<String>,
    seconds: Option<f64>,
}

/// A message: one of these.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Envelope {
    meta: Option<Meta>,
    gherkin_document: Option<Document>,
    pickle: Option<Pickle>,
    test_case: Option<TestCase>,
    test_case_started: Option<Started>,
    test_step_finished: Option<Finished>,
    test_case_finished: Option<Finished>,
    test_run_hook_finished: Option<RunHook>,
    test_run_finished: Option<RunEnd>,
    parse_error: Option<RunEnd>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    feature: Option<Parent>,
}

/// A feature or a rule.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parent {
    name: json::Text,
    children: json::List<Child>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Child {
    scenario: Option<Outline>,
    rule: Option<Parent>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Outline {
    id: json::Text,
    name: json::Text,
    examples: json::List<Table>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Table {
    name: json::Text,
    table_body: json::List<Named>,
}

/// What has an id and perhaps a text.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    id: json::Text,
    text: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Pickle {
    id: json::Text,
    uri: json::Text,
    name: json::Text,
    ast_node_ids: json::List<json::Text>,
    steps: json::List<Named>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TestCase {
    id: json::Text,
    pickle_id: json::Text,
    test_steps: json::List<TestStep>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TestStep {
    id: json::Text,
    pickle_step_id: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Started {
    id: json::Text,
    test_case_id: json::Text,
    attempt: json::Number,
    timestamp: Seconds,
}

/// The end of a step or of an attempt.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Finished {
    test_case_started_id: json::Text,
    test_step_id: json::Text,
    test_step_result: StepResult,
    timestamp: Seconds,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Meta {
    implementation: Option<Implementation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Implementation {
    name: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StepResult {
    status: json::Text,
    message: json::Text,
    duration: Seconds,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RunHook {
    result: StepResult,
}

/// The end of the run, or a file that is no feature.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RunEnd {
    success: json::Flag,
    message: json::Text,
    timestamp: Seconds,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Seconds {
    seconds: json::Number,
    nanos: json::Number,
}

impl Seconds {
    fn as_seconds(&self) -> Option<f64> {
        Some(self.seconds.0? + self.nanos.unwrap_or(0.0) * 1e-9)
    }

    fn time(&self) -> Option<Timestamp> {
        time::from_epoch(self.as_seconds()?)
    }
}

impl Events for Run {
    type Event<'e> = Envelope;

    const FORMAT: Format = Format::CucumberMessages;
    const NAME: &'static str = "Cucumber's messages";

    fn event(&mut self, input: &Input<'_>, report: &mut Report, message: Envelope) -> bool {
        let is_known = message.meta.is_some();
        if let Some(meta) = message.meta {
            let name = meta.implementation.map(|tool| tool.name);
            self.is_lenient = name.is_some_and(|name| name.or_empty() == "cucumber-ruby");
        }
        if let Some(feature) = message.gherkin_document.and_then(|document| document.feature) {
            self.add_nodes(&[], &feature);
        } else if let Some(pickle) = message.pickle {
            self.add_pickle(pickle);
        } else if let Some(case) = message.test_case {
            let id = case.id.0.unwrap_or_default();
            self.pickles.insert(id, case.pickle_id.0.unwrap_or_default());
            for step in case.test_steps.0 {
                let text = self.steps.get(step.pickle_step_id.or_empty()).cloned();
                self.steps.extend(step.id.0.zip(text));
            }
        } else if let Some(started) = message.test_case_started {
            report.widen(started.timestamp.time(), None);
            self.places
                .insert(started.id.0.clone().unwrap_or_default(), self.began.len());
            self.began.push(Began::of(started));
        } else if let Some(step) = message.test_step_finished {
            let text = self.steps.get(step.test_step_id.or_empty());
            let place = self.places.get(step.test_case_started_id.or_empty());
            if let Some(began) = place.and_then(|place| self.began.get_mut(*place)) {
                began.add(
                    input,
                    &step.test_step_result,
                    text.map_or("a hook", String::as_str),
                );
            }
        } else if let Some(case) = message.test_case_finished {
            report.widen(case.timestamp.time(), None);
            let place = self.places.get(case.test_case_started_id.or_empty());
            if let Some(began) = place.and_then(|place| self.began.get_mut(*place)) {
                began.has_ended = true;
            }
        } else if let Some(hook) = message.test_run_hook_finished {
            if hook.result.status(input).is_failure() {
                let error = input.error_of_stack(hook.result.message.or_empty(), None);
                hooks::push_error(
                    &mut report.errors,
                    "a hook of the run",
                    error.into_iter().collect(),
                );
            }
        } else if let Some(end) = message.test_run_finished {
            report.widen(end.timestamp.time(), None);
            self.has_ended = true;
            self.has_failed = end.success.0 == Some(false);
            if let Some(text) = end.message.not_blank() {
                report.errors.extend(input.error_of_stack(text, None));
            }
        } else if let Some(error) = message.parse_error {
            let error = input.error(Some(error.message.or_empty()), None, None);
            hooks::push_error(&mut report.errors, "a feature", error.into_iter().collect());
        } else {
            return is_known;
        }
        true
    }

    fn results(&self) -> usize {
        self.scenarios.len()
    }

    fn finish(mut self, input: &Input<'_>, report: &mut Report) {
        let mut cases: Vec<String> = Vec::new();
        let mut attempts: HashMap<String, Vec<(u64, Attempt)>> = HashMap::new();
        for mut began in std::mem::take(&mut self.began) {
            if self.has_failed && !self.is_lenient {
                began.fail_if_pending(input);
            }
            if !attempts.contains_key(&began.case) {
                cases.push(began.case.clone());
            }
            let of_case = attempts.entry(began.case.clone()).or_default();
            if of_case.len() < limits::ATTEMPTS {
                of_case.push((began.attempt, began.into_attempt()));
            }
        }
        let (mut tests, mut unnamed) = (Collector::default(), 0);
        for case in cases {
            let mut of_case = attempts.remove(&case).unwrap_or_default();
            of_case.sort_by_key(|(number, _)| *number);
            match self.test(input, &case) {
                Some(test) => tests.add(test, of_case.into_iter().map(|(_, attempt)| attempt).collect()),
                None => unnamed += 1,
            }
        }
        report.take_tests(tests);
        if unnamed > 0 {
            let message = format!("{}: {unnamed} test cases ran whose {UNNAMED}", input.name);
            report.errors.push(failure::error_saying(message));
        }
        report.check_summary(input.name, self.has_failed, "success: false");
        if !self.has_ended {
            report.state = RunState::Interrupted;
        }
    }
}

impl Run {
    fn add_nodes(&mut self, parents: &[String], parent: &Parent) {
        let parents = [parents, &[parent.name.or_empty().to_owned()]].concat();
        for child in &parent.children {
            if let Some(rule) = child.rule.as_ref().filter(|_| parents.len() == 1) {
                self.add_nodes(&parents, rule);
            }
            let Some(outline) = &child.scenario else { continue };
            let node = Node {
                parents: parents.clone(),
                name: outline.name.or_empty().to_owned(),
                ..Node::default()
            };
            for table in &outline.examples {
                for (row, example) in table.table_body.iter().zip(1..) {
                    let node = Node {
                        table: table.name.or_empty().to_owned(),
                        example,
                        ..node.clone()
                    };
                    self.nodes.insert(row.id.or_empty().to_owned(), node);
                }
            }
            self.nodes.insert(outline.id.or_empty().to_owned(), node);
        }
    }

    fn add_pickle(&mut self, pickle: Pickle) {
        for step in pickle.steps.0 {
            self.steps.extend(step.id.0.zip(step.text.0));
        }
        let scenario = Scenario {
            uri: pickle.uri.0.unwrap_or_default(),
            name: pickle.name.0.unwrap_or_default(),
            nodes: pickle.ast_node_ids.0.into_iter().filter_map(|id| id.0).collect(),
        };
        self.scenarios.insert(pickle.id.0.unwrap_or_default(), scenario);
    }

    /// The scenario of a test case, named as in Cucumber's JSON.
    fn test(&self, input: &Input<'_>, case: &str) -> Option<LocatedTest> {
        let scenario = self.scenarios.get(self.pickles.get(case)?)?;
        let node = scenario.nodes.iter().rev().find_map(|id| self.nodes.get(id));
        let parents = node.map_or(&[][..], |node| &node.parents);
        let parts: Vec<&str> = parents
            .iter()
            .map(String::as_str)
            .chain([&*scenario.name])
            .collect();
        let name = text::joined(parts);
        // A name with a value of the row tells examples apart.
        let name = match node.filter(|node| node.name == scenario.name) {
            Some(node) => numbered(name, &node.table, node.example),
            None => name,
        };
        Some(FeatureFile::of(input, &scenario.uri).test(name))
    }
}

impl Began {
    fn of(started: Started) -> Self {
        Self {
            case: started.test_case_id.0.unwrap_or_default(),
            attempt: started.attempt.ms().unwrap_or(0),
            at: started.timestamp.time(),
            status: AttemptStatus::Passed,
            has_ended: false,
            errors: Vec::new(),
            reason: None,
            pending: None,
            seconds: None,
        }
    }

    /// Adds the result of a step. The worst one is that of the attempt.
    fn add(&mut self, input: &Input<'_>, result: &StepResult, step: &str) {
        let status = result.status(input);
        if let Some(seconds) = result.duration.as_seconds() {
            self.seconds = Some(self.seconds.unwrap_or(0.0) + seconds);
        }
        if !self.status.is_failure() && status != AttemptStatus::Passed {
            self.status = status;
        }
        let message = result.message.or_empty();
        if result.status.as_deref() == Some("PENDING") {
            self.pending.get_or_insert_with(|| step.to_owned());
        }
        if status.is_skip() {
            self.reason = self.reason.take().or_else(|| text::skip_reason(message));
        }
        if status.is_failure() && self.errors.len() <= limits::ERRORS {
            let word = result.status.or_empty();
            self.errors.extend(match (message.trim(), word) {
                ("", "UNDEFINED") => input.error(Some(&format!("Undefined step: {step}")), None, None),
                ("", _) => input.error(Some(&format!("{word}: {step}")), None, None),
                _ => input.error_of_stack(message, None),
            });
        }
    }

    /// A pending step fails the run where the tool is strict.
    fn fail_if_pending(&mut self, input: &Input<'_>) {
        if let Some(step) = self.pending.as_ref().filter(|_| self.status.is_skip()) {
            self.status = AttemptStatus::Failed;
            self.errors
                .extend(input.error(Some(&format!("PENDING: {step}")), None, None));
        }
    }

    fn into_attempt(self) -> Attempt {
        let status = match self.has_ended || self.status.is_failure() {
            true => self.status,
            false => AttemptStatus::Interrupted,
        };
        let duration = self.seconds.and_then(|seconds| time::duration_ms(seconds * 1e3));
        failure::attempt(status, self.errors, duration, self.at).skipped_because(self.reason)
    }
}

impl StepResult {
    fn status(&self, input: &Input<'_>) -> AttemptStatus {
        input.status(outcome::CUCUMBER, &self.status.or_empty().to_lowercase())
    }
}
