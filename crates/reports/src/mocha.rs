//! Mocha's own JSON, and mochawesome's.

use std::collections::{HashMap, HashSet};

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    test::TestName,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    attempt_output::Collected,
    collect::{Collector, named},
    failure,
    hooks::{self, Owner},
    input::Input,
    json::{self, Shape},
    memory, outcome, paths,
    report::{Format, Report},
    time,
};

impl json::Document for Run {
    const FORMAT: Format = Format::Mocha;
    const SHAPE: Shape = Shape::of_list("Mocha JSON", "stats").with_lists("tests");

    fn add_to(self, input: &Input<'_>, report: &mut Report) {
        self.stats.widen(input, report);
        let mut pending = count(self.pending.iter());
        // The error of a thrown value that is no `Error` may be empty.
        let without_error = |test: &&PlainTest| test.err.error(input).is_none();
        let mut failed = count(self.failures.iter().filter(without_error));
        let mut tests = Collector::for_results(self.tests.len());
        for test in &self.tests {
            let error = test.err.error(input);
            let status = if error.is_some() || take(&mut failed, test) {
                AttemptStatus::Failed
            } else if take(&mut pending, test) {
                AttemptStatus::Skipped
            } else {
                AttemptStatus::Passed
            };
            let last = failure::attempt(status, error.into_iter().collect(), test.duration.ms(), None);
            tests.add(test.test(input), with_retries(last, *test.current_retry));
        }
        // A failed hook is listed among the failures, but is not a test.
        let identities: HashSet<(&str, &str)> = self.tests.iter().map(PlainTest::identity).collect();
        let is_hook = |test: &&PlainTest| !identities.contains(&test.identity());
        for hook in self.failures.iter().filter(is_hook) {
            let errors: Vec<_> = hook.err.error(input).into_iter().collect();
            let attempt = [failure::attempt(AttemptStatus::Failed, errors, None, None)];
            if !hooks::add(&mut tests, &mut report.errors, &hook.test(input), &attempt) {
                let errors = attempt.into_iter().flat_map(|attempt| attempt.errors);
                hooks::push_error(&mut report.errors, hook.identity().0, errors.collect());
            }
        }
        report.take_tests(tests);
        report.check_header(input.name, *self.stats.failures);
    }
}

/// The tests of a list by their identity. Tests of one title may have several outcomes, so each entry of a list stands
/// for one test.
fn count<'t>(tests: impl Iterator<Item = &'t PlainTest>) -> HashMap<(&'t str, &'t str), u32> {
    let mut counts = HashMap::new();
    for identity in tests.map(PlainTest::identity) {
        *counts.entry(identity).or_default() += 1;
    }
    counts
}

/// Takes a test from a list. Returns whether it was there.
fn take<'t>(counts: &mut HashMap<(&'t str, &'t str), u32>, test: &'t PlainTest) -> bool {
    let count = counts.get_mut(&test.identity());
    count.is_some_and(|count| std::mem::replace(count, count.saturating_sub(1)) > 0)
}

impl json::Document for AwesomeRun {
    const FORMAT: Format = Format::Mochawesome;
    const SHAPE: Shape = Shape::of_list("mochawesome JSON", "results").with_lists("tests");

    fn add_to(self, input: &Input<'_>, report: &mut Report) {
        self.stats.widen(input, report);
        let mut tests = Collector::default();
        for suite in &self.results {
            suite.read(input, &mut Vec::new(), None, &mut tests, &mut report.errors);
        }
        report.take_tests(tests);
        report.check_header(input.name, *self.stats.failures);
    }
}

/// The report of a run by Mocha's reporter `json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Run {
    stats: Stats,
    tests: json::List<PlainTest>,
    pending: json::List<PlainTest>,
    failures: json::List<PlainTest>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stats {
    start: json::Text,
    end: json::Text,
    failures: json::Number,
}

