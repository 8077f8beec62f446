//! Cucumber's JSON, as its implementations for JavaScript, Java and Ruby write it: a list of features.

use std::collections::{HashMap, HashSet};

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    test::TestName,
};
use serde::Deserialize;

use crate::{
    collect::{Collector, LocatedTest},
    failure,
    input::Input,
    json::{self, Shape},
    memory, outcome,
    report::{Format, ReadError, Report},
    retries, text, time,
};

/// The report of one run.
pub(crate) fn read(input: &Input<'_>) -> Result<(Report, Option<usize>), ReadError> {
    let shape = Shape::of_list("Cucumber JSON", "elements");
    let parsed = json::parse_list::<Feature>(input, shape)?;
    let mut features = parsed.value;
    if let Some(line) = parsed.cut_at
        && features.last().is_some_and(Feature::is_incomplete)
    {
        features.pop();
        if features.is_empty() {
            return Err(input.broken(line, shape.format, CUT_BEFORE_NAME));
        }
    }
    let mut report = Report::empty(Format::Cucumber);
    let mut tests = Collector::default();
    for feature in &features {
        for (test, attempts) in feature.executions(input) {
            let results = attempts.into_iter().map(|attempt| vec![attempt]).collect();
            for attempts in retries::of_sequence(results) {
                tests.add(test.clone(), attempts);
            }
        }
    }
    report.take_tests(tests);
    for feature in &features {
        let word = feature.status.or_empty();
        let failed = outcome::status(outcome::CUCUMBER, word).is_some_and(AttemptStatus::is_failure);
        report.check_summary(input.name, failed, word);
    }
    let unnumbered: usize = features.iter().map(Feature::unnumbered_examples).sum();
    if unnumbered > 0 {
        report.warnings.push(format!(
            "{}: {unnumbered} examples have the name of their outline and no number, so that each outline is one test. A \
             placeholder in the outline's name tells its examples apart.",
            input.name
        ));
    }
    report.mark_cut_off(input.name, parsed.cut_at);
    Ok((report, parsed.another_at))
}

/// The problem of a file that is cut off where a scenario would be another test.
pub(crate) const CUT_BEFORE_NAME: &str =
    "the file ends here before the feature's name and path, expected more JSON; its writer was stopped";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Feature {
    id: json::Text,
    name: json::Text,
    uri: json::Text,
    /// behave writes file and line in place of `uri`.
    location: json::Text,
    /// Of behave only: the status with its hooks.
    status: json::Text,
    elements: json::List<Element>,
}

/// A scenario, or the background that the next scenario begins with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Element {
    id: json::Text,
    name: json::Text,
    #[serde(rename = "type")]
    kind: json::Text,
    line: json::Positive,
    /// Of behave only, like the status of a whole scenario.
    location: json::Text,
    status: json::Text,
    start_timestamp: json::Text,
    before: json::List<Step>,
    steps: json::List<Step>,
    after: json::List<Step>,
}

/// A step or a hook.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    keyword: json::Text,
    name: json::Text,
    result: Outcome,
    #[serde(rename = "match")]
    definition: Definition,
    before: json::List<Hook>,
    after: json::List<Hook>,
}

