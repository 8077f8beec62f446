//! The failures of a run with their causes, from a server's answer or from a history.

use std::path::Path;

use assay_answers::changes::NotRun;
use assay_cli_local::{
    analysis::{CausedFailure, Causes},
    sources::checkout::sources,
};
use assay_cli_terminal::output;
use assay_domain::{
    attempt::AttemptStatus,
    cause::{Action, Cause},
    run::MissingNotJudged,
    test::TestName,
    timestamp::Timestamp,
};
use assay_flakiness::mine_and_shared;
use assay_reports::without_package;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(test)]
pub(crate) mod fixture;

/// A server's answer has no causes of the failures.
#[derive(Debug, thiserror::Error)]
pub enum Unexplained {
    /// The answer to an upload has other fields.
    #[error("the server's answer does not explain the failures: {0}")]
    Upload(#[source] serde_json::Error),
    /// The answer to an upload has no failures.
    #[error("the server does not explain failures, because it is older than this program; update the server")]
    OldServer,
    /// The answer about a stored run has other fields.
    #[error(
        "the server's answer does not explain the failures ({0}); if the server is older than this program, update it"
    )]
    StoredRun(#[source] serde_json::Error),
}

/// Most missing tests that a problem names.
const NAMED: usize = 5;
/// The reasons for which a run has nothing to be compared with: the stable branch has too few runs.
const NOTHING_TO_COMPARE: [MissingNotJudged; 2] = [MissingNotJudged::NoBase, MissingNotJudged::FewRuns];

/// The failures of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JudgedRun {
    /// P(this branch broke at least one of the failed tests).
    pub mine: f64,
    /// The action that follows from the probabilities alone.
    pub action: Action,
    /// Why the report may lack results; none where it is whole.
    pub incomplete: Option<String>,
    /// Tests of the report.
    pub tests: u64,
    /// Failed and recovered tests, whether listed or not.
    pub total: usize,
    /// The failed and recovered tests, which the file of a decision has apart.
    #[serde(skip)]
    pub failures: Vec<JudgedFailure>,
    /// Why the run lacks tests or files that the stable branch has; none if it may lack them.
    pub lacking: Option<String>,
}

/// A failed or recovered test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JudgedFailure {
    /// The full name.
    pub test_name: String,
    /// The file, if it is known.
    pub file_path: Option<String>,
    /// Whether a retry passed.
    pub recovered: bool,
    /// The most probable cause.
    pub cause: Cause,
    /// P(this branch broke it).
    pub mine: f64,
    /// P(it failed because of the environment, or of code that was broken before).
    pub lasting: f64,
    /// P(it failed because of the environment).
    pub environment: f64,
    /// Whether many tests failed together in its run. Such failures have one cause.
    pub in_mass_failure: bool,
    /// Whether reruns cleared it: it passed again, or a test of its mass failure did, so this change is an unlikely cause.
    pub cleared: bool,
    /// One sentence about the cause.
    pub explanation: String,
    /// Whether the test is broken on the stable branch.
    pub broken_on_stable: bool,
    /// Whether its verdict is flaky.
    pub known_as_flaky: bool,
    /// Runs without this change in which the test ran.
    pub runs_elsewhere: u32,
    /// Tests of this run that failed with the same error, this one among them.
    pub same_error: u32,
    /// Its first known failure.
    pub first_failed_at: Option<Timestamp>,
    /// The fingerprint of its error, if it has one.
    pub fingerprint: Option<String>,
}

impl JudgedFailure {
    /// P(this branch broke it), and P(a cause outside of it that failed others of the run, too).
    pub(super) fn mine_and_shared(&self) -> (f64, f64) {
        mine_and_shared(self.mine, self.in_mass_failure, self.environment)
    }
}

/// The answer of the changes route, as far as the gate needs it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Changes {
    missing_not_judged: Option<String>,
    no_longer_reported: MissingTests,
}

#[derive(Debug, Deserialize)]
struct MissingTests {
    total: u64,
    tests: Vec<MissingTest>,
}

#[derive(Debug, Deserialize)]
struct MissingTest {
    name: String,
}

