//! Pass 1: how probable it is that a test failed in a run because many failed together.

use std::collections::{BTreeSet, VecDeque};

use crate::{
    config::MASS_FAILURE,
    numbers::{at, count},
    timeline::{Entry, Timeline},
};

/// A streak longer than this is an established breakage and no sign of a bad run.
const FRESH: u8 = 3;
/// How many earlier runs say what is usual.
const USUAL_RUNS: usize = 20;
/// A run is never blamed for more than this share of its failures.
const AT_MOST: f64 = 0.95;
/// Excess failures at which the blame is an eighth, whatever the size of the suite.
const HALFWAY: f64 = 10.0;

/// The background of every position: the probability that a good, reliable test failed there.
#[derive(Debug)]
pub(crate) struct Background {
    /// By position.
    pub(crate) beta: Vec<f64>,
    /// Whether the position lies in a mass-failure run, which yields no incident and counts in no rate, by position.
    pub(crate) mass_failure: Vec<bool>,
    /// The logical runs with such a position, newest first.
    pub(crate) mass_failure_runs: Vec<usize>,
}

impl Background {
    /// Measures each kind of run by its like.
    pub(crate) fn new(timeline: &Timeline<'_>) -> Self {
        let mut beta = vec![0.0; timeline.entries.len()];
        let mut kind = Kind::new(timeline.words);
        for lane in &timeline.lanes {
            // Push and pull-request runs of a variant fail in ways of their own.
            for on_stable_branch in [true, false] {
                kind.clear();
                let entries = timeline.entries.get(lane.positions.clone()).unwrap_or_default();
                let betas = beta.get_mut(lane.positions.clone()).unwrap_or_default();
                for (entry, beta) in entries.iter().zip(betas) {
                    if entry.on_stable_branch == on_stable_branch {
                        let fresh = kind.take_in(timeline, entry);
                        *beta = kind.background(fresh, || timeline.count_seen(entry.observed));
                    }
                }
            }
        }
        let mass_failure: Vec<bool> = beta.iter().map(|beta| *beta >= MASS_FAILURE).collect();
        let runs: BTreeSet<usize> = (timeline.run_of.iter().zip(&mass_failure))
            .filter(|(_, mass_failure)| **mass_failure)
            .map(|(run, _)| *run)
            .collect();
        Self {
            beta,
            mass_failure,
            mass_failure_runs: runs.into_iter().rev().collect(),
        }
    }

    /// Whether a position lies in a mass-failure run.
    pub(crate) fn is_mass_failure(&self, position: usize) -> bool {
        self.mass_failure.get(position).copied().unwrap_or(false)
    }
}

/// The state of one kind of run.
struct Kind {
    /// Each test's consecutive failures.
    streaks: Vec<u8>,
    /// The tests whose streak is not zero.
    failing: Vec<u64>,
    /// The tests that fail in the run at hand; all zero between runs.
    failing_now: Vec<u64>,
    /// The fresh failures of the latest runs.
    usual: VecDeque<u32>,
}

impl Kind {
    fn new(words: usize) -> Self {
        Self {
            streaks: vec![0; words * at(u64::BITS)],
            failing: vec![0; words],
            failing_now: vec![0; words],
            usual: VecDeque::with_capacity(USUAL_RUNS + 1),
        }
    }

    fn clear(&mut self) {
        self.streaks.fill(0);
        self.failing.fill(0);
        self.usual.clear();
    }

    /// Counts the fresh failures of a run and brings the streaks up to date.
    fn take_in(&mut self, timeline: &Timeline<'_>, entry: &Entry<'_>) -> u32 {
        let mut fresh = 0;
        for failure in &*entry.failures {
            if let Some(streak) = self.streaks.get_mut(at(failure.test)) {
                *streak = streak.saturating_add(1);
                fresh += u32::from(*streak <= FRESH);
            }
            if let Some(word) = self.failing_now.get_mut(at(failure.test / u64::BITS)) {
                *word |= 1 << (failure.test % u64::BITS);
            }
        }
        for (word, (failing, now)) in self.failing.iter_mut().zip(&mut self.failing_now).enumerate() {
            let now = std::mem::take(now);
            if *failing != 0 {
                let mut passed = *failing & timeline.seen_word(entry.observed, word) & !now;
                *failing &= !passed;
                while passed != 0 {
                    let test = count(word) * u64::BITS + passed.trailing_zeros();
                    if let Some(streak) = self.streaks.get_mut(at(test)) {
                        *streak = 0;
                    }
                    passed &= passed - 1;
                }
            }
            *failing |= now;
        }
        fresh
    }

    /// The background of a run with `fresh` new failures among `tests`, which then joins the usual runs.
    fn background(&mut self, fresh: u32, tests: impl Fn() -> u32) -> f64 {
        let usual = self.median();
        if self.usual.len() == USUAL_RUNS {
            self.usual.pop_front();
        }
        self.usual.push_back(fresh);
        let excess = f64::from(fresh) - 1.0 - usual - 2.0 * (usual + 1.0).sqrt();
        if excess <= 0.0 {
            return 0.0;
        }
        let by_share = excess / f64::from(tests().max(1));
        let by_count = (excess / (excess + HALFWAY)).powi(3);
        by_share.max(by_count).min(AT_MOST)
    }

    /// The median of the usual runs (of an even number the mean of the middle two), zero before the first.
    fn median(&self) -> f64 {
        let mut sorted = [0_u32; USUAL_RUNS];
        let runs = self.usual.len().min(USUAL_RUNS);
        for (place, fresh) in sorted.iter_mut().zip(&self.usual) {
            *place = *fresh;
        }
        let Some(sorted) = sorted.get_mut(..runs) else {
            return 0.0;
        };
        sorted.sort_unstable();
        let middle = |index: usize| sorted.get(index).copied().map_or(0.0, f64::from);
        match runs {
            0 => 0.0,
            odd if odd % 2 == 1 => middle(odd / 2),
            even => f64::midpoint(middle(even / 2 - 1), middle(even / 2)),
        }
    }
}
