//! A failing test by chain: episodes, contradictions, flips and trailing streaks. Mass-failure runs count in none.
//!
//! All of it is found from the failures and their neighbours in the chain; the passes between are never visited.

use crate::{
    config::EXPLAINED_FLIPS,
    failures::FailureAt,
    sheet::{Considered, Sheet},
};

/// The counts by chain, summed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Revisions of a chain on which it both failed and passed.
    pub(crate) contradictions: u32,
    /// Maximal runs of final failures in a chain.
    pub(crate) episodes: u32,
    /// Whether some of those are off the stable branch.
    pub(crate) episodes_off_stable: bool,
    /// Changes of "a failed attempt" between neighbours of a chain.
    pub(crate) flips: u32,
    /// Those beyond what one breakage and its fix explain, chain by chain.
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
    /// How many final failures end it.
    pub(crate) streak: u32,
    /// The position of the first of those.
    pub(crate) since: usize,
}

/// Counts a test's failures.
pub(crate) fn tally(sheet: Sheet<'_, '_>) -> Tally {
    let mut tally = Tally::default();
    let mut last_lane = None;
    let chain_of = |failure: &FailureAt| {
        sheet
            .timeline
            .entries
            .get(failure.position)
            .map(|entry| entry.chain)
    };
    for failures in sheet.failures.chunk_by(|a, b| chain_of(a) == chain_of(b)) {
        let chain = failures.first().and_then(chain_of);
        let Some((chain, place)) = chain.and_then(|at| Some((sheet.timeline.chains.get(at)?, at))) else {
            continue;
        };
        if tally.add_chain(sheet, place, chain.stable, failures)
            && last_lane.replace(chain.lane) != Some(chain.lane)
        {
            tally.failing_variants += 1;
        }
    }
    tally
}

impl Tally {
    /// Adds the failures of one chain, ascending by position; whether any of them counts.
    fn add_chain(
        &mut self,
        sheet: Sheet<'_, '_>,
        chain: usize,
        stable: bool,
        failures: &[FailureAt],
    ) -> bool {
        let known = self.failures;
        let mut flips = 0;
        let mut failed_revision = None;
        let results = failures
            .iter()
            .filter_map(|failure| sheet.considered(failure.position));
        for result in results {
            let before = sheet.before(result.position).next();
            let after = sheet.after(result.position).next();
            let passed = |other: &Option<Considered<'_, '_>>| {
                u32::from(other.is_some_and(|other| !other.outcome.had_failure()))
            };
            flips += passed(&before) + passed(&after);
            self.failures += 1;
            if !result.outcome.failed() {
                continue;
            }
            if !before.is_some_and(|before| before.outcome.failed()) {
                self.episodes += 1;
                self.episodes_off_stable |= !stable;
            }
            if failed_revision != Some(result.entry.revision) {
                failed_revision = Some(result.entry.revision);
                self.contradictions += u32::from(is_contradicted(sheet, result));
            }
            if after.is_none() {
                self.failing_ends.push(failing_end(sheet, chain, stable, result));
            }
        }
        self.flips += flips;
        self.excess_flips += flips.saturating_sub(EXPLAINED_FLIPS);
        self.failures > known
    }
}

/// Whether the revision of a final failure also passed in its chain.
fn is_contradicted(sheet: Sheet<'_, '_>, failure: Considered<'_, '_>) -> bool {
    let same = |other: &Considered<'_, '_>| other.entry.revision == failure.entry.revision;
    let passed = |other: Considered<'_, '_>| !other.outcome.failed();
    sheet.before(failure.position).take_while(same).any(passed)
        || sheet.after(failure.position).take_while(same).any(passed)
}

/// The streak that ends with the `last` failure of a chain.
fn failing_end(sheet: Sheet<'_, '_>, chain: usize, stable: bool, last: Considered<'_, '_>) -> FailingEnd {
    let mut end = FailingEnd {
        chain,
        stable,
        streak: 1,
        since: last.position,
    };
    for before in sheet
        .before(last.position)
        .take_while(|before| before.outcome.failed())
    {
        end.streak += 1;
        end.since = before.position;
    }
    end
}
