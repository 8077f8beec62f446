//! The current state of a failing test: the ends of its live chains.

use std::{cmp::Reverse, collections::BTreeMap, ops::Range};

use assay_domain::timestamp::Timestamp;

use crate::{
    config::{BROKEN, COMPLETE, LEFT_AFTER, NAMED_BRANCHES, SILENCE_MS, STREAK, STREAK_OF_CROWD},
    model::filter::{Belief, Filter},
    numbers::{at, count},
    timeline::Lane,
    verdict::{
        chain_counts::{ChainCounts, FailingEnd},
        test_counts::TestCounts,
    },
};

/// The state at the ends of a test's chains.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveChains {
    /// The failing streak at the end of a live stable chain that is most probably a breakage; one that is conclusive
    /// before any other.
    pub(crate) breakage: Option<Breakage>,
    /// P(Broken) of the worst live stable chain.
    pub(crate) broken_probability: Option<f64>,
    /// The longest failing streak of a live chain off the stable branch, if it has at least [`STREAK`] failures and the
    /// live stable chains pass.
    pub(crate) off_stable: Option<FailingEnd>,
    /// The streak by which the test counts as failing now. It is that of `breakage`, else the longest one at the end of
    /// a live stable chain. For a test that never ran on a stable chain, it is the longest one among its newest chains.
    pub(crate) failing_now: Option<FailingEnd>,
    /// Whether all failures of that streak are in mass failures and do not count otherwise.
    pub(crate) only_in_crowds: bool,
    /// The last position of the test on a stable chain whose newest complete run does not contain it, if it failed there.
    pub(crate) left_at: Option<usize>,
    /// The number of episodes that still continue at the end of such a chain.
    pub(crate) open_episodes: u32,
    /// The failing streaks of live chains off the stable branch, one for each branch, the longest first.
    pub(crate) failing_on: Vec<FailingEnd>,
}

/// A failing streak that may be a breakage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Breakage {
    /// The chain and its streak.
    pub(crate) end: FailingEnd,
    /// P(Broken) of the chain.
    pub(crate) probability: f64,
}

impl Breakage {
    /// Whether the test counts as broken.
    pub(crate) fn is_conclusive(&self) -> bool {
        let required = if self.end.of_crowd {
            STREAK_OF_CROWD
        } else {
            STREAK
        };
        self.end.streak >= required && self.probability >= BROKEN
    }
}

impl LiveChains {
    /// Reads the ends of a test's chains; `filter` holds the result for this test.
    pub(crate) fn read(
        test_counts: TestCounts<'_, '_>,
        chain_counts: &ChainCounts,
        filter: &Filter<'_, '_>,
        belief: &Belief,
    ) -> Self {
        let mut ends = Self::default();
        ends.read_stable(test_counts, chain_counts, filter, belief);
        ends.read_others(test_counts, chain_counts);
        ends
    }

    /// Reads the chains off the stable branch.
    fn read_others(&mut self, test_counts: TestCounts<'_, '_>, chain_counts: &ChainCounts) {
        let stable_fails = self.failing_now.is_some();
        let ran_on_stable = test_counts.column.presence.on_stable_chain;
        let last_run = test_counts.column.presence.last_run;
        let newest = last_run
            .and_then(|run| test_counts.timeline.history.runs.get(run))
            .map(|last| last.run.started_at);
        let mut by_branch: BTreeMap<Option<&str>, FailingEnd> = BTreeMap::new();
        let is_queue = |chain: usize| {
            let chain = test_counts.timeline.chains.get(chain);
            chain.is_some_and(|chain| chain.queue)
        };
        let of_branches = chain_counts.failing_ends.iter();
        for end in of_branches.filter(|end| !end.stable && !is_queue(end.chain)) {
            let newest_here = newest_of_chain(test_counts, end.chain);
            let decides = !ran_on_stable && newest_here == newest;
            let is_gone = is_gone(test_counts, end.chain);
            if is_gone || !is_live(newest_here, newest) {
                self.open_episodes += u32::from(is_gone && decides && end.counts);
                continue;
            }
            let branch = test_counts
                .timeline
                .chains
                .get(end.chain)
                .and_then(|chain| chain.branch);
            let longest = by_branch.entry(branch).or_insert(*end);
            if end.streak > longest.streak {
                *longest = *end;
            }
            let longest = self.off_stable.map_or(STREAK - 1, |longest| longest.streak);
            if !stable_fails && end.streak > longest {
                self.off_stable = Some(*end);
            }
            if decides {
                self.note_failing_now(*end);
            }
        }
        if !ran_on_stable && self.failing_now.is_none() {
            for chain in (0..test_counts.timeline.chains.len()).filter(|chain| !is_queue(*chain)) {
                let decides = newest.is_some() && newest_of_chain(test_counts, chain) == newest;
                if decides && !is_gone(test_counts, chain) {
                    self.note_red(test_counts, chain);
                }
            }
        }
        self.failing_on = by_branch.into_values().collect();
        self.failing_on.sort_by_key(|end| Reverse(end.streak));
        self.failing_on.truncate(NAMED_BRANCHES);
    }