/// The server's answer, as far as the gate needs it.
#[derive(Debug, Deserialize)]
struct Answer {
    tests: u64,
    failures: Option<Failures>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Failures {
    gate: Gate,
    incomplete: Option<String>,
    #[serde(default)]
    not_run: NotRun,
    total: usize,
    failures: Vec<Failure>,
    #[serde(default)]
    new_tests: NewTests,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NewTests {
    tests: Vec<TestName>,
}

/// The answer of the failures route, as far as the gate needs it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredRun {
    run: RunSize,
    gate: Gate,
    incomplete: Option<String>,
    #[serde(default)]
    not_run: NotRun,
    page: FailurePage,
    failures: Vec<Failure>,
}

#[derive(Debug, Deserialize)]
struct RunSize {
    tests: u64,
}

#[derive(Debug, Deserialize)]
struct FailurePage {
    total: usize,
}

#[derive(Debug, Deserialize)]
struct Gate {
    mine: f64,
    action: String,
}

impl Gate {
    /// An unknown word of a newer server counts as an action that excuses no failure.
    fn action(&self) -> Action {
        self.action.parse().unwrap_or(Action::Block)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    test_name: String,
    file_path: Option<String>,
    status: String,
    cause: String,
    mine: f64,
    #[serde(default)]
    probabilities: Lasting,
    #[serde(default)]
    in_mass_failure: bool,
    explanation: String,
    same_error: SameError,
    verdict: Option<Verdict>,
    stable: Stable,
    runs_elsewhere: u32,
    first_failed_at: Option<Timestamp>,
    fingerprint: Option<String>,
}

/// The probabilities of causes that last from one run to the next.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Lasting {
    environment: f64,
    broken_before: f64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SameError {
    in_this_run: u32,
}

#[derive(Debug, Deserialize)]
struct Verdict {
    status: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stable {
    last_status: Option<String>,
}

impl JudgedRun {
    /// The run with a problem if it no longer reports more than `most` tests of the stable branch, or if the server cannot
    /// judge that.
    pub fn with_changes(self, changes: &Value, most: u64) -> Result<Self, Unexplained> {
        let Changes {
            missing_not_judged,
            no_longer_reported,
        } = Changes::deserialize(changes).map_err(Unexplained::StoredRun)?;
        let MissingTests { total, tests } = no_longer_reported;
        let lacking = match missing_not_judged {
            Some(reason)
                if NOTHING_TO_COMPARE
                    .map(MissingNotJudged::as_str)
                    .contains(&reason.as_str()) =>
            {
                None
            }
            Some(reason) => Some(format!(
                "Tests may be missing, and --max-vanished cannot tell which: the run is {reason}"
            )),
            None if total > most => {
                let names: Vec<String> = tests.into_iter().take(NAMED).map(|test| test.name).collect();
                Some(format!(
                    "Not reported any more are {}, more than the {most} of --max-vanished: {}",
                    output::count(total, "test"),
                    names.join(", ")
                ))
            }
            None => None,
        };
        Ok(Self {
            lacking: lacking.or(self.lacking),
            ..self
        })
    }

    /// The failures of a server's answer to `failures=true`. An error names the missing field.
    pub fn of_answer(answer: &Value) -> Result<Self, Unexplained> {
        let answer = Answer::deserialize(answer).map_err(Unexplained::Upload)?;
        let answered_failures = answer.failures.ok_or(Unexplained::OldServer)?;
        Ok(Self {
            mine: answered_failures.gate.mine,
            action: answered_failures.gate.action(),
            incomplete: answered_failures.incomplete,
            tests: answer.tests,
            total: answered_failures.total,
            failures: answered_failures
                .failures
                .into_iter()
                .map(JudgedFailure::from)
                .collect(),
            lacking: None,
        }
        .without(&answered_failures.not_run))
    }

    /// The tests that are new by a server's answer to `failures=true`: the first 50 that no run of the stable branch has
    /// reported.
    pub fn new_tests(answer: &Value) -> Result<Vec<TestName>, Unexplained> {
        let answer = Answer::deserialize(answer).map_err(Unexplained::Upload)?;
        let failures = answer.failures.ok_or(Unexplained::OldServer)?;
        Ok(failures.new_tests.tests)
    }