/// The code of a step.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Definition {
    location: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Hook {
    result: Outcome,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Outcome {
    status: json::Text,
    /// Nanoseconds; of behave seconds.
    duration: json::Number,
    /// behave writes a list of lines.
    error_message: json::TextOrLines,
}

impl Feature {
    /// Whether its name or file is missing. Some tools write them after the scenarios, where a file may be cut off.
    fn is_incomplete(&self) -> bool {
        self.name.is_none() || (self.uri.is_none() && self.location.is_none())
    }

    /// The number of examples that share their outline's name and id. cucumber-js writes no row of the table.
    fn unnumbered_examples(&self) -> usize {
        let mut lines: HashMap<&str, HashSet<u32>> = HashMap::new();
        for element in &self.elements {
            if let (Some(id), Some(line), None) = (element.id.as_deref(), *element.line, element.row()) {
                lines.entry(id).or_default().insert(line);
            }
        }
        lines.values().map(HashSet::len).filter(|lines| *lines > 1).sum()
    }

    /// The results of each scenario in a row, in the order of the report.
    fn executions(&self, input: &Input<'_>) -> Vec<(LocatedTest, Vec<Attempt>)> {
        let tool = if self.uri.is_none() && self.location.is_some() {
            Tool::Behave
        } else {
            Tool::Cucumber
        };
        let file = FeatureFile::of(input, self.file());
        let outer_bytes = self.name.or_empty().len() + file.bytes();
        let mut executions: Vec<(LocatedTest, Vec<Attempt>)> = Vec::new();
        let mut background: &[Step] = &[];
        let mut last: Option<(&str, Option<u32>)> = None;
        for element in &self.elements {
            if element.kind.as_deref() == Some("background") {
                // behave repeats the background's steps in each scenario.
                if tool == Tool::Cucumber {
                    background = &element.steps;
                }
                continue;
            }
            if !memory::charge(outer_bytes) {
                break;
            }
            let attempt = element.attempt(input, tool, std::mem::take(&mut background));
            let id = element.id.or_empty();
            // Ruby and behave write every attempt of a scenario, one after the other, until one passes.
            let line = element.line();
            let may_retry = tool == Tool::Behave || element.is_of_ruby();
            if last.is_some_and(|last| last == (id, line) && line.is_some() && may_retry)
                && let Some((_, attempts)) = executions.last_mut()
                && retries::failed(attempts)
            {
                attempts.push(attempt);
                continue;
            }
            last = Some((id, line));
            let (table, example) = element.example().unwrap_or_default();
            let name = numbered(self.name_of(element), table, example);
            executions.push((file.test(name), vec![attempt]));
        }
        executions
    }

    /// The address of the feature file.
    fn file(&self) -> &str {
        let location = self.location.or_empty();
        self.uri
            .as_deref()
            .unwrap_or_else(|| split_line(location).map_or(location, |(file, _)| file))
    }

    /// Feature > rule > scenario. Only the ids contain the rule.
    fn name_of(&self, element: &Element) -> String {
        let (feature, scenario) = (self.name.or_empty(), element.name.or_empty());
        let rule = self
            .id
            .as_deref()
            .and_then(|feature| element.id()?.strip_prefix(feature)?.strip_prefix(';'))
            .and_then(|rest| rest.strip_suffix(slug(scenario).as_str())?.strip_suffix(';'))
            .unwrap_or_default();
        text::joined([feature, rule, scenario])
    }
}

/// A name as ids contain it.
fn slug(name: &str) -> String {
    name.to_lowercase().replace(' ', "-")
}

/// The file of a feature.
#[derive(Debug, Default)]
pub(crate) struct FeatureFile {
    /// As the report has it.
    pub(crate) path: Option<String>,
    /// The file of the checkout that was found for a path on the class path.
    pub(crate) found: Option<String>,
}

impl FeatureFile {
    /// The file of an address: `classpath:shop/orders.feature`, `file:src/test/orders.feature`, or a path.
    pub(crate) fn of(input: &Input<'_>, uri: &str) -> Self {
        let uri = uri.trim();
        if let Some(path) = uri.strip_prefix("classpath:") {
            let known_file = input.known_files.and_then(|files| files.of_path(path));
            return Self {
                path: Some(input.stored_path(path)),
                found: known_file.map(str::to_owned),
            };
        }
        // Java's `file:src/test/…` is not a valid address.
        let path = match uri.strip_prefix("file:") {
            Some(path) if !path.starts_with('/') => path,
            _ => uri,
        };
        Self {
            path: input.stored_file(path),
            found: None,
        }
    }

    /// The bytes that each test of the feature copies.
    pub(crate) fn bytes(&self) -> usize {
        [&self.path, &self.found]
            .into_iter()
            .flatten()
            .map(String::len)
            .sum()
    }

    /// A test in the file.
    pub(crate) fn test(&self, name: String) -> LocatedTest {
        LocatedTest {
            test: TestName {
                name,
                file_path: self.path.clone(),
            },
            found_file: self.found.clone(),
        }
    }
}

/// The name of an example of an outline. Examples share the outline's name unless it contains a value. Their number in
/// their table tells them apart: ` [2]` is appended for the second one of a table, and ` [cards 2]` if the table has a
/// name. The first example of a table without a name keeps the outline's name.
pub(crate) fn numbered(name: String, table: &str, example: u32) -> String {
    let number = match (table, example) {
        ("", 0 | 1) => return name,
        ("", example) => format!("{name} [{example}]"),
        (table, example) => format!("{name} [{table} {example}]"),
    };
    text::shortened_name(&number).into_owned()
}

/// The tool that wrote a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Cucumber,
    /// behave: seconds, a status for each scenario, and no result for steps that did not run.
    Behave,
}

