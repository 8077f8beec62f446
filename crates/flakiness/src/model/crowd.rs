//! Crowds: tests that failed together in one run. Is the crowd the run's fault or the code's?
//!
//! An outage fails other tests in the next run, and broken code fails the same ones. On a stable chain, a crowd counts as
//! long as the same tests fail in every run since: then the code is broken. When they pass, its runs are left out again,
//! because a crowd that ended says nothing about a single test.

use std::collections::BTreeMap;

use assay_domain::observation::Bitmap;

use crate::{
    config::MASS_FAILURE,
    model::Step,
    numbers::{count, share},
    timeline::{Chain, Entry, Timeline},
};

/// The share of repeated failures, corrected for chance, from which two crowds are the same tests.
pub(crate) const SAME_TESTS: f64 = 0.5;
/// If more than this share of the other tests fails too, the same tests fail again by chance.
const BY_CHANCE: f64 = 0.5;
/// The share of repeated failures that is required then.
const ALL_AGAIN: f64 = 0.98;

/// Whether the tests that failed in a run are those that fail in another one, by at least this share after the
/// correction for chance: in an outage of nine tests of ten, the same tests fail again whatever the reason.
pub(crate) fn fails_again(
    timeline: &Timeline<'_>,
    before: &Entry<'_>,
    after: &Entry<'_>,
    required: f64,
) -> bool {
    let again = count_both(before, after);
    let ran = count_seen(timeline, before, after);
    let others_failed = count_seen(timeline, after, before) - again;
    let others = timeline.count_in_both(before.observed, after.observed) - ran;
    let Some(repeated) = share(again, ran) else {
        return false;
    };
    match share(others_failed, others) {
        Some(by_chance) if by_chance <= BY_CHANCE => (repeated - by_chance) / (1.0 - by_chance) >= required,
        Some(_) | None => repeated >= ALL_AGAIN,
    }
}

/// The number of tests with a failed attempt in both runs.
fn count_both(one: &Entry<'_>, other: &Entry<'_>) -> u32 {
    let fails = one
        .failures
        .iter()
        .filter(|failure| other.has_failure(failure.test));
    count(fails.count())
}

/// The number of tests with a failed attempt in a run that ran in another one.
fn count_seen(timeline: &Timeline<'_>, failed_in: &Entry<'_>, ran_in: &Entry<'_>) -> u32 {
    let ran = failed_in
        .failures
        .iter()
        .filter(|failure| timeline.is_seen(ran_in.observed, failure.test));
    count(ran.count())
}

/// The crowds of the stable chains.
#[derive(Debug)]
pub(crate) struct Crowds {
    /// The tests that count although their run is a mass failure, by position: the code broke them, and they still fail.
    pub(crate) lasting: Vec<Option<Bitmap>>,
    /// The runs in which a mass failure began on a new revision and, on any variant, failed again in the next run.
    pub(crate) failed_again: u32,
    /// The runs in which none of those that began did.
    pub(crate) ended: u32,
}

/// Finds the crowds of the stable chains.
pub(crate) fn find(timeline: &Timeline<'_>, beta: &[f64]) -> Crowds {
    let mut lasting = vec![None; timeline.entries.len()];
    let mut fails_again_by_run: BTreeMap<usize, bool> = BTreeMap::new();
    for chain in timeline.chains.iter().filter(|chain| chain.stable) {
        let links = Links::of(timeline, chain, beta);
        for (position, again) in &links.begun {
            let Some(run) = timeline.run_of.get(*position) else {
                continue;
            };
            *fails_again_by_run.entry(*run).or_default() |= again;
        }
        for (position, before, after) in links.linked() {
            let Some(entry) = timeline.entries.get(position) else {
                continue;
            };
            if !links.lasts(timeline, chain, position) {
                continue;
            }
            let fails_in = |other: Option<usize>, test: u32| {
                let other = other.and_then(|other| timeline.entries.get(other));
                other.is_some_and(|other| other.has_failure(test))
            };
            let tests = entry.failures.iter().map(|failure| failure.test);
            let repeated = tests.filter(|test| fails_in(before, *test) || fails_in(after, *test));
            if let Some(lasting) = lasting.get_mut(position) {
                *lasting = Some(repeated.collect());
            }
        }
    }
    let failed_again = fails_again_by_run.values().filter(|again| **again).count();
    Crowds {
        lasting,
        failed_again: count(failed_again),
        ended: count(fails_again_by_run.len() - failed_again),
    }
}

/// The runs of a chain with the same crowd.
struct Links {
    first: usize,
    /// The next run with the crowd of this one, by place in the chain.
    next: Vec<Option<usize>>,
    /// The former run with the crowd of this one.
    before: Vec<Option<usize>>,
    /// The positions at which a mass failure began on a new revision, each with whether it failed again in the next run;
    /// none without a next run.
    begun: Vec<(usize, bool)>,
}

impl Links {
    /// Links each crowd with the next run in which at least half of its tests ran, if they failed there again.
    fn of(timeline: &Timeline<'_>, chain: &Chain<'_>, beta: &[f64]) -> Self {
        let positions = chain.positions.clone();
        let mut links = Self {
            first: positions.start,
            next: vec![None; positions.len()],
            before: vec![None; positions.len()],
            begun: Vec::new(),
        };
        for position in positions.clone() {
            let is_crowd = beta.get(position).is_some_and(|beta| *beta >= MASS_FAILURE);
            let Some(entry) = timeline.entries.get(position).filter(|_| is_crowd) else {
                continue;
            };
            let ran_by_half = |later: &usize| {
                let later = timeline.entries.get(*later);
                later.is_some_and(|later| {
                    2 * count_seen(timeline, entry, later) >= count(entry.failures.len())
                })
            };
            let Some(next) = (position + 1..positions.end).find(ran_by_half) else {
                continue;
            };
            let later = timeline.entries.get(next);
            let again = later.is_some_and(|later| fails_again(timeline, entry, later, SAME_TESTS));
            if entry.step == Step::NewRevision && links.before(position).is_none() {
                links.begun.push((position, again));
            }
            if again {
                set(&mut links.next, position - links.first, next);
                set(&mut links.before, next - links.first, position);
            }
        }
        links
    }

    fn next(&self, position: usize) -> Option<usize> {
        self.next.get(position - self.first).copied().flatten()
    }

    fn before(&self, position: usize) -> Option<usize> {
        self.before.get(position - self.first).copied().flatten()
    }

    /// The positions with a link, each with the former and the next one.
    fn linked(&self) -> impl Iterator<Item = (usize, Option<usize>, Option<usize>)> {
        let both = self.before.iter().zip(&self.next).enumerate();
        both.filter(|(_, (before, next))| before.is_some() || next.is_some())
            .map(|(place, (before, next))| (self.first + place, *before, *next))
    }

    /// Whether the crowd of a run still lasts: its links lead to the chain's newest run, or at least half of its tests
    /// fail there.
    fn lasts(&self, timeline: &Timeline<'_>, chain: &Chain<'_>, position: usize) -> bool {
        let newest = chain.positions.end - 1;
        let mut last = position;
        while let Some(next) = self.next(last) {
            last = next;
        }
        if last == newest {
            return true;
        }
        let entries = timeline.entries.get(position).zip(timeline.entries.get(newest));
        entries.is_some_and(|(entry, newest)| {
            let failing = share(count_both(entry, newest), count_seen(timeline, entry, newest));
            failing.is_some_and(|failing| failing >= SAME_TESTS)
        })
    }
}

fn set(links: &mut [Option<usize>], place: usize, position: usize) {
    if let Some(link) = links.get_mut(place) {
        *link = Some(position);
    }
}
