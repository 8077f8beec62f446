//! The JSON reports of pytest-json-report.

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    run::RunState,
    test::TestName,
};
use serde::Deserialize;

use crate::{
    collect::{Collector, named},
    failure,
    input::Input,
    json::{self, Shape},
    location::at_line,
    outcome, paths,
    playwright::UNEXPECTED_PASS,
    report::{Format, Report},
    text, time,
};

impl json::Document for Run {
    const FORMAT: Format = Format::PytestJson;
    const SHAPE: Shape = Shape::of_list("pytest-json-report", "exitcode").with_lists("tests");

    fn add_to(self, input: &Input<'_>, report: &mut Report) {
        let (finished_at, duration_ms) = (self.created.time(), self.duration.seconds_ms());
        let started_at = finished_at
            .zip(duration_ms)
            .and_then(|(end, duration)| Some(end.plus_ms(-i64::try_from(duration).ok()?)));
        report.widen(
            started_at.or(finished_at),
            duration_ms.filter(|_| started_at.is_some()),
        );
        let mut tests = Collector::for_results(self.tests.len());
        for test in &self.tests {
            tests.add(test.name(input), test.attempts(input));
        }
        report.take_tests(tests);
        for collector in &self.collectors {
            if collector.outcome.as_deref() == Some("failed") {
                let whole = collector.longrepr.or_empty();
                let raised = whole.lines().rev().find_map(|line| line.strip_prefix("E  "));
                let node = collector.nodeid.or_empty();
                let message = raised.map(|raised| format!("{node}: {}", raised.trim()));
                let error = input.error(message.as_deref().or(Some(node)), Some(whole), None);
                report.errors.extend(error);
            }
        }
        let counts = [*self.summary.failed, *self.summary.error].into_iter().flatten();
        report.check_header(input.name, Some(counts.sum()));
        // As after `-x`, or `pytest.exit` in a test.
        let count = |number: &json::Number| number.and_then(time::duration_ms).unwrap_or(0);
        let selected = count(&self.summary.collected).saturating_sub(count(&self.summary.deselected));
        if selected > u64::try_from(self.tests.len()).unwrap_or(u64::MAX) {
            report.state = RunState::Interrupted;
        }
        // 0 is a success, and 5 means that no test was collected.
        let code = self.exitcode.unwrap_or(0.0);
        let failed = code != 0.0 && code != 5.0;
        report.check_summary(input.name, failed, &format!("exit code {code}"));
    }
}

/// The report of one run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Run {
    /// The time of writing the report, in seconds since 1970.
    created: json::Number,
    /// Seconds.
    duration: json::Number,
    exitcode: json::Number,
    collectors: json::List<NodeCollector>,
    summary: Summary,
    tests: json::List<Test>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Summary {
    failed: json::Number,
    error: json::Number,
    /// The tests that were to run, and those of them that options such as `-k` left out.
    collected: json::Number,
    deselected: json::Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeCollector {
    nodeid: json::Text,
    outcome: json::Text,
    longrepr: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Test {
    nodeid: json::Text,
    outcome: json::Text,
    setup: Option<Phase>,
    call: Option<Phase>,
    teardown: Option<Phase>,
}

/// A phase of a test: its set-up, its call or its tear-down.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Phase {
    outcome: json::Text,
    /// Seconds.
    duration: json::Number,
    crash: Option<Crash>,
    longrepr: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Crash {
    path: json::Text,
    lineno: json::Positive,
    message: json::Text,
}

impl Test {
    /// The name as in pytest's JUnit XML: dotted module and classes > function.
    fn name(&self, input: &Input<'_>) -> TestName {
        let node = self.nodeid.or_empty();
        // A parameter may contain the separator.
        let (path, parameter) = node.split_at(node.find('[').unwrap_or(node.len()));
        let mut parts = path.split("::");
        let file = parts.next().unwrap_or_default();
        let mut titles: Vec<&str> = parts.collect();
        let function = format!("{}{parameter}", titles.pop().unwrap_or_default());
        let module = file.strip_suffix(".py").unwrap_or(file).replace('/', ".");
        let class = std::iter::once(module.as_str())
            .chain(titles)
            .collect::<Vec<_>>()
            .join(".");
        named([class.as_str(), function.as_str()], input.stored_file(file))
    }

    fn phases(&self) -> impl Iterator<Item = &Phase> {
        [&self.setup, &self.call, &self.teardown].into_iter().flatten()
    }

    /// The attempts. The report has only the last one, and shows that there were others only if the last one passed.
    fn attempts(&self, input: &Input<'_>) -> Vec<Attempt> {
        let outcome = self.outcome.or_empty();
        let has = |expected: &str| {
            self.phases()
                .any(|phase| phase.outcome.as_deref() == Some(expected))
        };
        let status = match outcome::status(outcome::PYTEST, outcome) {
            // The other outcomes, `rerun` and those of plug-ins, say nothing of the phases.
            Some(AttemptStatus::Passed) | None if has("failed") => AttemptStatus::Failed,
            None if has("skipped") => AttemptStatus::Skipped,
            None if outcome == "rerun" => AttemptStatus::Passed,
            Some(status) => status,
            None => input.status(outcome::PYTEST, outcome),
        };
        let errors: Vec<ErrorDetail> = self.phases().filter_map(|phase| phase.error(input)).collect();
        let durations: Vec<f64> = self.phases().filter_map(|phase| *phase.duration).collect();
        let seconds = (!durations.is_empty()).then(|| durations.iter().sum::<f64>());
        let duration = seconds.and_then(|seconds| time::duration_ms(seconds * 1000.0));
        let reason = self.phases().find_map(Phase::skip_reason);
        let last = failure::attempt(status, errors, duration, None).skipped_because(reason);
        let earlier =
            (outcome == "rerun").then(|| failure::attempt(AttemptStatus::Failed, Vec::new(), None, None));
        earlier.into_iter().chain([last]).collect()
    }
}

impl Phase {
    /// The reason in `('test_shop.py', 7, 'Skipped: no network')`, or the whole text.
    fn skip_reason(&self) -> Option<String> {
        let whole = self
            .longrepr
            .as_deref()
            .filter(|_| self.outcome.as_deref() == Some("skipped"))?;
        let inner = whole
            .split_once("Skipped: ")
            .and_then(|(_, reason)| reason.strip_suffix([')']))
            .map(|reason| reason.trim_end_matches(['\'', '"']));
        text::skip_reason(inner.unwrap_or(whole))
    }

    fn error(&self, input: &Input<'_>) -> Option<ErrorDetail> {
        if self.outcome.as_deref() != Some("failed") {
            return None;
        }
        let crash = self.crash.as_ref();
        let stack = self.longrepr.as_deref();
        let message = crash.and_then(|crash| crash.message.as_deref());
        let is_strict_pass = stack.is_some_and(|stack| stack.starts_with("[XPASS(strict)]"));
        let message = message.or(is_strict_pass.then_some(UNEXPECTED_PASS));
        let mut error = input.error(message, stack, None)?;
        // If the stack has no location, the location is the innermost frame, even in a library.
        error.location = error.location.or_else(|| {
            let crash = crash?;
            let file = input.stored_path(crash.path.as_deref()?);
            (!paths::is_absolute(&file)).then(|| at_line(file, *crash.lineno))
        });
        Some(error)
    }
}
