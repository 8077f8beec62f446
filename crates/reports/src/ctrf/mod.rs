//! CTRF JSON, as its schema defines it and as its reporters write it.

mod model;

use std::collections::HashMap;

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    recording::{RunContext, ShardIndex},
    run::RunState,
    test::TestName,
    timestamp::Timestamp,
};

use self::model::{Environment, File, Test};
use crate::{
    attempt_output::Collected,
    collect::Collector,
    failure, hooks,
    input::Input,
    json::{self, Shape},
    memory, outcome,
    report::{Format, ReadError, Report},
    retries::{RepeatedResult, Retries, Tool, failed},
    text, time,
};

/// The report of one run or shard.
pub(crate) fn read(input: &Input<'_>) -> Result<(Report, Option<usize>), ReadError> {
    let shape = Shape::of_list("CTRF", "results").with_lists("tests");
    let parsed = json::parse::<File>(input, shape)?;
    let results = parsed.value.results.unwrap_or_default();
    let dialect = Dialect::of(results.tool.as_ref().and_then(|tool| tool.name.as_deref()));
    let mut report = Report::empty(Format::Ctrf);
    let environment = results
        .environment
        .or(parsed.value.environment)
        .unwrap_or_default();
    report.shard = environment.shard_id.as_deref().and_then(shard);
    report.context = context(&environment);
    report.run_key = parsed.value.run_id.as_deref().and_then(text::title);
    if let Some(summary) = &results.summary {
        report.widen(summary.start.and_then(time::from_epoch), None);
        report.widen(summary.stop.and_then(time::from_epoch), None);
    }
    let mut tests = Collector::for_results(results.tests.len());
    let (mut retries, mut suites) = (Retries::default(), HashMap::new());
    for test in &results.tests {
        let attempts = attempts(input, test, &dialect.browser(test));
        for attempt in &attempts {
            report.widen(attempt.started_at, attempt.duration_ms);
            if attempt.status == AttemptStatus::Interrupted {
                report.state = RunState::Interrupted;
            }
        }
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
    report.tests = tests.finish();
    if parsed.cut_at.is_none() {
        report.check_header(
            input.name,
            results.summary.as_ref().and_then(|summary| *summary.failed),
        );
    }
    if dialect == Dialect::Vitest {
        report
            .warnings
            .push("Vitest's CTRF names groups in place of their tests; import Vitest's JSON instead.".into());
    }
    report.mark_cut_off(parsed.cut_at);
    Ok((report, parsed.another_at))
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
    fn of(tool: Option<&str>) -> Self {
        match tool.map(str::to_ascii_lowercase).as_deref() {
            Some("playwright") => Self::Playwright,
            Some("jest") => Self::Jest,
            Some("pytest") => Self::Pytest,
            Some("vitest") => Self::Vitest,
            Some("junit-to-ctrf") => Self::JunitToCtrf,
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
    let title = test.name.as_deref().unwrap_or_default();
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
    TestName {
        name: text::joined(parts),
        file_path: test.file_path.as_deref().and_then(|path| input.stored_file(path)),
    }
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
    let start = test.start.and_then(time::from_epoch);
    let duration = test.duration.and_then(time::duration_ms);
    let duration = duration.or_else(|| milliseconds_between(start, *test.stop));
    let errors = error.into_iter().filter(|_| may_have_error).collect();
    let mut attempt = failure::as_reported(status, errors, duration, start)
        .skipped_because(test.message.as_deref().and_then(text::skip_reason));
    attempt.browser.clone_from(browser);
    let mut collected = Collected::default();
    for file in test.attachments.iter() {
        let (name, kind) = (file.name.as_deref(), file.content_type.as_deref());
        collected.file(input, name, kind, file.path.as_deref());
    }
    for line in test.stdout.iter() {
        collected.print(line.as_deref().unwrap_or_default());
        collected.print("\n");
    }
    collected.give_to(&mut attempt);
    attempt
}

/// CTRF has no status for time-outs and interruptions; `rawStatus` and messages do.
fn status(input: &Input<'_>, test: &Test, error: Option<&ErrorDetail>) -> AttemptStatus {
    let raw = test
        .raw_status
        .as_deref()
        .and_then(|word| outcome::status(outcome::CTRF, word));
    match (
        input.status(outcome::CTRF, test.status.as_deref().unwrap_or_default()),
        raw,
    ) {
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

fn milliseconds_between(start: Option<Timestamp>, stop: Option<f64>) -> Option<u64> {
    let stop = stop.and_then(time::from_epoch)?;
    u64::try_from(stop.since_ms(start?)).ok()
}

fn context(environment: &Environment) -> RunContext {
    let value = |text: &Option<String>| text.as_deref().and_then(text::title);
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
