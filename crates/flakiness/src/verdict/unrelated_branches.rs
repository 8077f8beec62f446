//! Failures on unrelated branches: if a test fails on several, their changes did not break it.

use std::collections::{BTreeMap, BTreeSet};

use crate::verdict::{run_counts::FailuresInRun, test_counts::TestCounts};

/// The first failed run of each unrelated branch, oldest first. Two branches other than the stable one are unrelated if
/// the test passed in a run between its failures on them. Mass failures do not count.
pub(crate) fn runs(test_counts: TestCounts<'_, '_>, failed: &[FailuresInRun]) -> Vec<usize> {
    let timeline = test_counts.timeline;
    let of_failures = test_counts
        .failures
        .iter()
        .filter(|failure| failure.outcome.failed())
        .filter_map(|failure| {
            let chain = test_counts.considered(failure.position)?.entry.chain;
            let chain = timeline.chains.get(chain);
            let chain = chain.filter(|chain| !chain.stable && !chain.queue)?;
            Some((*timeline.run_of.get(failure.position)?, chain.branch?))
        });
    let by_run: BTreeMap<usize, &str> = of_failures.collect();
    if by_run.is_empty() {
        return Vec::new();
    }
    let considered = &test_counts.column.participation.considered_in_run;
    let mut branches = BTreeSet::new();
    let mut first_failures = Vec::new();
    // Whether the test passed since the last counted branch.
    let mut passed = true;
    let mut next = 0;
    for run in failed.iter().filter(|run| run.failed) {
        let between = considered.get(next..run.run).unwrap_or_default();
        passed |= between.iter().any(|tests| test_counts.column.is_in(*tests));
        next = run.run + 1;
        let Some(branch) = by_run.get(&run.run) else {
            continue;
        };
        if branches.insert(*branch) && passed {
            first_failures.push(run.run);
            passed = false;
        }
    }
    first_failures
}
