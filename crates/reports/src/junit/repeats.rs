//! Cases that occur several times in a file.

use std::collections::{HashMap, HashSet};

use assay_domain::attempt::{Attempt, AttemptStatus, ErrorDetail};

use super::{dialect::Dialect, suite::Suite};
use crate::{
    collect::{Collector, LocatedTest, continued},
    hooks, limits,
    report::ReportedTest,
    text,
};

/// The cases of a file, each name and file once. A repeated case in one suite is a retry if the case before it failed.
/// Otherwise it is another execution of a test that shares the name.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    tests: Collector,
    /// The number of the suite in which each test occurred last, by the test's index.
    suites: Vec<usize>,
    /// Whether a Go tool wrote each test, by the test's index. Tests beyond its end are not Go's.
    is_go: Vec<bool>,
    /// The indexes of tests whose latest case is skipped with a reason.
    skipped_with_reason: HashSet<usize>,
}

impl Repeats {
    /// An empty collection with memory for the cases of a file of `bytes` bytes.
    pub(super) fn for_file(bytes: usize) -> Self {
        // A case takes some hundred bytes. The upper bound is for large files of few cases with long texts.
        const CASE: usize = 128;
        const MOST: usize = 1 << 16;
        let cases = (bytes / CASE).min(MOST);
        Self {
            tests: Collector::for_results(cases),
            suites: Vec::with_capacity(cases),
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.tests.len()
    }

    /// Adds a case. `has_reason` is set if it is skipped with a reason.
    pub(super) fn add(
        &mut self,
        dialect: Dialect,
        suite: &Suite<'_>,
        test: LocatedTest,
        attempts: Vec<Attempt>,
        has_reason: bool,
    ) {
        let (suites, skipped_with_reason) = (&mut self.suites, &mut self.skipped_with_reason);
        let failed_to_run =
            dialect == Dialect::Jest && test.test.name.starts_with("Test suite failed to run");
        self.tests
            .add_or_join(test, attempts, |index, earlier, mut attempts| {
                let had_reason = skipped_with_reason.contains(&index);
                if has_reason {
                    skipped_with_reason.insert(index);
                } else {
                    skipped_with_reason.remove(&index);
                }
                let last_suite = suites.get_mut(index)?;
                if std::mem::replace(last_suite, suite.number) != suite.number {
                    return Some(attempts);
                }
                if dialect == Dialect::Pytest {
                    join_pytest_case(earlier, attempts);
                } else if matches!(dialect, Dialect::Surefire | Dialect::Other)
                    && ((!had_reason && is_testng_retry(earlier))
                        || (!has_reason && is_testng_retry(&attempts) && has_ended(earlier)))
                {
                    join_testng_case(earlier, attempts);
                } else if failed_to_run {
                    // jest-junit writes a suite that failed to run twice, in two forms.
                    if let (Some(last), Some(again)) = (earlier.last_mut(), attempts.pop()) {
                        last.errors.extend(again.errors);
                    }
                } else if matches!(dialect, Dialect::Playwright | Dialect::Vitest) {
                    // They write all attempts into one case. Another case is a repetition on purpose.
                    return Some(attempts);
                } else {
                    return continued(earlier, attempts);
                }
                None
            });
        if self.tests.len() > self.suites.len() {
            if has_reason {
                self.skipped_with_reason.insert(self.suites.len());
            }
            self.suites.push(suite.number);
            if matches!(dialect, Dialect::Gotestsum | Dialect::GoJunitReport) {
                self.is_go.resize(self.suites.len(), false);
                if let Some(last) = self.is_go.last_mut() {
                    *last = true;
                }
            }
        }
    }

    /// Adds the failure of a test's hook: to the test, if its suite has it already.
    pub(super) fn add_hook(&mut self, suite: &Suite<'_>, test: LocatedTest, attempts: Vec<Attempt>) {
        let known_tests = self.tests.len();
        hooks::add_to_test(&mut self.tests, test, attempts);
        if self.tests.len() > known_tests {
            self.suites.push(suite.number);
        }
    }

    pub(super) fn finish(self) -> Vec<ReportedTest> {
        let tests = self.tests.finish();
        if self.is_go.is_empty() {
            tests
        } else {
            without_groups(tests, &self.is_go)
        }
    }
}

/// Removes tests that only group subtests. Go's tools list such a test beside its subtests, and it fails with them. It
/// stays only if it failed and no subtest did.
fn without_groups(tests: Vec<ReportedTest>, by_go: &[bool]) -> Vec<ReportedTest> {
    let failed = |test: &ReportedTest| test.attempts.iter().any(|attempt| attempt.status.is_failure());
    let is_go = |index: usize| by_go.get(index).is_some_and(|by_go| *by_go);
    // Whether each group contains a failed test.
    let mut groups: HashMap<&str, bool> = HashMap::new();
    for (_, test) in tests.iter().enumerate().filter(|(index, _)| is_go(*index)) {
        let name = &test.test.name;
        // A package name may contain slashes.
        let own = name.find(text::JOINT).map_or(0, |at| at + text::JOINT.len());
        let slashes = name.match_indices('/').filter(|(slash, _)| *slash > own);
        for (slash, _) in slashes.take(limits::DEPTH) {
            let group = name.get(..slash).unwrap_or_default();
            *groups.entry(group).or_default() |= failed(test);
        }
    }
    let is_test: Vec<bool> = tests
        .iter()
        .enumerate()
        .map(|(index, test)| match groups.get(&*test.test.name) {
            Some(has_failed_test) if is_go(index) => failed(test) && !has_failed_test,
            Some(_) | None => true,
        })
        .collect();
    tests
        .into_iter()
        .zip(is_test)
        .filter_map(|(test, is_test)| is_test.then_some(test))
        .collect()
}

/// pytest writes a failure of a test and one of its teardown as two cases. pytest-rerunfailures writes a failed attempt
/// that is run again as an empty, passed case.
fn join_pytest_case(earlier: &mut Vec<Attempt>, mut attempts: Vec<Attempt>) {
    let Some(last) = earlier.last_mut() else { return };
    let teardown = attempts
        .first()
        .and_then(|attempt| attempt.errors.first()?.message.as_deref())
        .is_some_and(|message| message.starts_with("failed on teardown with"));
    if teardown && last.status.is_failure() {
        last.errors
            .extend(attempts.into_iter().flat_map(|attempt| attempt.errors));
        return;
    }
    if last.status == AttemptStatus::Passed {
        last.status = AttemptStatus::Failed;
        last.errors.push(ErrorDetail {
            message: Some(MISSING_MESSAGE.to_owned()),
            ..ErrorDetail::default()
        });
    }
    earlier.append(&mut attempts);
}

/// Whether an execution is TestNG's entry for a failed attempt that is run again: a skipped test with a duration and
/// without a reason.
fn is_testng_retry(attempts: &[Attempt]) -> bool {
    attempts.last().is_some_and(|last| {
        last.status == AttemptStatus::Skipped && last.duration_ms.is_some_and(|ms| ms > 0)
    })
}

/// Whether an execution ended with a result.
fn has_ended(attempts: &[Attempt]) -> bool {
    attempts
        .last()
        .is_some_and(|last| last.status == AttemptStatus::Passed || last.status.is_failure())
}

/// Appends a case to the attempts of the same execution. TestNG writes them in any order. Here the attempt with a
/// result comes last.
fn join_testng_case(earlier: &mut Vec<Attempt>, mut attempts: Vec<Attempt>) {
    if !is_testng_retry(earlier) {
        std::mem::swap(earlier, &mut attempts);
    }
    if let Some(last) = earlier.last_mut() {
        last.status = AttemptStatus::Failed;
        last.errors.push(ErrorDetail {
            message: Some(MISSING_MESSAGE.to_owned()),
            ..ErrorDetail::default()
        });
    }
    earlier.append(&mut attempts);
}

/// The message for an error that the report omits.
const MISSING_MESSAGE: &str = "failed and was run again; the report does not tell the error of this attempt";
