//! Playwright's JSON report, from 1.20 on.

mod blob;
mod error;
mod git;
mod model;

use std::borrow::Cow;

use assay_domain::{
    attempt::{Attempt, AttemptStatus},
    recording::ShardIndex,
    run::RunState,
};

pub(crate) use self::blob::is_blob;
use self::model::{Config, File, Spec, Suite, Test, TestResult};
use crate::{
    attempt_output::Collected,
    collect::{Collector, named},
    failure,
    input::Input,
    json::{self, Shape},
    memory, outcome, paths,
    report::{self, Format, ReadError, Report},
    text,
};

/// The report of one run or shard.
pub(crate) fn read(input: &Input<'_>) -> Result<(Report, Option<usize>), ReadError> {
    let shape = Shape::of_list("Playwright JSON", "suites").with_lists("tests");
    let (file, cut_at, another_at) = if is_blob(input.text) {
        let (file, cut_at) = blob::read(input)?;
        (file, cut_at, None)
    } else {
        let parsed = json::parse::<File>(input, shape)?;
        (parsed.value, parsed.cut_at, parsed.another_at)
    };
    let config = file.config.unwrap_or_default();
    let mut report = Report::empty(Format::Playwright);
    report.context = git::context(&config.metadata);
    report.shard = shard(&config);
    report.run_key = report.shard.and_then(|_| run_key(&config));
    report.errors = file
        .errors
        .iter()
        .map(|error| error::of_report(input, error))
        .collect();

    let mut reader = PlaywrightReader {
        input,
        config: &config,
        report,
        tests: Collector::default(),
        never_started: 0,
        is_flaky: false,
    };
    for suite in &file.suites {
        reader.suite(suite, &mut Vec::new(), suite.file.as_deref());
    }
    let (never_started, is_flaky) = (reader.never_started, reader.is_flaky);
    let (mut report, tests) = (reader.report, reader.tests);
    report.take_tests(tests);
    if let Some(stats) = file.stats {
        report.widen(input.time(stats.start_time.or_empty()), stats.duration.ms());
        report.check_header(input.name, *stats.unexpected);
        let word = stats.status.or_empty();
        let failed = outcome::status(outcome::OTHERS, word).is_some_and(AttemptStatus::is_failure);
        report.check_summary(input.name, failed, word);
    }
    if config.fail_on_flaky_tests == Some(true) && is_flaky {
        let error =
            "A test passed only on a retry, and the configuration fails such a run (failOnFlakyTests).";
        report.errors.push(failure::error_saying(error));
    }
    if never_started > 0 {
        report.warnings.push(format!(
            "{never_started} tests were never started; they are stored as skipped."
        ));
    }
    report.mark_cut_off(input.name, cut_at);
    Ok((report, another_at))
}

fn shard(config: &Config) -> Option<ShardIndex> {
    let shard = config.shard.as_ref()?;
    let index = (*shard.current)?;
    Some(ShardIndex {
        index,
        total: shard.total.filter(|total| *total >= index),
    })
}

/// The value that the shards of one run share: the CI build and the configuration, since a build may run several
/// suites.
fn run_key(config: &Config) -> Option<String> {
    let build = git::build(&config.metadata)?;
    let key = [build.as_str(), config.config_file.or_empty()].join(" ");
    text::title(key.trim_end())
}

/// Reads one report.
struct PlaywrightReader<'a> {
    input: &'a Input<'a>,
    config: &'a Config,
    report: Report,
    tests: Collector,
    never_started: usize,
    /// A test passed, or was skipped, after a failed attempt.
    is_flaky: bool,
}

