//! Karate's summary, which tells of features and not of their scenarios.

use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail},
    test::TestName,
};
use serde::Deserialize;

use crate::{
    collect::Collector,
    failure,
    input::Input,
    json::{self, Shape},
    report::{Format, ReadError, Report},
    text, time,
};

/// The report of one run. A feature is a test.
pub(crate) fn read(input: &Input<'_>) -> Result<(Report, Option<usize>), ReadError> {
    let shape = Shape {
        format: "Karate summary",
        key: "featureSummary",
        whole: "featureSummary",
    };
    let parsed = json::parse::<Summary>(input, shape)?;
    let mut report = Report::empty(Format::Karate);
    let mut tests = Collector::default();
    for feature in &parsed.value.feature_summary {
        let path = feature.relative_path.as_deref().unwrap_or_default();
        let path = path.strip_prefix("classpath:").unwrap_or(path);
        let name = feature.name.as_deref().filter(|name| !name.trim().is_empty());
        let test = TestName {
            name: text::joined([name.unwrap_or(path)]),
            file_path: (!path.is_empty()).then(|| input.stored_path(path)),
        };
        let (failed, all) = (
            feature.failed_count.unwrap_or(0.0),
            feature.scenario_count.unwrap_or(0.0),
        );
        let ended = if feature.failed == Some(true) || failed > 0.0 {
            AttemptStatus::Failed
        } else if all == 0.0 {
            AttemptStatus::Skipped
        } else {
            AttemptStatus::Passed
        };
        let error = ErrorDetail {
            message: Some(format!(
                "{failed} of {all} scenarios failed. The summary does not say which."
            )),
            ..ErrorDetail::default()
        };
        let duration = feature.duration_millis.and_then(time::duration_ms);
        tests.add(test, vec![failure::attempt(ended, vec![error], duration, None)]);
    }
    report.tests = tests.finish();
    report.warnings.push(format!(
        "{}: Karate's summary holds features without their scenarios. Karate's JUnit or Cucumber JSON has them.",
        input.name
    ));
    report.cut_off(parsed.cut_at);
    Ok((report, parsed.another_at))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Summary {
    #[serde(deserialize_with = "json::list")]
    feature_summary: Vec<Feature>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Feature {
    #[serde(deserialize_with = "json::text")]
    name: Option<String>,
    #[serde(deserialize_with = "json::text")]
    relative_path: Option<String>,
    #[serde(deserialize_with = "json::flag")]
    failed: Option<bool>,
    #[serde(deserialize_with = "json::number")]
    failed_count: Option<f64>,
    #[serde(deserialize_with = "json::number")]
    scenario_count: Option<f64>,
    #[serde(deserialize_with = "json::number")]
    duration_millis: Option<f64>,
}