/// File and line of `features/cart.feature:7`.
fn split_line(location: &str) -> Option<(&str, u32)> {
    let (file, line) = location.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

impl Element {
    /// The id without the examples of an outline.
    fn id(&self) -> Option<&str> {
        let id = self.id.as_deref()?;
        Some(self.row().map_or(id, |(outline, ..)| outline))
    }

    /// The id of the outline, the name of its table of examples, and the number of the row in that table; row 1 is the
    /// header. Java and Ruby write `checkout;pays;cards;3`, JavaScript writes no row.
    fn row(&self) -> Option<(&str, &str, u32)> {
        let (outline, row) = self.id.as_deref()?.rsplit_once(';')?;
        let row = row.parse().ok().filter(|row| *row >= 2)?;
        let (outline, table) = outline.rsplit_once(';')?;
        outline.contains(';').then_some((outline, table, row))
    }

    /// The table and the number of the example in it, from 1. None if the name contains a value, so that it is not the
    /// outline's name in the id.
    fn example(&self) -> Option<(&str, u32)> {
        let (outline, table, row) = self.row()?;
        let name = slug(self.name.or_empty());
        outline.ends_with(&format!(";{name}")).then_some((table, row - 1))
    }

    /// Whether its steps are written in Ruby.
    fn is_of_ruby(&self) -> bool {
        let mut locations = self
            .steps
            .iter()
            .filter_map(|step| step.definition.location.as_deref());
        locations.any(|location| location.contains(".rb:"))
    }

    fn line(&self) -> Option<u32> {
        self.line
            .or_else(|| Some(split_line(self.location.as_deref()?)?.1))
    }

    /// The status of a scenario. For Cucumber it is that of its steps and hooks; a step without a result is unknown.
    fn status(&self, input: &Input<'_>, tool: Tool, steps: &[&Step]) -> AttemptStatus {
        if tool == Tool::Behave {
            return input.status(outcome::CUCUMBER, self.status.or_empty());
        }
        let mut unknown = None;
        let mut status = AttemptStatus::Passed;
        for word in steps.iter().flat_map(|step| step.outcomes()).map(Outcome::status) {
            match outcome::status(outcome::CUCUMBER, word) {
                Some(of_step) if of_step.is_failure() => return AttemptStatus::Failed,
                Some(AttemptStatus::Passed) => {}
                Some(_) => status = AttemptStatus::Skipped,
                None => unknown = unknown.or(Some(word)),
            }
        }
        unknown.map_or(status, |word| input.status(outcome::CUCUMBER, word))
    }

    fn attempt(&self, input: &Input<'_>, tool: Tool, background: &[Step]) -> Attempt {
        let steps: Vec<&Step> = [&*self.before, background, &*self.steps, &*self.after]
            .into_iter()
            .flatten()
            .collect();
        let outcomes: Vec<&Outcome> = steps.iter().flat_map(|step| step.outcomes()).collect();
        let status = self.status(input, tool, &steps);
        let errors = steps.iter().flat_map(|step| step.errors(input)).collect();
        let durations: Vec<f64> = outcomes.iter().filter_map(|outcome| *outcome.duration).collect();
        let unit_ms = match tool {
            Tool::Cucumber => 1e-6,
            Tool::Behave => 1e3,
        };
        let duration = (!durations.is_empty()).then(|| durations.iter().sum::<f64>() * unit_ms);
        let is_skipped = |outcome: &Outcome| {
            outcome::status(outcome::CUCUMBER, outcome.status()) == Some(AttemptStatus::Skipped)
        };
        let reason = outcomes.iter().find_map(|outcome| {
            let message = outcome.error_message()?;
            is_skipped(outcome).then(|| text::skip_reason(message))?
        });
        let start = input.time(self.start_timestamp.or_empty());
        failure::attempt(status, errors, duration.and_then(time::duration_ms), start).skipped_because(reason)
    }
}

impl Step {
    fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        let before = self.before.iter().map(|hook| &hook.result);
        let after = self.after.iter().map(|hook| &hook.result);
        before.chain([&self.result]).chain(after)
    }

    fn errors<'s>(&'s self, input: &'s Input<'_>) -> impl Iterator<Item = ErrorDetail> + 's {
        self.outcomes().filter_map(|outcome| {
            let step = || format!("{}{}", self.keyword.or_empty(), self.name.or_empty());
            let failed = outcome::status(outcome::CUCUMBER, outcome.status());
            match outcome.status() {
                "undefined" => input.error(Some(&format!("Undefined step: {}", step())), None, None),
                "ambiguous" => {
                    let message = outcome.error_message();
                    let bare = format!("Ambiguous step: {}", step());
                    input.error(Some(message.unwrap_or(&bare)), None, None)
                }
                _ if failed.is_some_and(AttemptStatus::is_failure) => {
                    input.error_of_stack(outcome.error_message().unwrap_or_default(), None)
                }
                _ => None,
            }
        })
    }
}

impl Outcome {
    fn error_message(&self) -> Option<&str> {
        self.error_message.0.0.as_deref()
    }

    fn status(&self) -> &str {
        self.status.or_empty()
    }
}