impl PlaywrightReader<'_> {
    /// Reads a suite with its contents. `titles` are the enclosing ones. The JSON parser bounds its depth.
    fn suite<'s>(&mut self, suite: &'s Suite, titles: &mut Vec<Cow<'s, str>>, file: Option<&str>) {
        let title = suite.title.or_empty();
        // On Windows the title of a file has `\`. The test's name must be the same on all systems.
        let slashed = Cow::Owned(title.replace('\\', "/"));
        let is_file = titles.is_empty()
            && (suite.file.as_deref()).is_some_and(|file| file.replace('\\', "/") == slashed);
        titles.push(if is_file { slashed } else { Cow::Borrowed(title) });
        let file = suite.file.as_deref().or(file);
        for spec in &suite.specs {
            self.spec(spec, titles, file);
        }
        for inner in &suite.suites {
            self.suite(inner, titles, file);
        }
        titles.pop();
    }

    fn spec(&mut self, spec: &Spec, titles: &[Cow<'_, str>], file: Option<&str>) {
        let file = spec.file.as_deref().or(file).unwrap_or_default();
        let folder = self.config.root_dir.or_empty();
        if !memory::charge(folder.len() + file.len()) {
            return;
        }
        let file_path = (!file.trim().is_empty()).then(|| self.path(file));
        let title = spec.title.or_empty();
        let titles_bytes = titles.iter().map(|title| title.len()).sum::<usize>() + title.len();
        for test in &spec.tests {
            if !memory::charge(titles_bytes + file_path.as_ref().map_or(0, String::len)) {
                return;
            }
            let project = test.project_name.or_empty();
            let parts = std::iter::once(project)
                .chain(titles.iter().map(|title| &**title))
                .chain(std::iter::once(title));
            let name = named(parts, file_path.clone());
            let attempts = self.attempts(test);
            self.tests.add(name, attempts);
        }
    }

    /// The path of a spec's file is relative to the test folder, which may differ from the checkout.
    fn path(&self, file: &str) -> String {
        let joined = self
            .config
            .root_dir
            .as_deref()
            .map(|folder| paths::join(folder, file));
        let inside = joined.and_then(|path| paths::within(&path, self.input.root));
        inside.unwrap_or_else(|| self.input.stored_path(file))
    }

    fn attempts(&mut self, test: &Test) -> Vec<Attempt> {
        let browser = test.project_name.as_deref().and_then(text::title);
        if test.results.is_empty() {
            self.never_started += 1;
            if expected_status(test) != "skipped" {
                self.report.state = RunState::Interrupted;
            }
            let attempt = failure::as_reported(AttemptStatus::Skipped, Vec::new(), None, None);
            return vec![Attempt { browser, ..attempt }];
        }
        let browser_bytes = browser.as_ref().map_or(0, String::len);
        if !memory::charge(browser_bytes.saturating_mul(test.results.len())) {
            return Vec::new();
        }
        let mut attempts: Vec<Attempt> = test
            .results
            .iter()
            .map(|result| self.attempt(test, result, browser.clone()))
            .collect();
        if attempts
            .iter()
            .any(|attempt| attempt.status == AttemptStatus::Skipped)
        {
            let reason = test.skip_reason();
            for attempt in &mut attempts {
                *attempt = attempt.clone().skipped_because(reason.clone());
            }
        }
        // In a serial group, the tests after a failure are not started again.
        let has_failed = attempts.iter().any(|attempt| attempt.status.is_failure());
        while has_failed
            && expected_status(test) != "skipped"
            && test.status.as_deref() != Some("flaky")
            && attempts
                .pop_if(|last| last.status == AttemptStatus::Skipped)
                .is_some()
        {}
        apply_outcome(&mut attempts, test.status.as_deref());
        let has_failed = attempts.iter().any(|attempt| attempt.status.is_failure());
        self.is_flaky |= has_failed && !attempts.last().is_some_and(|last| last.status.is_failure());
        attempts
    }

    fn attempt(&mut self, test: &Test, result: &TestResult, browser: Option<String>) -> Attempt {
        let expected = expected_status(test);
        let duration_ms = result.duration.ms();
        let started_at = self.input.time(result.start_time.or_empty());
        let raw = raw_status(self.input, result);
        let (status, errors) = match (expected, raw) {
            ("failed", AttemptStatus::Failed) => (AttemptStatus::Passed, Vec::new()),
            ("failed", AttemptStatus::Passed) => (
                AttemptStatus::Failed,
                vec![failure::error_saying(UNEXPECTED_PASS)],
            ),
            (_, AttemptStatus::Passed | AttemptStatus::Skipped) => (raw, Vec::new()),
            _ => (raw, error::of_result(self.input, result)),
        };
        let mut attempt = failure::as_reported(status, errors, duration_ms, started_at);
        attempt.browser = browser;
        self.output(test, result).give_to(&mut attempt);
        attempt
    }

    fn output(&self, test: &Test, result: &TestResult) -> Collected {
        let mut collected = Collected::default();
        collected.timeout_ms = test.timeout.ms().filter(|ms| *ms > 0);
        for attachment in result.attachments.iter() {
            // A blob report has the files in its archive, where no link leads.
            let path = attachment.path.not_blank();
            let path = path.filter(|path| !path.starts_with("resources/"));
            let (name, kind) = (attachment.name.as_deref(), attachment.content_type.as_deref());
            collected.file(self.input, name, kind, path);
        }
        for printed in result.stdout.iter().chain(result.stderr.iter()) {
            collected.print(printed.text.or_empty());
        }
        collected
    }
}

fn expected_status(test: &Test) -> &str {
    test.expected_status.as_deref().unwrap_or("passed")
}

fn raw_status(input: &Input<'_>, result: &TestResult) -> AttemptStatus {
    match result.status.as_deref() {
        Some(word) => input.status(outcome::OTHERS, word),
        // A result without a status never ended.
        None => AttemptStatus::Interrupted,
    }
}

/// The error of a test that passed although it was expected to fail.
pub(crate) const UNEXPECTED_PASS: &str = "expected to fail, but passed";

/// Changes the final attempt if the test's outcome is not Playwright's. Playwright and [`report::outcome`] both ignore
/// attempts that did not run. A serial group is rerun as a whole, so an attempt may be skipped after one with a result.
fn apply_outcome(attempts: &mut [Attempt], test_outcome: Option<&str>) {
    let Some(outcome) = report::outcome([&*attempts]) else {
        return;
    };
    let Some(last) = attempts.get_mut(outcome.final_retry) else {
        return;
    };
    match test_outcome {
        Some("expected") if last.status.is_failure() => {
            last.status = AttemptStatus::Passed;
            last.errors.clear();
        }
        Some("unexpected") if last.status == AttemptStatus::Passed => {
            last.status = AttemptStatus::Failed;
            last.errors = vec![failure::error_saying(UNEXPECTED_PASS)];
        }
        _ => {}
    }
}
