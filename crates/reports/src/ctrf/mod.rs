//! CTRF JSON, as its schema defines it and as its reporters write it.

mod model;

use std::collections::HashMap;

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    recording::{RunContext, ShardIndex},
    test::TestName,
};

pub(crate) use self::model::File;
use self::model::{Environment, Test};
use crate::{
    attempt_output::Collected,
    collect::{Collector, named},
    failure, hooks,
    input::Input,
    json::{self, Shape},
    memory, outcome,
    report::{Format, Report},
    retries::{RepeatedResult, Retries, Tool, failed},
    text, time,
};

impl json::Document for File {
    const FORMAT: Format = Format::Ctrf;
    const SHAPE: Shape = Shape::of_list("CTRF", "results").with_lists("tests");

    fn add_to(self, input: &Input<'_>, report: &mut Report) {
        let results = self.results.unwrap_or_default();
        let dialect = Dialect::of(&results.tool.unwrap_or_default());
        let environment = results.environment.or(self.environment).unwrap_or_default();
        let summary = results.summary.unwrap_or_default();
        report.shard = shard(environment.shard_id.or_empty());
        report.context = context(&environment);
        report.run_key = text::title(self.run_id.or_empty());
        report.widen(summary.start.time(), None);
        report.widen(summary.stop.time(), None);
        let mut tests = Collector::for_results(results.tests.len());
        let (mut retries, mut suites) = (Retries::default(), HashMap::new());
        for test in &results.tests {
            let attempts = attempts(input, test, &dialect.browser(test));
            let name = name(input, test, dialect);
            if failed(&attempts) && hooks::add(&mut tests, &mut report.errors, &name, &attempts) {
                continue;
            }
            if dialect == Dialect::JunitToCtrf {
                let suite = suites.len();
                let suite = *suites.entry(test.suite.parts()).or_insert(suite);
                let result = RepeatedResult::of_test(name.into(), attempts);
                retries.add(Tool::JunitToCtrf, suite, 0, result);
            } else {
                tests.add(name, attempts);
            }
        }
        for (_, test, attempts) in retries.executions() {
            tests.add(test, attempts);
        }
        report.take_tests(tests);
        // Playwright's reporter counts a failure that the test expects, and shows a pass.
        let is_expected = |test: &&Test| {
            let raw = outcome::status(outcome::CTRF, test.raw_status.or_empty());
            let status = outcome::status(outcome::CTRF, test.status.or_empty());
            status == Some(AttemptStatus::Passed) && raw.is_some_and(AttemptStatus::is_failure)
        };
        let expected: f64 = results.tests.iter().filter(is_expected).map(|_| 1.0).sum();
        report.check_header(input.name, summary.failed.map(|failed| failed - expected));
        if dialect == Dialect::Vitest {
            let warning = "Vitest's CTRF names groups in place of their tests; import Vitest's JSON instead.";
            report.warnings.push(warning.to_owned());
        }
    }
}

/// The contents of `name` and `suite`, which differ between reporters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// `suite` begins with project and file; `name` is the title of the test.
    Playwright,
    /// `name` repeats the titles of `suite` after its file.
    Jest,
    /// `name` is a node id, which repeats `suite`.
    Pytest,
    Vitest,
    /// The converter of JUnit XML, which keeps each case.
    JunitToCtrf,
    Other,
}

impl Dialect {
    fn of(tool: &model::Tool) -> Self {
        match &*tool.name.or_empty().to_ascii_lowercase() {
            "playwright" => Self::Playwright,
            "jest" => Self::Jest,
            "pytest" => Self::Pytest,
            "vitest" => Self::Vitest,
            "junit-to-ctrf" => Self::JunitToCtrf,
            _ => Self::Other,
        }
    }

    /// The browser that the report names. For Playwright this is the project, which precedes the file in `suite`.
    fn browser(self, test: &Test) -> Option<String> {
        let reported = test.browser.as_deref().and_then(text::title);
        reported.or_else(|| {
            let [project, file, ..] = test.suite.parts() else {
                return None;
            };
            let path = test.file_path.as_deref()?.replace('\\', "/");
            (self == Self::Playwright && path.ends_with(file.as_str()))
                .then(|| text::title(project))
                .flatten()
        })
    }
}

