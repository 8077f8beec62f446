//! The branches on which a test failed last. A stable revision that fails soon afterwards may contain their changes.
#![expect(
    clippy::indexing_slicing,
    reason = "every index is a position or chain of the timeline of the test's counts"
)]

use assay_domain::timestamp::Timestamp;

use crate::{
    model::MERGED_WITHIN_MS,
    numbers::count,
    timeline::{Entry, failures::FailureAt},
    verdict::test_counts::TestCounts,
};

/// A chain off the stable branch whose last counted result of the test failed.
#[derive(Debug)]
struct FailingBranch {
    lane: usize,
    /// The last revision of the chain, with or without the test.
    last_revision: usize,
    /// The time of the test's last counted result.
    at: Timestamp,
    /// The number of failures at the end.
    streak: u32,
}

/// The branches on which one test failed last.
#[derive(Debug)]
pub(crate) struct FailingBranches(Vec<FailingBranch>);

impl FailingBranches {
    /// The failing branches of a test.
    pub(crate) fn of(test_counts: TestCounts<'_, '_>) -> Self {
        let timeline = test_counts.timeline;
        let chain_of = |failure: &FailureAt| timeline.entries[failure.position].chain;
        let by_chain = test_counts.failures.chunk_by(|a, b| chain_of(a) == chain_of(b));
        let branches = by_chain.filter_map(|failures| {
            let chain = &timeline.chains[chain_of(failures.first()?)];
            if chain.stable || chain.queue {
                return None;
            }
            let newest_first = chain.positions.clone().rev();
            let mut results = newest_first
                .filter_map(|position| test_counts.considered(position))
                .peekable();
            let at = results.peek()?.entry.observed.run.started_at;
            let streak = results.take_while(|result| result.outcome.failed()).count();
            (streak > 0).then_some(FailingBranch {
                lane: chain.lane,
                last_revision: timeline.entries[chain.positions.clone()].last()?.revision,
                at,
                streak: count(streak),
            })
        });
        Self(branches.collect())
    }

    /// The longest failing streak of a branch that ended shortly before a stable run, on the same variant.
    pub(crate) fn longest_streak(&self, lane: usize, stable: &Entry<'_>) -> Option<u32> {
        let at = stable.observed.run.started_at;
        let may_be_merged = |branch: &&FailingBranch| {
            branch.lane == lane
                && branch.last_revision <= stable.revision
                && at.since_ms(branch.at) <= MERGED_WITHIN_MS
        };
        let streaks = self.0.iter().filter(may_be_merged).map(|branch| branch.streak);
        streaks.max()
    }
}