    /// Records the failing end of a chain that counts for the current state.
    fn note_failing_now(&mut self, end: FailingEnd) {
        self.open_episodes += u32::from(end.counts);
        if self.failing_now.is_none_or(|longest| end.streak > longest.streak) {
            self.failing_now = Some(end);
        }
    }

    /// Records that the newest result of a chain failed, although it counts for nothing else: in a mass failure.
    fn note_red(&mut self, test_counts: TestCounts<'_, '_>, chain: usize) {
        let failed = |position: &usize| {
            let outcome = test_counts.outcomes.get(*position);
            outcome.is_some_and(|outcome| outcome.failed())
        };
        let streak: Vec<usize> = positions_backwards(test_counts, chain)
            .take_while(failed)
            .collect();
        let Some(since) = streak.last() else { return };
        let end = FailingEnd {
            chain,
            stable: test_counts
                .timeline
                .chains
                .get(chain)
                .is_some_and(|chain| chain.stable),
            streak: count(streak.len()),
            since: *since,
            counts: false,
            of_crowd: true,
        };
        if self.failing_now.is_none_or(|longest| end.streak > longest.streak) {
            self.failing_now = Some(end);
            self.only_in_crowds = true;
        }
    }

    /// Reads the live stable chains.
    fn read_stable(
        &mut self,
        test_counts: TestCounts<'_, '_>,
        chain_counts: &ChainCounts,
        filter: &Filter<'_, '_>,
        belief: &Belief,
    ) {
        let lanes = &test_counts.timeline.lanes;
        let mut red_chains = Vec::new();
        let newest_stable = lanes
            .iter()
            .filter_map(|lane| newest_on_stable(test_counts, lane))
            .max();
        for lane in lanes {
            let Some(chain) = lane.stable else { continue };
            if !is_live(newest_on_stable(test_counts, lane), newest_stable) {
                continue;
            }
            let Some(last) = last_position(test_counts, chain) else {
                continue;
            };
            let is_gone = is_gone(test_counts, chain);
            if is_gone
                && test_counts
                    .outcomes
                    .get(last)
                    .is_some_and(|outcome| outcome.failed())
            {
                self.left_at = Some(last);
            }
            if has_left(test_counts, chain) {
                continue;
            }
            if !is_gone {
                red_chains.push(chain);
            }
            let probability = filter.broken_probability(belief, last);
            self.broken_probability = Some(
                self.broken_probability
                    .map_or(probability, |p| p.max(probability)),
            );
            let Some(end) = chain_counts.failing_ends.iter().find(|end| end.chain == chain) else {
                continue;
            };
            let breakage = Breakage {
                end: *end,
                probability,
            };
            if is_gone && !breakage.is_conclusive() {
                // No run shows that the episode ended.
                self.open_episodes += u32::from(end.counts);
                continue;
            }
            self.note_failing_now(*end);
            let rank = |breakage: &Breakage| (breakage.is_conclusive(), breakage.probability);
            if end.streak >= STREAK && self.breakage.is_none_or(|worst| rank(&breakage) > rank(&worst)) {
                self.breakage = Some(breakage);
            }
        }
        if self.failing_now.is_none() {
            for chain in red_chains {
                self.note_red(test_counts, chain);
            }
        }
        if let Some(breakage) = self.breakage {
            self.failing_now = Some(breakage.end);
        }
    }
}