fn name(input: &Input<'_>, test: &Test, dialect: Dialect) -> TestName {
    let suite = test.suite.parts();
    let title = test.name.or_empty();
    let own = match dialect {
        Dialect::Pytest => title
            .strip_prefix(&suite.join("::"))
            .and_then(|rest| rest.strip_prefix("::")),
        Dialect::Jest => {
            let titles = suite.get(1..).unwrap_or_default().join(" ");
            title
                .strip_prefix(&titles)
                .and_then(|rest| rest.strip_prefix(' '))
                .filter(|_| suite.len() > 1)
        }
        Dialect::Playwright | Dialect::Vitest | Dialect::JunitToCtrf | Dialect::Other => None,
    };
    let parts = suite
        .iter()
        .map(String::as_str)
        .chain(std::iter::once(own.unwrap_or(title)));
    named(parts, input.stored_file(test.file_path.or_empty()))
}

fn attempts(input: &Input<'_>, test: &Test, browser: &Option<String>) -> Vec<Attempt> {
    let browser_bytes = browser.as_ref().map_or(0, String::len);
    if !memory::charge(browser_bytes.saturating_mul(test.retry_attempts.len())) {
        return Vec::new();
    }
    let last = attempt(input, test, browser);
    let mut earlier: Vec<&Test> = test.retry_attempts.iter().collect();
    // The sort is stable: attempts without a number stay in order.
    earlier.sort_by(|a, b| a.attempt.unwrap_or(0.0).total_cmp(&b.attempt.unwrap_or(0.0)));
    let mut attempts: Vec<Attempt> = earlier
        .into_iter()
        .map(|earlier| attempt(input, earlier, browser))
        .collect();
    if attempts.is_empty() && !last.status.is_skip() {
        // Most reporters write only the number of retries. Only a failed test is retried.
        let retries = test.retries.and_then(time::counted_attempts);
        let flaky = test.flaky == Some(true) && last.status == AttemptStatus::Passed;
        let count = retries.unwrap_or(0).max(usize::from(flaky));
        let mut failed = failure::as_reported(AttemptStatus::Failed, Vec::new(), None, None);
        failed.browser.clone_from(browser);
        attempts.resize(count, failed);
    }
    attempts.push(last);
    attempts
}

fn attempt(input: &Input<'_>, test: &Test, browser: &Option<String>) -> Attempt {
    let error = input.error(
        test.message.as_deref(),
        test.trace.as_deref(),
        test.snippet.as_deref(),
    );
    let status = status(input, test, error.as_ref());
    let may_have_error = status.is_failure() || status == AttemptStatus::Interrupted;
    let (start, stop) = (test.start.time(), test.stop.time());
    let between = || u64::try_from(stop?.since_ms(start?)).ok();
    let duration = test.duration.ms().or_else(between);
    let errors = error.into_iter().filter(|_| may_have_error).collect();
    let mut attempt = failure::as_reported(status, errors, duration, start)
        .skipped_because(text::skip_reason(test.message.or_empty()));
    attempt.browser.clone_from(browser);
    let mut collected = Collected::default();
    for file in test.attachments.iter() {
        let (name, kind) = (file.name.as_deref(), file.content_type.as_deref());
        collected.file(input, name, kind, file.path.as_deref());
    }
    for line in test.stdout.iter() {
        collected.print(line.or_empty());
        collected.print("\n");
    }
    collected.give_to(&mut attempt);
    attempt
}

/// CTRF has no status for time-outs and interruptions; `rawStatus` and messages do.
fn status(input: &Input<'_>, test: &Test, error: Option<&ErrorDetail>) -> AttemptStatus {
    let raw = outcome::status(outcome::CTRF, test.raw_status.or_empty());
    match (input.status(outcome::CTRF, test.status.or_empty()), raw) {
        (_, Some(AttemptStatus::Interrupted)) => AttemptStatus::Interrupted,
        (AttemptStatus::Passed, _) if never_stopped(test) => AttemptStatus::Interrupted,
        (AttemptStatus::Failed, Some(AttemptStatus::TimedOut)) => AttemptStatus::TimedOut,
        (AttemptStatus::Failed, _) => failure::status(error.map(std::slice::from_ref).unwrap_or_default()),
        (status, _) => status,
    }
}

/// pytest's reporter writes a test that was interrupted as passed at time 0.
fn never_stopped(test: &Test) -> bool {
    test.stop == Some(0.0) && test.duration.is_some_and(|duration| duration < 0.0)
}

fn context(environment: &Environment) -> RunContext {
    let value = |text: &json::Text| text::title(text.or_empty());
    RunContext {
        branch: value(&environment.branch_name),
        commit_sha: value(&environment.commit),
        run_url: value(&environment.build_url),
        ..RunContext::default()
    }
}

/// `2`, `2/3` or `2-of-3`.
fn shard(text: &str) -> Option<ShardIndex> {
    let mut numbers = text
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse::<u32>().ok());
    let index = numbers.next().filter(|index| *index >= 1)?;
    Some(ShardIndex {
        index,
        total: numbers.next().filter(|total| *total >= index),
    })
}
