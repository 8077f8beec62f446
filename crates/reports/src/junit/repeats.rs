//! Cases that occur several times in a file.

use std::collections::{HashMap, HashSet};

use assay_domain::{
    attempt::{Attempt, AttemptStatus},
    test::TestName,
};

use super::{case::Case, dialect::Dialect, suite::Suite};
use crate::{
    collect::{Collector, LocatedTest},
    limits,
    report::ReportedTest,
    retries::{RepeatedResult, Retries, Tool},
    text,
};

/// The cases of a file, each name and file once. A repeated case is another execution, unless its tool says that it is a
/// retry.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// The tests with one result, hooks and set-ups among them.
    pub(super) tests: Collector,
    /// The cases of tools that write a retry as another case.
    retries: Retries,
    /// The indexes of the tests that a Go tool wrote.
    by_go: HashSet<usize>,
}

impl Repeats {
    pub(super) fn len(&self) -> usize {
        self.tests.len() + self.retries.len()
    }

    /// Adds a case.
    pub(super) fn add(
        &mut self,
        dialect: Dialect,
        suite: &Suite<'_>,
        case: &Case<'_>,
        test: LocatedTest,
        attempts: Vec<Attempt>,
    ) {
        let Some(tool) = tool(dialect, suite, case) else {
            return self.add_execution(dialect == Dialect::GoJunitReport, test, attempts);
        };
        let result = RepeatedResult {
            test,
            attempts,
            attributes: case.attributes,
            has_line: case.has_line,
            has_reason: case.is_skipped_for_reason(),
        };
        let counted = if suite.is_of_old_pytest {
            0
        } else {
            suite.header.tests
        };
        self.retries.add(tool, suite.number, counted, result);
    }

    fn add_execution(&mut self, by_go: bool, test: LocatedTest, attempts: Vec<Attempt>) {
        let known_tests = self.tests.len();
        self.tests.add(test, attempts);
        if by_go && self.tests.len() > known_tests {
            self.by_go.insert(known_tests);
        }
    }

    /// The tests, and the groups of tests that passed.
    pub(super) fn finish(mut self) -> (Vec<ReportedTest>, Vec<TestName>) {
        for (tool, test, attempts) in std::mem::take(&mut self.retries).executions() {
            self.add_execution(tool == Tool::Gotestsum, test, attempts);
        }
        let tests = self.tests.finish();
        if self.by_go.is_empty() {
            (tests, Vec::new())
        } else {
            without_groups(tests, &self.by_go)
        }
    }
}

/// The tool that may have written a case as a retry of another. In the files of other tools a repeated case is another
/// execution.
fn tool(dialect: Dialect, suite: &Suite<'_>, case: &Case<'_>) -> Option<Tool> {
    if suite.is_of_testng {
        return Some(Tool::Testng);
    }
    let known = TOOLS.iter().find(|(known, _)| *known == dialect);
    known.map(|(_, tool)| *tool).or_else(|| {
        let is_of_other = dialect == Dialect::Other;
        let is_of_openshift = is_of_other && suite.name.starts_with("openshift-tests");
        let of_bitrise = (is_of_other && case.is_of_bitrise).then_some(Tool::Xcodebuild);
        of_bitrise.or(is_of_openshift.then_some(Tool::Openshift))
    })
}

const TOOLS: &[(Dialect, Tool)] = &[
    (Dialect::Gradle, Tool::TestRetry),
    (Dialect::Gotestsum, Tool::Gotestsum),
    (Dialect::Pytest, Tool::Pytest),
    (Dialect::Xcbeautify, Tool::Xcodebuild),
];

/// Separates tests that only group subtests. Go's tools list such a test beside its subtests, and it fails with them. It
/// is a test only if it failed and no subtest did. Returns the tests, and the groups that passed.
fn without_groups(tests: Vec<ReportedTest>, by_go: &HashSet<usize>) -> (Vec<ReportedTest>, Vec<TestName>) {
    let failed = |test: &ReportedTest| test.attempts.iter().any(|attempt| attempt.status.is_failure());
    let passes = |test: &ReportedTest| {
        let outcome = test.outcome();
        outcome.is_some_and(|outcome| outcome.status == AttemptStatus::Passed)
    };
    let is_go = |index: usize| by_go.contains(&index);
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
    let kinds: Vec<Option<bool>> = tests
        .iter()
        .enumerate()
        .map(|(index, test)| groups.get(&*test.test.name).copied().filter(|_| is_go(index)))
        .collect();
    let (mut left, mut passed) = (Vec::with_capacity(tests.len()), Vec::new());
    for (test, has_failed_test) in tests.into_iter().zip(kinds) {
        match has_failed_test {
            None => left.push(test),
            Some(true) => {}
            Some(false) if failed(&test) => left.push(test),
            Some(false) if passes(&test) => passed.push(test.test),
            Some(false) => {}
        }
    }
    (left, passed)
}
