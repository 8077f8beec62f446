//! Groups of subtests that passed.
//!
//! A group is a test only where it failed by itself. Its pass elsewhere is a result only if it is known as a test: to the
//! project, or to another file of the import.

use std::collections::{BTreeSet, HashSet};

use assay_domain::{
    execution::Executions,
    set_up,
    test::{ShownAs, TestName},
};

use crate::{
    memory,
    piece::Piece,
    report::{Report, ReportedTest},
};

impl Report {
    /// Adds groups that passed.
    pub(crate) fn add_passed_groups(&mut self, groups: impl IntoIterator<Item = TestName>) {
        let kept = groups.into_iter().filter(|group| memory::keep_name(&group.name));
        self.passed_groups.extend(kept);
    }
}

/// Adds the groups that passed in a file to its tests if another file has them as tests.
pub(crate) fn add_passes(pieces: &mut [Piece]) {
    if pieces.len() < 2 {
        return;
    }
    let groups = pieces.iter().flat_map(|piece| &piece.report.passed_groups);
    let groups: HashSet<&TestName> = groups.collect();
    let tests = pieces.iter().flat_map(|piece| &piece.report.tests);
    let tests = tests.map(|test| &test.test).filter(|test| groups.contains(test));
    let tests: HashSet<TestName> = tests.cloned().collect();
    if tests.is_empty() {
        return;
    }
    for piece in pieces {
        let report = &mut piece.report;
        let passed = report.passed_groups.iter();
        let mut passed: BTreeSet<&TestName> = passed.filter(|group| tests.contains(*group)).collect();
        for test in &report.tests {
            passed.remove(&test.test);
        }
        report.tests.extend(passed.into_iter().map(|group| ReportedTest {
            test: group.clone(),
            shown_as: ShownAs::default(),
            attempts: Executions::from(vec![set_up::passed()]),
        }));
    }
}
