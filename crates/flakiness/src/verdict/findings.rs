//! The findings in the results of a failing test, computed once for all tests with the same failures.

use std::collections::HashMap;

use crate::{
    model::{
        Outcome,
        always_passing::AlwaysPassing,
        background::Background,
        filter::{Belief, Filter},
    },
    numbers::count,
    timeline::{Timeline, failures::FailureAt},
    verdict::{
        chain_counts::{self, ChainCounts},
        live_chains::LiveChains,
        run_counts::{self, FailuresInRun, RunFigures},
        test_counts::TestCounts,
        unrelated_branches,
    },
};

/// Tests with more failures than this rarely failed in exactly the same runs as another test.
const FEW: usize = 8;

/// All counts and probabilities that follow from a test's failures.
#[derive(Debug)]
pub(crate) struct Findings {
    /// Its failures by run, oldest first.
    pub(crate) failed_runs: Vec<FailuresInRun>,
    /// The first failed run of each unrelated branch, oldest first.
    pub(crate) unrelated_branches: Vec<usize>,
    /// The counts by run.
    pub(crate) runs: RunFigures,
    /// The counts by chain.
    pub(crate) chain_counts: ChainCounts,
    /// The result of the filter.
    pub(crate) belief: Belief,
    /// The state at the ends of its chains.
    pub(crate) ends: LiveChains,
}

/// Computes the findings for one test after the other.
///
/// If a third of a suite fails at once, thousands of tests ran everywhere and failed in the same few runs. Such tests
/// have equal findings, which are computed once.
#[derive(Debug)]
pub(crate) struct Finder<'t, 'h> {
    search: Search<'t, 'h>,
    /// The findings for tests that ran everywhere, by [`failure_key`] of each failure.
    cached: HashMap<Vec<FailureKey>, Findings>,
    latest: Option<Findings>,
}

#[derive(Debug)]
struct Search<'t, 'h> {
    filter: Filter<'t, 'h>,
    /// The number of tests that failed in a run, cached.
    failed_tests_by_run: Vec<Option<u32>>,
}

impl<'t, 'h> Finder<'t, 'h> {
    /// For the tests of a timeline.
    pub(crate) fn new(
        timeline: &'t Timeline<'h>,
        background: &'t Background,
        always_passing: &'t AlwaysPassing,
    ) -> Self {
        Self {
            search: Search {
                filter: Filter::new(timeline, background, always_passing),
                failed_tests_by_run: vec![None; timeline.runs.len()],
            },
            cached: HashMap::new(),
            latest: None,
        }
    }

    /// The findings in a test's results.
    pub(crate) fn find(&mut self, test_counts: TestCounts<'_, 'h>) -> &Findings {
        let Self {
            search,
            cached,
            latest,
        } = self;
        let is_rare = test_counts.failures.len() > FEW || !test_counts.repeated.is_empty();
        if is_rare || !test_counts.column.is_everywhere() {
            return latest.insert(search.run(test_counts));
        }
        cached
            .entry(test_counts.failures.iter().map(failure_key).collect())
            .or_insert_with(|| search.run(test_counts))
    }
}

/// The position of a failure, its failed attempts if it failed finally, its failed executions and all executions.
type FailureKey = [u32; 4];

fn failure_key(failure: &FailureAt) -> FailureKey {
    let [attempts, failed, all] = match failure.outcome {
        Outcome::Passed => [0, 0, 1],
        Outcome::PassedRepeatedly(executions) | Outcome::Recovered(executions) => [0, 0, executions],
        Outcome::Failed(executions) => [executions.attempts, executions.failed, executions.all],
    };
    [count(failure.position), attempts, failed, all]
}

impl<'h> Search<'_, 'h> {
    fn run(&mut self, test_counts: TestCounts<'_, 'h>) -> Findings {
        let failed_runs = run_counts::join(test_counts);
        let chain_counts = chain_counts::count(test_counts);
        let belief = self.filter.run(test_counts);
        Findings {
            unrelated_branches: unrelated_branches::runs(test_counts, &failed_runs),
            runs: run_counts::figures(test_counts, &failed_runs, &mut self.failed_tests_by_run),
            ends: LiveChains::read(test_counts, &chain_counts, &self.filter, &belief),
            failed_runs,
            chain_counts,
            belief,
        }
    }
}