    /// The failures of a stored run, from the failures route. An error names what the answer lacks.
    pub fn of_stored_run(answer: &Value) -> Result<Self, Unexplained> {
        let stored_run = StoredRun::deserialize(answer).map_err(Unexplained::StoredRun)?;
        Ok(Self {
            mine: stored_run.gate.mine,
            action: stored_run.gate.action(),
            incomplete: stored_run.incomplete,
            tests: stored_run.run.tests,
            total: stored_run.page.total,
            failures: stored_run.failures.into_iter().map(JudgedFailure::from).collect(),
            lacking: None,
        }
        .without(&stored_run.not_run))
    }

    /// The run with a problem if a test failed and others did not run as usual: skipped tests, files that the checkout has,
    /// and classes of which it has a file. The failed test explains the status of the test command, so the status does not
    /// tell whether a file could be loaded, or a set-up failed.
    fn without(self, not_run: &NotRun) -> Self {
        if self.failed().next().is_none() {
            return self;
        }
        let files = not_run.files.iter().filter(|file| is_in_checkout(file));
        let sources = match not_run.classes.is_empty() {
            true => Vec::new(),
            false => sources(Path::new(".")),
        };
        let has_file = |class: &&String| sources.iter().any(|file| is_file_of_class(file, class));
        let groups = files.chain(not_run.classes.iter().filter(has_file));
        let groups = groups.map(|name| format!("all tests of {name}"));
        let skipped = not_run.skipped.iter().map(|test| test.name.clone());
        let named: Vec<String> = groups.chain(skipped).take(NAMED).collect();
        let lacking = format!("Did not run, as in other runs: {}", named.join(", "));
        Self {
            lacking: (!named.is_empty()).then_some(lacking),
            ..self
        }
    }

    /// The failures of a report that was judged by a history.
    pub fn of_causes(causes: Causes, incomplete: Option<String>, tests: usize) -> Self {
        let gate = causes.gates.first();
        Self {
            mine: gate.map_or(0.0, |gate| gate.mine),
            action: gate.map_or(Action::Pass, |gate| gate.action),
            incomplete,
            tests: u64::try_from(tests).unwrap_or(u64::MAX),
            total: causes.causes.len(),
            failures: causes.causes.into_iter().map(JudgedFailure::from).collect(),
            lacking: None,
        }
        .without(&causes.not_run)
    }

