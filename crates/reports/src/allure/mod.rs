//! Allure results: one file per attempt, and files about the fixtures and the errors of a run beside them.

mod folder;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    run::RunState,
    stable_name::stable_name,
    test::{ShownAs, TestName},
};
use serde::Deserialize;

use crate::{
    attempt_output::Collected,
    collect::LocatedTest,
    failure,
    input::Input,
    json::{self, Shape},
    limits, memory, outcome, paths,
    report::{Format, ReadError, Report, ReportedTest},
    text,
};

pub(crate) use self::folder::join;

/// What a file says about others of its folder. Files are known by hashes of their uuids.
pub(crate) enum Part {
    /// The result of an attempt.
    Result {
        uuid: u64,
        /// What the attempts of one test share.
        history: String,
        /// Whether a result of the history after a failed one is its retry.
        may_retry: bool,
    },
    /// The fixtures of some results that failed.
    Container {
        children: Vec<u64>,
        failed: Vec<FailedFixture>,
    },
    /// The errors of the run are those of the report.
    Globals,
}

/// A set-up or tear-down that failed.
pub(crate) struct FailedFixture {
    name: String,
    error: ErrorDetail,
}

/// Reads a result, a container or the errors of a run.
pub(crate) fn read(input: &Input<'_>) -> Result<(Report, Part), ReadError> {
    let mut report = Report::empty(Format::Allure);
    if input.name.ends_with("-globals.json") {
        let shape = Shape::of_list("list of errors of Allure", "errors").with_lists("");
        for error in json::parse::<Globals>(input, shape)?
            .value
            .errors
            .iter()
            .take(limits::REPORT_ERRORS)
        {
            report.widen(error.timestamp.time(), None);
            report
                .errors
                .extend(input.error(error.message.as_deref(), error.trace.as_deref(), None));
        }
        return Ok((report, Part::Globals));
    }
    let shape = Shape::of_list("Allure result", "uuid").with_lists("");
    let result = json::parse::<TestResult>(input, shape)?.value;
    if result.is_container() {
        let part = result.container(input);
        return Ok((report, part));
    }
    let attempt = result.attempt(input);
    report.widen(attempt.started_at, attempt.duration_ms);
    if attempt.status == AttemptStatus::Interrupted {
        report.state = RunState::Interrupted;
    }
    let test = result.test(input);
    memory::keep_test(&test.test, test.found_file.as_deref());
    memory::keep_attempts(std::slice::from_ref(&attempt));
    let part = Part::Result {
        uuid: hash(result.uuid.or_empty()),
        history: result.history(&test.test),
        may_retry: result.may_retry(attempt.status),
    };
    report.tests.push(ReportedTest {
        test: test.test,
        shown_as: ShownAs {
            name: None,
            file_path: test.found_file,
        },
        attempts: vec![attempt].into(),
    });
    Ok((report, part))
}

fn hash(uuid: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    uuid.hash(&mut hasher);
    hasher.finish()
}

/// A result or a container.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TestResult {
    uuid: json::Text,
    history_id: json::Text,
    name: json::Text,
    full_name: json::Text,
    title_path: json::Texts,
    status: json::Text,
    stage: json::Text,
    status_details: Option<Details>,
    parameters: json::List<NameAndValue>,
    labels: json::List<NameAndValue>,
    start: json::Number,
    stop: json::Number,
    attachments: json::List<NamedFile>,
    steps: json::List<Step>,
    children: json::Texts,
    befores: json::List<Fixture>,
    afters: json::List<Fixture>,
}

/// A fixture of a container.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Fixture {
    name: json::Text,
    status: json::Text,
    status_details: Option<Details>,
}

/// The errors of a run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Globals {
    errors: json::List<GlobalError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GlobalError {
    message: json::Text,
    trace: json::Text,
    timestamp: json::Number,
}

/// A step of a test. The JSON parser bounds its depth.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    attachments: json::List<NamedFile>,
    steps: json::List<Step>,
}

/// An attachment, whose file is beside the result.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedFile {
    name: json::Text,
    source: json::Text,
    #[serde(rename = "type")]
    kind: json::Text,
}

impl NamedFile {
    fn collect(&self, input: &Input<'_>, collected: &mut Collected) {
        let folder = paths::folder(input.name);
        let path = self.source.as_deref().map(|source| match folder {
            "" => source.to_owned(),
            folder => paths::join(folder, source),
        });
        collected.file(input, self.name.as_deref(), self.kind.as_deref(), path.as_deref());
    }
}