/// Whether the runs after the test's last result on a chain show that it is no longer part of the suite.
///
/// Runs that contain nearly all other tests of the run with its last result would have contained it. They count if they
/// are more than the test ever missed before.
fn has_left(test_counts: TestCounts<'_, '_>, chain: usize) -> bool {
    let timeline = test_counts.timeline;
    let positions = positions_of(test_counts, chain);
    let Some(last) = last_position(test_counts, chain) else {
        return false;
    };
    let Some(at_last) = timeline.entries.get(last) else {
        return false;
    };
    if last + 1 >= positions.end {
        return false;
    }
    let (mut missed, mut most_missed) = (0, 0);
    for position in (positions.start..last).skip_while(|position| !test_counts.column.contains(*position)) {
        missed = if test_counts.column.contains(position) {
            0
        } else {
            missed + 1
        };
        most_missed = most_missed.max(missed);
    }
    let others = timeline.count_seen(at_last.observed).saturating_sub(1);
    let is_complete = |position: &usize| {
        timeline.entries.get(*position).is_some_and(|later| {
            // The test itself is not in a run that it missed.
            let shared = timeline.count_in_both(at_last.observed, later.observed);
            later.observed.ending.complete && f64::from(shared) >= COMPLETE * f64::from(others)
        })
    };
    let required = at(most_missed.max(LEFT_AFTER - 1)) + 1;
    (last + 1..positions.end)
        .filter(is_complete)
        .take(required)
        .count()
        == required
}

/// Whether the newest complete run of a chain lacks the test, and no later run has it, or the chain is replaced. Such a test
/// does not fail now. Only [`has_left`] shows that a broken one is gone, because a run may be of selected tests.
fn is_gone(test_counts: TestCounts<'_, '_>, chain: usize) -> bool {
    let of_chain = test_counts.timeline.chains.get(chain);
    if of_chain.is_some_and(|chain| chain.is_replaced) {
        return true;
    }
    let deciding = positions_of(test_counts, chain).filter_map(|position| {
        let observed = test_counts.timeline.entries.get(position)?.observed;
        let has_test = test_counts.column.contains(position);
        let at = (observed.run.started_at, observed.run.number, position);
        (has_test || observed.ending.complete).then_some((at, has_test))
    });
    deciding.max().is_some_and(|(_, has_test)| !has_test)
}

fn is_live(newest: Option<Timestamp>, newest_of_all: Option<Timestamp>) -> bool {
    newest
        .zip(newest_of_all)
        .is_some_and(|(newest, of_all)| of_all.since_ms(newest) <= SILENCE_MS)
}

/// The time of the test's last run on the lane's stable chain.
fn newest_on_stable(test_counts: TestCounts<'_, '_>, lane: &Lane) -> Option<Timestamp> {
    let mut positions = lane.stable_newest_first.iter();
    let position = positions.find(|position| test_counts.column.contains(**position))?;
    test_counts
        .timeline
        .entries
        .get(*position)
        .map(|entry| entry.observed.run.started_at)
}

/// The time of the test's last run on a chain.
fn newest_of_chain(test_counts: TestCounts<'_, '_>, chain: usize) -> Option<Timestamp> {
    let positions = positions_backwards(test_counts, chain);
    let entries = positions.filter_map(|position| test_counts.timeline.entries.get(position));
    entries.map(|entry| entry.observed.run.started_at).max()
}

/// The last position of the test on a chain.
fn last_position(test_counts: TestCounts<'_, '_>, chain: usize) -> Option<usize> {
    positions_backwards(test_counts, chain).next()
}

/// All positions of a chain.
fn positions_of(test_counts: TestCounts<'_, '_>, chain: usize) -> Range<usize> {
    let chain = test_counts.timeline.chains.get(chain);
    chain.map_or(0..0, |chain| chain.positions.clone())
}

/// The positions of the test on a chain, the last one first.
fn positions_backwards<'a, 'h>(
    test_counts: TestCounts<'a, 'h>,
    chain: usize,
) -> impl Iterator<Item = usize> + use<'a, 'h> {
    let positions = positions_of(test_counts, chain).rev();
    positions.filter(move |position| test_counts.column.contains(*position))
}