    /// The tests that finally failed.
    pub fn failed(&self) -> impl Iterator<Item = &JudgedFailure> {
        self.failures.iter().filter(|failure| !failure.recovered)
    }
}

/// Whether a file is below this folder, or below one above it in the same checkout of Git.
fn is_in_checkout(file: &str) -> bool {
    let Ok(here) = std::env::current_dir() else {
        return false;
    };
    for folder in here.ancestors() {
        if folder.join(file).is_file() {
            return true;
        }
        if folder.join(".git").exists() {
            break;
        }
    }
    false
}

/// Whether a file has the name of a class or of its module, in a folder of the package's name: `org.shop.OrderTest` is in
/// `src/org/shop/OrderTest.java`, `tests.test_cart.TestCart` in `tests/test_cart.py`. A class without a package may be in
/// any folder.
fn is_file_of_class(file: &str, class: &str) -> bool {
    let outer = without_package(class).split([' ', '$']).next().unwrap_or(class);
    let names: Vec<&str> = outer
        .split(['.', '/', ':'])
        .filter(|name| !name.is_empty())
        .collect();
    let path = file.rsplit_once('.').map_or(file, |(path, _)| path);
    let mut path = path.rsplit(['/', '\\', '.']);
    let (stem, folder) = (path.next(), path.next());
    let found = names.iter().rposition(|name| Some(*name) == stem);
    found.is_some_and(|at| {
        let package = at.checked_sub(1).and_then(|before| names.get(before)).copied();
        at + 2 >= names.len() && (package.is_none() || package == folder)
    })
}

impl From<Failure> for JudgedFailure {
    fn from(failure: Failure) -> Self {
        let cause = failure.cause.parse().unwrap_or(Cause::Unclear);
        let verdict = failure.verdict.map(|verdict| verdict.status);
        // A test that is broken on another variant of the stable branch is not broken here.
        let passes_on_stable = failure.stable.last_status.as_deref() == Some("passed");
        let is_broken = verdict.as_deref() == Some("broken") && !passes_on_stable;
        // A flaky test that fails now is not broken, such as one that fails on every weekend.
        let is_flaky = verdict.as_deref() == Some("flaky");
        let fails_on_stable = failure.stable.last_status.as_deref() == Some("failed");
        Self {
            test_name: failure.test_name,
            file_path: failure.file_path,
            recovered: failure.status == AttemptStatus::Passed.as_str(),
            cause,
            mine: failure.mine,
            lasting: failure.probabilities.environment + failure.probabilities.broken_before,
            in_mass_failure: failure.in_mass_failure,
            environment: failure.probabilities.environment,
            cleared: false,
            explanation: failure.explanation,
            broken_on_stable: is_broken || (fails_on_stable && !is_flaky && cause == Cause::BrokenBefore),
            known_as_flaky: is_flaky,
            runs_elsewhere: failure.runs_elsewhere,
            same_error: failure.same_error.in_this_run.saturating_add(1),
            first_failed_at: failure.first_failed_at,
            fingerprint: failure.fingerprint,
        }
    }
}

impl From<CausedFailure> for JudgedFailure {
    fn from(failure: CausedFailure) -> Self {
        let fails_on_stable = failure.stable.last_status == Some(AttemptStatus::Failed);
        Self {
            test_name: failure.test_name,
            file_path: failure.file_path,
            recovered: failure.recovered,
            cause: failure.cause,
            mine: failure.mine,
            lasting: failure.probabilities.environment + failure.probabilities.broken_before,
            in_mass_failure: failure.in_mass_failure,
            environment: failure.probabilities.environment,
            cleared: false,
            explanation: failure.explanation,
            broken_on_stable: fails_on_stable && failure.cause == Cause::BrokenBefore,
            known_as_flaky: false,
            runs_elsewhere: failure.runs_elsewhere,
            same_error: failure.same_error_in_run.saturating_add(1),
            first_failed_at: failure.first_failed_at,
            fingerprint: failure.fingerprint,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_class_is_in_a_file_of_its_name() {
        for (file, class, expected) in [
            (
                "src/test/java/org/shop/OrderTest.java",
                "org.shop.OrderTest",
                true,
            ),
            (
                "src/test/java/org/shop/OrderTest.java",
                "org.shop.OrderTest$Empty",
                true,
            ),
            (
                "src/test/java/org/order/OrderTest.java",
                "org.shop.OrderTest",
                false,
            ),
            ("tests/test_cart.py", "tests.test_cart.TestCart", true),
            ("tests/Shop.Tests/CartTests.cs", "Shop.Tests.CartTests", true),
            ("tests/CartTest.cpp", "CartTest", true),
            ("src/cart.js", "CartTest", false),
        ] {
            assert_eq!(is_file_of_class(file, class), expected, "{file} {class}");
        }
    }

    #[test]
    fn more_missing_tests_than_allowed_are_a_problem_and_so_is_a_partial_run() {
        let run = || JudgedRun {
            mine: 0.0,
            action: Action::Pass,
            incomplete: None,
            tests: 3,
            total: 0,
            failures: Vec::new(),
            lacking: None,
        };
        let lacking = |not_judged: Option<&str>, missing: u64, most: u64| {
            let tests: Vec<Value> = (0..missing)
                .map(|test| json!({"name": format!("t{test}")}))
                .collect();
            let answer = json!({"missingNotJudged": not_judged, "noLongerReported": {"total": missing, "tests": tests}});
            run().with_changes(&answer, most).unwrap().lacking
        };
        assert_eq!(lacking(None, 2, 2), None);
        assert_eq!(
            lacking(None, 2, 1).as_deref(),
            Some("Not reported any more are 2 tests, more than the 1 of --max-vanished: t0, t1")
        );
        assert_eq!(lacking(Some("few_runs"), 0, 0), None);
        assert!(
            lacking(Some("partial"), 0, 0)
                .unwrap()
                .contains("the run is partial")
        );
        assert!(run().with_changes(&json!({}), 0).is_err());
    }
}