impl Stats {
    fn widen(&self, input: &Input<'_>, report: &mut Report) {
        for time in [&self.start, &self.end].into_iter().flatten() {
            report.widen(input.time(time), None);
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PlainTest {
    title: json::Text,
    full_title: json::Text,
    file: json::Text,
    duration: json::Number,
    current_retry: json::Number,
    err: ErrorObject,
}

impl PlainTest {
    fn identity(&self) -> (&str, &str) {
        let title = self.full_title.as_deref().or(self.title.as_deref());
        (title.unwrap_or_default(), self.file.or_empty())
    }

    fn test(&self, input: &Input<'_>) -> TestName {
        let (title, file) = self.identity();
        named([title], input.stored_file(file))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorObject {
    message: json::Text,
    stack: json::Text,
    /// Mochawesome's name for the stack.
    estack: json::Text,
}

impl ErrorObject {
    fn error(&self, input: &Input<'_>) -> Option<ErrorDetail> {
        match self.stack.as_deref().or(self.estack.as_deref()) {
            Some(stack) => input.error_of_stack(stack, None),
            None => input.error(self.message.as_deref(), None, None),
        }
    }
}

/// mochawesome's report of a run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AwesomeRun {
    stats: Stats,
    results: json::List<Suite>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Suite {
    title: json::Text,
    full_file: json::Text,
    file: json::Text,
    before_hooks: json::List<AwesomeTest>,
    after_hooks: json::List<AwesomeTest>,
    tests: json::List<AwesomeTest>,
    suites: json::List<Suite>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AwesomeTest {
    title: json::Text,
    full_title: json::Text,
    state: json::Text,
    pending: json::Flag,
    timed_out: json::Flag,
    duration: json::Number,
    err: ErrorObject,
    /// What the test added to the report, as JSON in a text: a path or an address, one with a title, or several.
    context: json::Text,
}

impl Suite {
    /// Reads a suite with its contents. The JSON parser bounds its depth.
    fn read<'s>(
        &'s self,
        input: &Input<'_>,
        titles: &mut Vec<&'s str>,
        file: Option<&'s str>,
        tests: &mut Collector,
        errors: &mut Vec<ErrorDetail>,
    ) {
        titles.push(self.title.or_empty());
        let file = self.full_file.not_blank().or(self.file.not_blank()).or(file);
        let file_path = file.and_then(|file| input.stored_file(file));
        let outer_bytes = titles.iter().map(|title| title.len()).sum::<usize>() + file.map_or(0, str::len);
        for test in &self.tests {
            if !memory::charge(outer_bytes) {
                return;
            }
            let title = test.title.or_empty();
            // Mocha's own reporters also join titles with spaces.
            let composed = || {
                let parts = titles
                    .iter()
                    .copied()
                    .chain([title])
                    .filter(|part| !part.is_empty());
                parts.collect::<Vec<_>>().join(" ")
            };
            let name = test.full_title.0.clone().unwrap_or_else(composed);
            let test_name = named([name.as_str()], file_path.clone());
            tests.add(test_name, vec![test.attempt(input)]);
        }
        for hook in self.before_hooks.iter().chain(&self.after_hooks) {
            let title = hook.full_title.as_deref().or(hook.title.as_deref());
            if hook.state.as_deref() == Some("failed") {
                let details = hook.err.error(input).into_iter().collect();
                self.add_hook(
                    tests,
                    errors,
                    title.unwrap_or_default(),
                    file_path.clone(),
                    details,
                );
            }
        }
        for suite in &self.suites {
            suite.read(input, titles, file, tests, errors);
        }
        titles.pop();
    }

    /// Adds the failure of a hook to its test, which may be in a suite inside of the hook's, or to the errors of the run.
    fn add_hook(
        &self,
        tests: &mut Collector,
        errors: &mut Vec<ErrorDetail>,
        title: &str,
        file_path: Option<String>,
        details: Vec<ErrorDetail>,
    ) {
        let Some(Owner::Test { outer, title }) = hooks::owner(title) else {
            return hooks::add_to_suite(tests, errors, title, file_path.as_deref(), details);
        };
        let listed = self.full_title_of(title).map(str::to_owned);
        let name = listed.unwrap_or_else(|| format!("{outer}{title}"));
        let test = named([name.as_str()], file_path);
        let attempt = failure::attempt(AttemptStatus::Failed, details, None, None);
        hooks::add_to_test(tests, test, vec![attempt]);
    }

    /// The full title of the first test with this title.
    fn full_title_of(&self, title: &str) -> Option<&str> {
        let is_wanted = |test: &&AwesomeTest| test.title.as_deref() == Some(title);
        let own = self.tests.iter().find(is_wanted);
        own.and_then(|test| test.full_title.as_deref())
            .or_else(|| self.suites.iter().find_map(|suite| suite.full_title_of(title)))
    }
}

impl AwesomeTest {
    fn attempt(&self, input: &Input<'_>) -> Attempt {
        // A test that never ran has no state.
        let reported = self
            .state
            .as_deref()
            .map_or(AttemptStatus::Skipped, |word| input.status(outcome::OTHERS, word));
        let status = if reported == AttemptStatus::Failed && self.timed_out == Some(true) {
            AttemptStatus::TimedOut
        } else if reported == AttemptStatus::Passed && self.pending == Some(true) {
            AttemptStatus::Skipped
        } else {
            reported
        };
        let duration = self.duration.ms().filter(|_| status != AttemptStatus::Skipped);
        let errors = self.err.error(input).into_iter().collect();
        let mut attempt = failure::attempt(status, errors, duration, None);
        let context = self.context.as_deref().map(serde_json::from_str::<Value>);
        if let Some(Ok(context)) = context {
            let mut collected = Collected::default();
            collect(&context, None, input, &mut collected);
            collected.give_to(&mut attempt);
        }
        attempt
    }
}

/// Suffixes of the files that mochawesome shows as pictures and videos.
const MEDIA: &[&str] = &["png", "jpg", "jpeg", "gif", "webp", "svg", "mp4", "webm", "mov"];

/// Adds the pictures, videos and addresses of a context. Other texts are notes.
fn collect(context: &Value, title: Option<&str>, input: &Input<'_>, collected: &mut Collected) {
    match context {
        Value::String(text) => {
            let suffix = text
                .rsplit_once('.')
                .map(|(_, suffix)| suffix.to_ascii_lowercase());
            let is_media = suffix.is_some_and(|suffix| MEDIA.contains(&suffix.as_str()));
            if !text.contains('\n') && (is_media || paths::is_address(text)) {
                collected.file(input, title, None, Some(text));
            }
        }
        Value::Array(several) => {
            for context in several {
                collect(context, title, input, collected);
            }
        }
        Value::Object(fields) => {
            let title = fields.get("title").and_then(Value::as_str);
            if let Some(value) = fields.get("value") {
                collect(value, title, input, collected);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The attempts of a test. Mocha reports only the number of retries before the last attempt.
fn with_retries(last: Attempt, retries: Option<f64>) -> Vec<Attempt> {
    let retries = retries.and_then(time::counted_attempts);
    let earlier =
        (0..retries.unwrap_or(0)).map(|_| failure::attempt(AttemptStatus::Failed, Vec::new(), None, None));
    earlier.chain([last]).collect()
}