impl Step {
    fn collect(&self, input: &Input<'_>, collected: &mut Collected) {
        for file in &self.attachments {
            file.collect(input, collected);
        }
        for step in &self.steps {
            step.collect(input, collected);
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    message: json::Text,
    trace: json::Text,
}

impl Details {
    fn error(&self, input: &Input<'_>) -> Option<ErrorDetail> {
        input.error(self.message.as_deref(), self.trace.as_deref(), None)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NameAndValue {
    name: json::Text,
    value: json::Text,
    excluded: Option<bool>,
}

impl Fixture {
    /// The fixture, if it failed. One without a status never ran.
    fn failed(&self, input: &Input<'_>) -> Option<FailedFixture> {
        let status = input.status(outcome::OTHERS, self.status.as_deref()?);
        let name = self.name.not_blank().unwrap_or("hook");
        let error = self
            .status_details
            .as_ref()
            .and_then(|details| details.error(input));
        status.is_failure().then(|| FailedFixture {
            name: name.to_owned(),
            error: error.unwrap_or_else(|| failure::error_saying(format!("{name} failed"))),
        })
    }
}

impl TestResult {
    /// Whether it has neither a test nor a status, as a container.
    fn is_container(&self) -> bool {
        let has_fixtures = !(self.children.is_empty() && self.befores.is_empty() && self.afters.is_empty());
        self.status.is_none() && (has_fixtures || self.name.is_none() && self.full_name.is_none())
    }

    fn container(&self, input: &Input<'_>) -> Part {
        let fixtures = self.befores.iter().chain(self.afters.iter());
        let failed: Vec<FailedFixture> = fixtures
            .filter_map(|fixture| fixture.failed(input))
            .take(limits::REPORT_ERRORS)
            .collect();
        let children = self.children.iter().filter(|_| !failed.is_empty());
        Part::Container {
            children: children.map(|uuid| hash(uuid)).collect(),
            failed,
        }
    }

    /// Whether the result is a retry, if one of its history failed before. Mocha's and Playwright's adapters number
    /// retries. Without a number, names must be unique, so that no other test has this history.
    fn may_retry(&self, status: AttemptStatus) -> bool {
        if self.parameter("Retry").is_some() {
            // Playwright lists the tests of a serial group that it did not start again.
            let is_started = !self.label("thread").is_some_and(|thread| thread.ends_with("--1"));
            return status != AttemptStatus::Skipped || is_started;
        }
        match self.label("framework") {
            Some("pytest" | "junit-platform" | "playwright") => true,
            // A parameterised class repeats its methods.
            Some("junit4") => !self.name.or_empty().ends_with(']'),
            _ => false,
        }
    }

    fn attempt(&self, input: &Input<'_>) -> Attempt {
        let (started_at, stopped_at) = (self.start.time(), self.stop.time());
        let duration = started_at
            .zip(stopped_at)
            .and_then(|(start, stop)| u64::try_from(stop.since_ms(start).max(0)).ok());
        let details = self.status_details.as_ref();
        let message = details.and_then(|details| details.message.as_deref());
        let errors: Vec<_> = details
            .and_then(|details| details.error(input))
            .into_iter()
            .collect();
        let (status, errors) = match self.status.as_deref() {
            None if matches!(self.stage.or_empty(), "pending" | "scheduled") => {
                (AttemptStatus::Skipped, errors)
            }
            // Allure writes the file when the test starts. A file without a status was never completed.
            None => (AttemptStatus::Interrupted, errors),
            // Allure calls a failure without an assertion `broken`.
            Some(word) => match input.status(outcome::OTHERS, word) {
                AttemptStatus::Failed
                    if errors.is_empty() && self.label("framework") == Some("playwright") =>
                {
                    (AttemptStatus::Failed, vec![failure::error_saying(MISSING_ERROR)])
                }
                AttemptStatus::Passed if message == Some(UNDEFINED) => (AttemptStatus::Failed, errors),
                AttemptStatus::Failed => (failure::status(&errors), errors),
                status @ (AttemptStatus::TimedOut | AttemptStatus::Interrupted) => (status, errors),
                status @ (AttemptStatus::Passed | AttemptStatus::Skipped) => (status, Vec::new()),
            },
        };
        let mut attempt = failure::as_reported(status, errors, duration, started_at)
            .skipped_because(message.and_then(text::skip_reason));
        attempt.browser = self.parameter("Project").and_then(text::title);
        let mut collected = Collected::default();
        for file in &self.attachments {
            file.collect(input, &mut collected);
        }
        for step in &self.steps {
            step.collect(input, &mut collected);
        }
        collected.give_to(&mut attempt);
        attempt
    }

    /// The test's name. It equals the name in the framework's own report if Allure has its parts.
    fn test(&self, input: &Input<'_>) -> LocatedTest {
        let file_and_titles = self.file_and_titles();
        let title = self.name.as_deref().unwrap_or(self.full_name.or_empty());
        let file = file_and_titles.file.as_deref();
        let project = self.parameter("Project");
        let parts = project
            .into_iter()
            .chain(file)
            .chain(file_and_titles.titles.iter().map(String::as_str));
        let mut name = text::joined(parts.chain(std::iter::once(title)));
        let values = self.values_beside_name(title);
        if !values.is_empty() {
            name =
                text::shortened_name(&format!("{name} [{}]", text::plain(&values.join(", ")))).into_owned();
        }
        let known_file = || {
            input
                .known_files?
                .of_dotted(self.label("testClass").or_else(|| self.label("package"))?)
        };
        let file_path = file.map(|file| input.stored_path(file));
        let found_file = match file_path {
            Some(_) => None,
            None => known_file().map(str::to_owned),
        };
        LocatedTest {
            test: TestName { name, file_path },
            found_file,
        }
    }

    /// What the attempts of one test share: the history id, the values of the parameters, and where it ran. Some adapters
    /// write one history id for all arguments of a parameterised test, or for all browsers.
    fn history(&self, test: &TestName) -> String {
        let id = self.history_id.as_deref();
        let mut history = format!("{} {} {:?}", id.unwrap_or_default(), test.name, test.file_path);
        let mut parameters: Vec<(&str, &str)> = self
            .parameters
            .iter()
            .filter(|parameter| parameter.excluded != Some(true))
            .filter_map(|parameter| Some((parameter.name.as_deref()?, parameter.value.as_deref()?)))
            .collect();
        parameters.sort_unstable();
        for (name, value) in parameters {
            history.push_str(&format!("\0{name}={}", stable_name(value)));
        }
        // Playwright retries a test in another worker.
        let is_of_thread = self.label("framework") != Some("playwright");
        for name in ["host", "thread", "parentSuite"] {
            if let Some(value) = self.label(name).filter(|_| is_of_thread || name != "thread") {
                history.push_str(&format!("\0{name}={value}"));
            }
        }
        history
    }

    fn file_and_titles(&self) -> FileAndTitles {
        // In JavaScript `titlePath` begins with the package's name. The full name shows the path without it.
        let path = &self.title_path;
        if let Some(at) = path.iter().position(|part| is_source_file(part)) {
            let whole = path.get(..=at).unwrap_or_default().join("/");
            let inner = path.get(1..=at).unwrap_or_default().join("/");
            let full = self.full_name.or_empty();
            let is_below_package =
                !inner.is_empty() && (full.starts_with(&inner) || full.contains(&format!(":{inner}")));
            let titles = path.get(at + 1..).unwrap_or_default().to_vec();
            return FileAndTitles {
                file: Some(if is_below_package { inner } else { whole }),
                titles,
            };
        }
        if !path.is_empty() {
            return FileAndTitles {
                file: None,
                titles: path.to_vec(),
            };
        }
        let class = self.label("testClass").map(|class| vec![class.to_owned()]);
        let suites = || {
            ["parentSuite", "suite", "subSuite"]
                .iter()
                .filter_map(|name| self.label(name))
                .map(str::to_owned)
        };
        FileAndTitles {
            file: None,
            titles: class.unwrap_or_else(|| suites().collect()),
        }
    }

    /// The values of the parameters that distinguish this test from others of the same name.
    fn values_beside_name(&self, title: &str) -> Vec<&str> {
        if self
            .label("framework")
            .is_some_and(|framework| matches!(framework, "playwright" | "pytest"))
        {
            return Vec::new();
        }
        let values = self
            .parameters
            .iter()
            .filter(|parameter| parameter.excluded != Some(true));
        let values: Vec<&str> = values
            .filter_map(|parameter| parameter.value.as_deref())
            .collect();
        if values.iter().all(|value| title.contains(value)) {
            Vec::new()
        } else {
            values
        }
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        find(&self.parameters, name)
    }

    fn label(&self, name: &str) -> Option<&str> {
        find(&self.labels, name)
    }
}

/// The error for a Playwright failure without one. Allure reports an interruption as a failure and has no status for an
/// unexpected pass.
const MISSING_ERROR: &str =
    "the report tells no error: the test was interrupted, or passed although it was expected to fail";

/// The message of a scenario of cucumber-js with an undefined step, whose status is `passed`.
const UNDEFINED: &str = "The test doesn't have an implementation.";

/// The file and the titles of a test.
struct FileAndTitles {
    file: Option<String>,
    titles: Vec<String>,
}

fn find<'a>(pairs: &'a [NameAndValue], name: &str) -> Option<&'a str> {
    pairs
        .iter()
        .find(|pair| pair.name.as_deref() == Some(name))?
        .value
        .as_deref()
        .filter(|value| !value.is_empty())
}

fn is_source_file(part: &str) -> bool {
    const SUFFIXES: &[&str] = &[
        "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "py", "rb", "go", "rs", "php", "feature",
        "robot", "swift",
    ];
    part.rsplit_once('.')
        .is_some_and(|(stem, suffix)| !stem.is_empty() && SUFFIXES.contains(&suffix))
}
