//! Karate's own reports: one file per feature (`*.karate-json.txt`), and a summary of all features.

use assay_domain::attempt::{Attempt, AttemptStatus, ErrorDetail};
use serde::Deserialize;

use crate::{
    collect::Collector,
    cucumber::{self, FeatureFile},
    failure,
    input::Input,
    json::{self, Shape},
    location::at_line,
    memory, outcome,
    report::{Format, ReadError, Report},
    text,
};

/// The file name suffix of a feature's report.
pub const FEATURE_SUFFIX: &str = ".karate-json.txt";
/// The name of Karate's summary.
pub const SUMMARY: &str = "karate-summary-json.txt";

/// The report of a feature or of a run.
pub(crate) fn read(input: &Input<'_>) -> Result<(Report, Option<usize>), ReadError> {
    let is_feature = |object: &str| {
        json::keys(object).find_map(|(depth, key)| (depth == 1 && key == "scenarioResults").then_some(()))
    };
    if json::find_object(input.text, is_feature).is_some() {
        read_feature(input)
    } else {
        json::read::<Summary>(input)
    }
}

fn read_feature(input: &Input<'_>) -> Result<(Report, Option<usize>), ReadError> {
    let shape = Shape::of_list("Karate feature", "scenarioResults");
    let parsed = json::parse::<Feature>(input, shape)?;
    let feature = parsed.value;
    let path = feature
        .prefixed_path
        .not_blank()
        .or(feature.relative_path.not_blank());
    if let Some(line) = parsed.cut_at
        && (feature.name.is_none() || path.is_none())
    {
        // Karate writes the keys in any order. Without one of these a scenario would be another test.
        return Err(input.broken(line, shape.format, cucumber::CUT_BEFORE_NAME));
    }
    let mut report = Report::empty(Format::Karate);
    let mut tests = Collector::default();
    let file = path.map(|path| FeatureFile::of(input, path)).unwrap_or_default();
    let outer_name = feature.name.not_blank().or(path).unwrap_or_default();
    let outer_bytes = outer_name.len() + file.bytes();
    for scenario in &feature.scenario_results {
        if !memory::charge(outer_bytes) {
            break;
        }
        let name = text::joined([outer_name, scenario.name.or_empty()]);
        let example = scenario.example_index.map_or(1, |index| index.saturating_add(1));
        let attempt = scenario.attempt(input, file.found.as_deref().or(file.path.as_deref()));
        tests.add(file.test(cucumber::numbered(name, "", example)), vec![attempt]);
    }
    report.take_tests(tests);
    report.check_header(input.name, *feature.failed_count);
    report.mark_cut_off(input.name, parsed.cut_at);
    Ok((report, parsed.another_at))
}

/// The summary omits the scenarios, so each feature is a test.
impl json::Document for Summary {
    const FORMAT: Format = Format::Karate;
    const SHAPE: Shape = Shape::of_list("Karate summary", "featureSummary");

    fn add_to(self, input: &Input<'_>, report: &mut Report) {
        let mut tests = Collector::default();
        for feature in &self.feature_summary {
            let path = feature.relative_path.or_empty();
            let name = feature.name.not_blank();
            let name = text::joined([name.unwrap_or(path.strip_prefix("classpath:").unwrap_or(path))]);
            let (failed, all) = (
                feature.failed_count.unwrap_or(0.0),
                feature.scenario_count.unwrap_or(0.0),
            );
            let status = if feature.failed == Some(true) || failed > 0.0 {
                AttemptStatus::Failed
            } else if all == 0.0 {
                AttemptStatus::Skipped
            } else {
                AttemptStatus::Passed
            };
            let message = format!("{failed} of {all} scenarios failed. The summary does not say which.");
            let errors = vec![failure::error_saying(message)];
            let attempt = failure::attempt(status, errors, feature.duration_millis.ms(), None);
            tests.add(FeatureFile::of(input, path).test(name), vec![attempt]);
        }
        report.take_tests(tests);
        report.warnings.push(format!(
            "{}: Karate's summary holds features without their scenarios. The files `*{FEATURE_SUFFIX}` beside it have them.",
            input.name
        ));
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Feature {
    name: json::Text,
    /// Begins with `classpath:` if the feature lies there.
    prefixed_path: json::Text,
    relative_path: json::Text,
    failed_count: json::Number,
    scenario_results: json::List<Scenario>,
}

/// A scenario, or an example of an outline.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Scenario {
    name: json::Text,
    line: json::Positive,
    /// Counted from 0 within an outline; 0 is read as absent.
    example_index: json::Positive,
    failed: json::Flag,
    skipped: json::Flag,
    error: json::Text,
    duration_millis: json::Number,
    start_time: json::Number,
    step_results: json::List<StepResult>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StepResult {
    step: Step,
    result: Outcome,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    line: json::Positive,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Outcome {
    status: json::Text,
    error_message: json::Text,
}

impl Outcome {
    fn has_failed(&self) -> bool {
        let status = outcome::status(outcome::OTHERS, self.status.or_empty());
        status.is_some_and(AttemptStatus::is_failure)
    }
}

impl Scenario {
    /// The first unknown status of a step; an empty one if neither the scenario nor a step has a status.
    fn unknown_status(&self) -> Option<&str> {
        let mut words = self.step_results.iter().map(|step| step.result.status.as_deref());
        if self.failed.is_none() && words.len() == 0 {
            return Some("");
        }
        words.find_map(|word| {
            let word = word.unwrap_or_default();
            outcome::status(outcome::OTHERS, word).is_none().then_some(word)
        })
    }

    fn attempt(&self, input: &Input<'_>, file: Option<&str>) -> Attempt {
        let failed_step = self.step_results.iter().find(|step| step.result.has_failed());
        let status = if self.failed == Some(true) || failed_step.is_some() {
            AttemptStatus::Failed
        } else if self.skipped == Some(true) {
            AttemptStatus::Skipped
        } else if let Some(word) = self.unknown_status() {
            input.status(outcome::OTHERS, word)
        } else {
            AttemptStatus::Passed
        };
        let of_step = || failed_step.and_then(|step| step.result.error_message.as_deref());
        let error = input
            .error(self.error.as_deref().or_else(of_step), None, None)
            .map(|error| {
                let line = failed_step.and_then(|step| *step.step.line);
                let location = file.zip(line);
                let location = location.map(|(file, line)| at_line(file.to_owned(), Some(line)));
                ErrorDetail {
                    location: location.or(error.location),
                    ..error
                }
            });
        let (duration, start) = (self.duration_millis.ms(), self.start_time.time());
        failure::attempt(status, error.into_iter().collect(), duration, start)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Summary {
    feature_summary: json::List<FeatureSummary>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FeatureSummary {
    name: json::Text,
    relative_path: json::Text,
    failed: json::Flag,
    failed_count: json::Number,
    scenario_count: json::Number,
    duration_millis: json::Number,
}
