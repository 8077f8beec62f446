//! The counts of a failing test by chain: episodes, contradictions, flips and trailing streaks. Mass-failure runs do
//! not count.
//!
//! All counts come from the failures and their neighbours in the chain; the passes between are not visited.

use std::collections::BTreeSet;

use crate::{
    config::EXPLAINED_FLIPS,
    timeline::failures::FailureAt,
    verdict::test_counts::{CountedResult, TestCounts},
};

/// The counts by chain, summed.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChainCounts {
    /// Revisions of a chain on which it both failed and passed.
    pub(crate) contradictions: u32,
    /// Longest sequences of final failures in a chain; those of several variants that begin on one revision are one.
    pub(crate) episodes: u32,
    /// Whether some of these episodes are off the stable branch.
    pub(crate) episodes_off_stable: bool,
    /// Pairs of neighbouring results of a chain, one with and one without a failed attempt.
    pub(crate) flips: u32,
    /// Flips beyond those that one breakage and its fix explain, chain by chain.
    pub(crate) excess_flips: u32,
    /// Results with a failed attempt.
    pub(crate) failures: u32,
    /// Variants with a failed attempt.
    pub(crate) failing_variants: u32,
    /// The chains that end in a final failure, in their fixed order.
    pub(crate) failing_ends: Vec<FailingEnd>,
}

/// The failures at the end of a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailingEnd {
    /// The chain.
    pub(crate) chain: usize,
    /// Whether it is the stable branch's.
    pub(crate) stable: bool,
    /// The number of final failures at its end.
    pub(crate) streak: u32,
    /// The position of the first of them.
    pub(crate) since: usize,
    /// Whether they are an episode of their own: no earlier variant failed at the revision at which they began.
    pub(crate) counts: bool,
    /// Whether the first of them is in a mass failure.
    pub(crate) of_crowd: bool,
}

/// The revisions at which a test failed, variant by variant.
#[derive(Debug, Default)]
struct FailedRevisions {
    lane: usize,
    /// The revisions on the variants before the current one.
    before: BTreeSet<usize>,
    /// The revisions on the current variant.
    here: Vec<usize>,
}

impl FailedRevisions {
    /// Starts with the next variant.
    fn enter(&mut self, lane: usize) {
        if self.lane != lane {
            self.lane = lane;
            self.before.extend(self.here.drain(..));
        }
    }
}

/// Counts a test's failures.
pub(crate) fn count(test_counts: TestCounts<'_, '_>) -> ChainCounts {
    let mut chain_counts = ChainCounts::default();
    let mut last_lane = None;
    let mut failed = FailedRevisions::default();
    let chain_of = |failure: &FailureAt| {
        test_counts
            .timeline
            .entries
            .get(failure.position)
            .map(|entry| entry.chain)
    };
    for failures in test_counts.failures.chunk_by(|a, b| chain_of(a) == chain_of(b)) {
        let chain = failures.first().and_then(chain_of);
        let Some((chain, place)) = chain.and_then(|at| Some((test_counts.timeline.chains.get(at)?, at)))
        else {
            continue;
        };
        failed.enter(chain.lane);
        if chain_counts.add_chain(test_counts, place, chain.stable, failures, &mut failed)
            && last_lane.replace(chain.lane) != Some(chain.lane)
        {
            chain_counts.failing_variants += 1;
        }
    }
    chain_counts
}

impl ChainCounts {
    /// Adds the failures of one chain, ascending by position. Returns whether any of them counts.
    fn add_chain(
        &mut self,
        test_counts: TestCounts<'_, '_>,
        chain: usize,
        stable: bool,
        failures: &[FailureAt],
        failed_revisions: &mut FailedRevisions,
    ) -> bool {
        let failures_before = self.failures;
        let mut flips = 0;
        let mut failed_revision = None;
        let mut episode_counts = true;
        let results = failures
            .iter()
            .filter_map(|failure| test_counts.considered(failure.position));
        for result in results {
            let before = test_counts.before(result.position).next();
            let after = test_counts.after(result.position).next();
            let passed = |other: &Option<CountedResult<'_, '_>>| {
                u32::from(other.is_some_and(|other| !other.outcome.had_failure()))
            };
            flips += passed(&before) + passed(&after);
            self.failures += 1;
            if !result.outcome.failed() {
                continue;
            }
            if !before.is_some_and(|before| before.outcome.failed()) {
                episode_counts = !failed_revisions.before.contains(&result.entry.revision);
                self.episodes += u32::from(episode_counts);
                self.episodes_off_stable |= !stable;
            }
            failed_revisions.here.push(result.entry.revision);
            if failed_revision != Some(result.entry.revision) {
                failed_revision = Some(result.entry.revision);
                self.contradictions += u32::from(is_contradicted(test_counts, result));
            }
            if after.is_none() {
                let mut end = failing_end(test_counts, chain, stable, result);
                end.counts = episode_counts;
                self.failing_ends.push(end);
            }
        }
        self.flips += flips;
        self.excess_flips += flips.saturating_sub(EXPLAINED_FLIPS);
        self.failures > failures_before
    }
}

/// Whether the revision of a final failure also passed in its chain.
fn is_contradicted(test_counts: TestCounts<'_, '_>, failure: CountedResult<'_, '_>) -> bool {
    failure.outcome.is_mixed()
        || test_counts
            .others_on_revision(failure)
            .any(|other| !other.outcome.failed() || other.outcome.is_mixed())
}

/// The streak that ends with the `last` failure of a chain.
fn failing_end(
    test_counts: TestCounts<'_, '_>,
    chain: usize,
    stable: bool,
    last: CountedResult<'_, '_>,
) -> FailingEnd {
    let mut end = FailingEnd {
        chain,
        stable,
        streak: 1,
        since: last.position,
        counts: true,
        of_crowd: false,
    };
    for before in test_counts
        .before(last.position)
        .take_while(|before| before.outcome.failed())
    {
        end.streak += 1;
        end.since = before.position;
    }
    end.of_crowd = test_counts.background.is_mass_failure(end.since);
    end
}
