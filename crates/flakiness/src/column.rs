//! Sixty-four tests at a time: who took part where, counted a word at a time.

use assay_domain::test::TestOrdinal;

use crate::{
    config::MASS_FAILURE,
    numbers::{at, count},
    timeline::Timeline,
};

/// The results of the 64 tests of one word of the bitmaps.
#[derive(Debug, Default)]
pub(crate) struct Column {
    /// Which of the tests took part, by position.
    pub(crate) seen: Vec<u64>,
    /// Tests with any result, skipped ones included.
    pub(crate) any: u64,
    /// Tests with a duration reported for any result.
    timed: u64,
    /// Tests that ran on a stable chain.
    on_stable: u64,
    runs_seen: Counter,
    runs_considered: Counter,
    runs_skipped: Counter,
    last_runs: Vec<Option<usize>>,
}

/// What is counted of every test, failing or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Presence {
    /// Runs that contain the test, skips aside.
    pub(crate) seen: u32,
    /// Those of them that are no mass failure.
    pub(crate) considered: u32,
    /// Runs in which it was only skipped.
    pub(crate) skipped: u32,
    /// Whether any result has a duration.
    pub(crate) timed: bool,
    /// Whether it ran on a stable chain.
    pub(crate) on_stable: bool,
    /// The newest run that did not skip it: its place in the history.
    pub(crate) last_run: Option<usize>,
}

impl Column {
    /// Reads word `word` of every run.
    pub(crate) fn read(&mut self, timeline: &Timeline<'_>, backgrounds: &[f64], word: usize) {
        self.seen.clear();
        (self.any, self.timed, self.on_stable) = (0, 0, 0);
        for entry in &timeline.entries {
            let seen = timeline.seen_word(entry.observed, word);
            self.seen.push(seen);
            self.timed |= seen & !entry.observed.untimed.word(word);
            if timeline.chains.get(entry.chain).is_some_and(|chain| chain.stable) {
                self.on_stable |= seen;
            }
        }
        self.count_runs(timeline, backgrounds, word);
        self.find_last_runs(timeline);
    }

    /// The ordinal of bit `bit` in word `word`.
    pub(crate) fn test(word: usize, bit: u32) -> TestOrdinal {
        count(word) * u64::BITS + bit
    }

    /// Whether the test at `bit` took part at a position.
    pub(crate) fn contains(&self, bit: u32, position: usize) -> bool {
        self.seen.get(position).is_some_and(|seen| seen >> bit & 1 == 1)
    }

    /// What is counted of the test at `bit`.
    pub(crate) fn presence(&self, bit: u32) -> Presence {
        Presence {
            seen: self.runs_seen.of(bit),
            considered: self.runs_considered.of(bit),
            skipped: self.runs_skipped.of(bit),
            timed: self.timed >> bit & 1 == 1,
            on_stable: self.on_stable >> bit & 1 == 1,
            last_run: self.last_runs.get(at(bit)).copied().flatten(),
        }
    }

    /// Counts logical runs: one with several variants counts once.
    fn count_runs(&mut self, timeline: &Timeline<'_>, backgrounds: &[f64], word: usize) {
        self.runs_seen.clear();
        self.runs_considered.clear();
        self.runs_skipped.clear();
        for run in &timeline.runs {
            let (mut seen, mut considered, mut skipped) = (0, 0, 0);
            for (observed, position) in &run.members {
                skipped |= timeline.skipped_word(observed, word);
                let Some(position) = *position else { continue };
                let tests = self.seen.get(position).copied().unwrap_or(0);
                seen |= tests;
                if backgrounds.get(position).is_some_and(|beta| *beta < MASS_FAILURE) {
                    considered |= tests;
                }
            }
            self.any |= seen | skipped;
            self.runs_seen.add(seen);
            self.runs_considered.add(considered);
            self.runs_skipped.add(skipped & !seen);
        }
    }

    fn find_last_runs(&mut self, timeline: &Timeline<'_>) {
        self.last_runs.clear();
        self.last_runs.resize(at(u64::BITS), None);
        let mut missing = self.seen.iter().fold(0, |all, seen| all | seen);
        for position in &timeline.newest_first {
            if missing == 0 {
                return;
            }
            let mut found = self.seen.get(*position).copied().unwrap_or(0) & missing;
            missing &= !found;
            while found != 0 {
                if let Some(last) = self.last_runs.get_mut(at(found.trailing_zeros())) {
                    *last = timeline.entries.get(*position).map(|entry| entry.source);
                }
                found &= found - 1;
            }
        }
    }
}

/// Sixty-four counters side by side: plane `i` holds bit `i` of each.
#[derive(Debug, Default)]
struct Counter {
    planes: [u64; 32],
}

impl Counter {
    const fn clear(&mut self) {
        self.planes = [0; 32];
    }

    /// Adds one to the counters whose bit is set.
    fn add(&mut self, mut ones: u64) {
        for plane in &mut self.planes {
            if ones == 0 {
                return;
            }
            let carry = *plane & ones;
            *plane ^= ones;
            ones = carry;
        }
    }

    /// The counter of a bit.
    fn of(&self, bit: u32) -> u32 {
        (0..)
            .zip(&self.planes)
            .map(|(power, plane)| u32::from(plane >> bit & 1 == 1) << power)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_count_side_by_side() {
        let mut counter = Counter::default();
        for n in 0..1_000_u32 {
            counter.add(1 | u64::from(n % 3 == 0) << 17 | u64::from(n < 5) << 63);
        }
        assert_eq!(
            (counter.of(0), counter.of(17), counter.of(63), counter.of(5)),
            (1_000, 334, 5, 0)
        );
    }
}
