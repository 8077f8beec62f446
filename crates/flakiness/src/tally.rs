//! A failing test by chain: episodes, contradictions, flips and trailing streaks. Mass-failure runs count in none.

use assay_domain::timestamp::Timestamp;

use crate::{
    config::{EXPLAINED_FLIPS, SILENCE_MS},
    model::Outcome,
    sheet::{Mark, Sheet},
    timeline::Timeline,
};

/// The counts by chain, summed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Revisions of a chain on which it both failed and passed.
    pub(crate) contradictions: u32,
    /// Maximal runs of final failures in a chain.
    pub(crate) episodes: u32,
    /// Whether all of those are on the stable branch.
    pub(crate) episodes_on_stable: bool,
    /// Changes of "a failed attempt" between neighbours of a chain.
    pub(crate) flips: u32,
    /// Those beyond what one breakage and its fix explain, chain by chain.
    pub(crate) excess_flips: u32,
    /// Neighbours.
    pub(crate) pairs: u32,
    /// Every chain that the test ran on, in their fixed order.
    pub(crate) chains: Vec<ChainEnd>,
    /// Results with a failed attempt.
    pub(crate) failures: u32,
    /// The variants that it ran on and those that it failed on.
    pub(crate) variants: u32,
    /// Variants with a failed attempt.
    pub(crate) failing_variants: u32,
}

/// How a chain ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainEnd {
    /// The chain.
    pub(crate) chain: usize,
    /// Whether it is the stable branch's.
    pub(crate) stable: bool,
    /// Final failures at its end.
    pub(crate) streak: u32,
    /// The position of the first of those.
    pub(crate) since: usize,
    /// The last position of the test.
    pub(crate) last: usize,
    /// When the test last ran there.
    pub(crate) newest: Timestamp,
    /// Whether it has not fallen silent beside its siblings.
    pub(crate) live: bool,
}

/// A chain while its results are read.
#[derive(Debug, Clone, Copy)]
struct Reading {
    end: ChainEnd,
    considered: u32,
    flips: u32,
    had_failure: bool,
    revision: Option<usize>,
    failed_on_revision: bool,
    passed_on_revision: bool,
}

/// The working memory of a tally, reused from test to test.
#[derive(Debug, Default)]
pub(crate) struct Tallier {
    /// The place of a chain in `readings`, by chain.
    places: Vec<Option<usize>>,
    readings: Vec<Reading>,
}

impl Tallier {
    /// Counts a test's results, ascending by position.
    pub(crate) fn tally(&mut self, sheet: Sheet<'_, '_>) -> Tally {
        self.places.clear();
        self.places.resize(sheet.timeline.chains.len(), None);
        self.readings.clear();
        let mut tally = Tally {
            episodes_on_stable: true,
            ..Tally::default()
        };
        for mark in sheet.marks {
            let Some(reading) = self.reading(sheet.timeline, mark) else {
                continue;
            };
            if !sheet.is_mass_failure(mark.position) {
                let revision = sheet
                    .timeline
                    .entries
                    .get(mark.position)
                    .map(|entry| entry.revision);
                reading.take_in(mark, revision, &mut tally);
            }
        }
        for reading in &self.readings {
            tally.flips += reading.flips;
            tally.excess_flips += reading.flips.saturating_sub(EXPLAINED_FLIPS);
            tally.pairs += reading.considered.saturating_sub(1);
        }
        count_variants(sheet, &mut tally);
        tally
            .chains
            .extend(self.readings.iter().map(|reading| reading.end));
        mark_live(&mut tally.chains);
        tally
    }

    fn reading(&mut self, timeline: &Timeline<'_>, mark: &Mark) -> Option<&mut Reading> {
        let entry = timeline.entries.get(mark.position)?;
        let started_at = entry.observed.run.started_at;
        let place = self.places.get_mut(entry.chain)?;
        let place = *place.get_or_insert_with(|| {
            self.readings.push(Reading {
                end: ChainEnd {
                    chain: entry.chain,
                    stable: timeline.chains.get(entry.chain).is_some_and(|chain| chain.stable),
                    streak: 0,
                    since: mark.position,
                    last: mark.position,
                    newest: started_at,
                    live: false,
                },
                considered: 0,
                flips: 0,
                had_failure: false,
                revision: None,
                failed_on_revision: false,
                passed_on_revision: false,
            });
            self.readings.len() - 1
        });
        let reading = self.readings.get_mut(place)?;
        reading.end.last = mark.position;
        reading.end.newest = reading.end.newest.max(started_at);
        Some(reading)
    }
}

impl Reading {
    fn take_in(&mut self, mark: &Mark, revision: Option<usize>, tally: &mut Tally) {
        let had_failure = mark.outcome.had_failure();
        if self.considered > 0 && had_failure != self.had_failure {
            self.flips += 1;
        }
        self.considered += 1;
        self.had_failure = had_failure;
        tally.failures += u32::from(had_failure);
        if self.revision != revision {
            self.revision = revision;
            (self.failed_on_revision, self.passed_on_revision) = (false, false);
        }
        let contradicted = self.failed_on_revision && self.passed_on_revision;
        match mark.outcome {
            Outcome::Failed(_) => {
                self.failed_on_revision = true;
                if self.end.streak == 0 {
                    self.end.since = mark.position;
                    tally.episodes += 1;
                    tally.episodes_on_stable &= self.end.stable;
                }
                self.end.streak += 1;
            }
            Outcome::Passed | Outcome::Recovered => {
                self.passed_on_revision = true;
                self.end.streak = 0;
            }
        }
        tally.contradictions +=
            u32::from(!contradicted && self.failed_on_revision && self.passed_on_revision);
    }
}

/// A stable chain is live unless the test ran on another stable one more than three days later; any other chain
/// unless it ran anywhere more than three days later.
fn mark_live(chains: &mut [ChainEnd]) {
    let newest = |stable_only: bool| {
        chains
            .iter()
            .filter(|chain| chain.stable || !stable_only)
            .map(|chain| chain.newest)
            .max()
    };
    let (newest_stable, newest_of_all) = (newest(true), newest(false));
    for chain in chains {
        let newest = if chain.stable {
            newest_stable
        } else {
            newest_of_all
        };
        chain.live = newest.is_some_and(|newest| newest.since_ms(chain.newest) <= SILENCE_MS);
    }
}

/// Counts the variants that the test ran on, and those on which it failed.
fn count_variants(sheet: Sheet<'_, '_>, tally: &mut Tally) {
    let mut rest = sheet.marks;
    for lane in &sheet.timeline.lanes {
        let (here, later) = rest.split_at(rest.partition_point(|mark| mark.position < lane.positions.end));
        rest = later;
        let mut considered = here
            .iter()
            .filter(|mark| !sheet.is_mass_failure(mark.position))
            .peekable();
        tally.variants += u32::from(considered.peek().is_some());
        tally.failing_variants += u32::from(considered.any(|mark| mark.outcome.had_failure()));
    }
}
