//! Sixty-four tests at a time: who took part where, counted a word at a time.

use assay_domain::{observation::Bitmap, test::TestOrdinal};

use crate::{
    background::Background,
    counter::Counter,
    numbers::{at, count},
    timeline::Timeline,
};

/// How many columns are read together: a cache line of every bitmap.
pub(crate) const BLOCK: usize = 8;

/// The results of the 64 tests of one word of the bitmaps.
#[derive(Debug, Default)]
pub(crate) struct Column {
    /// Which of the tests took part, by position.
    pub(crate) seen: Vec<u64>,
    /// Which of the tests took part, by logical run.
    pub(crate) seen_in_run: Vec<u64>,
    /// Which of them took part where there was no mass failure, by logical run.
    pub(crate) considered_in_run: Vec<u64>,
    /// Tests with any result, skipped ones included.
    pub(crate) any: u64,
    skipped: Vec<u64>,
    timed: u64,
    on_stable_chain: u64,
    on_stable_branch: u64,
    runs_seen: Counter,
    runs_dropped: Counter,
    runs_skipped: Counter,
    executions_considered: Counter,
    chains_considered: Counter,
    variants_considered: Counter,
    by_chain: Vec<u64>,
    by_lane: Vec<u64>,
    last_runs: Vec<Option<usize>>,
}

/// What is counted of every test, failing or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Presence {
    /// Runs that contain the test, skips aside.
    pub(crate) seen: u32,
    /// Those of them that are no mass failure.
    pub(crate) considered: u32,
    /// Whether any result has a duration.
    pub(crate) timed: bool,
    /// Whether it ran on a stable chain.
    pub(crate) on_stable_chain: bool,
    /// Whether it ran on the stable branch.
    pub(crate) on_stable_branch: bool,
    /// The newest run that did not skip it: its place in the history.
    pub(crate) last_run: Option<usize>,
}

impl Column {
    /// Reads the words from `first` on of every run, one into each column.
    pub(crate) fn read_block(
        columns: &mut [Self; BLOCK],
        timeline: &Timeline<'_>,
        background: &Background,
        first: usize,
    ) {
        for column in columns.iter_mut() {
            column.clear(timeline);
        }
        for ((entry, mass_failure), run) in timeline
            .entries
            .iter()
            .zip(&background.mass_failure)
            .zip(&timeline.run_of)
        {
            let present = words(&entry.observed.present, first);
            let skipped = words(&entry.observed.skipped, first);
            let untimed = words(&entry.observed.untimed, first);
            let stable_chain = timeline.chains.get(entry.chain).is_some_and(|chain| chain.stable);
            for (i, column) in columns.iter_mut().enumerate() {
                let known = timeline.known_tests(first + i);
                let of = |words: &[u64; BLOCK]| words.get(i).copied().unwrap_or(0) & known;
                let seen = of(&present) & !of(&skipped);
                column.seen.push(seen);
                column.skipped.push(of(&present) & of(&skipped));
                column.timed |= seen & !of(&untimed);
                column.on_stable_chain |= if stable_chain { seen } else { 0 };
                column.on_stable_branch |= if entry.on_stable_branch { seen } else { 0 };
                or(&mut column.seen_in_run, *run, seen);
                if !mass_failure {
                    or(&mut column.considered_in_run, *run, seen);
                    or(&mut column.by_chain, entry.chain, seen);
                    column
                        .executions_considered
                        .add(if timeline.has_variants { seen } else { 0 });
                }
            }
        }
        for (i, column) in columns.iter_mut().enumerate() {
            column.count(timeline, first + i);
        }
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
        let is_set = |word: u64| word >> bit & 1 == 1;
        let seen = self.runs_seen.of(bit);
        Presence {
            seen,
            considered: seen - self.runs_dropped.of(bit),
            timed: is_set(self.timed),
            on_stable_chain: is_set(self.on_stable_chain),
            on_stable_branch: is_set(self.on_stable_branch),
            last_run: self.last_runs.get(at(bit)).copied().flatten(),
        }
    }

    /// Runs in which the test was only skipped.
    pub(crate) fn skipped_runs(&self, bit: u32) -> u32 {
        self.runs_skipped.of(bit)
    }

    /// Neighbours within a chain, mass failures aside: one less than results, in each chain.
    pub(crate) fn pairs(&self, timeline: &Timeline<'_>, bit: u32) -> u32 {
        let executions = if timeline.has_variants {
            self.executions_considered.of(bit)
        } else {
            self.presence(bit).considered
        };
        executions - self.chains_considered.of(bit)
    }

    /// Variants that the test ran on, mass failures aside.
    pub(crate) fn variants(&self, bit: u32) -> u32 {
        self.variants_considered.of(bit)
    }

    fn clear(&mut self, timeline: &Timeline<'_>) {
        self.seen.clear();
        self.skipped.clear();
        refill(&mut self.seen_in_run, timeline.runs.len());
        refill(&mut self.considered_in_run, timeline.runs.len());
        refill(&mut self.by_chain, timeline.chains.len());
        refill(&mut self.by_lane, timeline.lanes.len());
        (self.any, self.timed, self.on_stable_chain, self.on_stable_branch) = (0, 0, 0, 0);
        self.runs_seen = Counter::default();
        self.runs_dropped = Counter::default();
        self.runs_skipped = Counter::default();
        self.executions_considered = Counter::default();
        self.chains_considered = Counter::default();
        self.variants_considered = Counter::default();
    }

    fn count(&mut self, timeline: &Timeline<'_>, word: usize) {
        for (seen, considered) in self.seen_in_run.iter().zip(&self.considered_in_run) {
            self.any |= seen;
            self.runs_seen.add(*seen);
            self.runs_dropped.add(seen & !considered);
        }
        for (chain, seen) in timeline.chains.iter().zip(&self.by_chain) {
            self.chains_considered.add(*seen);
            or(&mut self.by_lane, chain.lane, *seen);
        }
        for seen in &self.by_lane {
            self.variants_considered.add(*seen);
        }
        self.find_last_runs(timeline, self.any);
        self.count_skips(timeline, word);
    }

    /// A run counts as skipped where no variant of it ran the test.
    fn count_skips(&mut self, timeline: &Timeline<'_>, word: usize) {
        for (run, seen) in timeline.runs.iter().zip(&self.seen_in_run) {
            let ran = run
                .positions
                .iter()
                .filter_map(|position| self.skipped.get(*position));
            let idle = run
                .idle
                .iter()
                .map(|observed| timeline.skipped_word(observed, word));
            let skipped = ran.copied().chain(idle).fold(0, |all, skipped| all | skipped);
            self.any |= skipped;
            self.runs_skipped.add(skipped & !seen);
        }
    }

    fn find_last_runs(&mut self, timeline: &Timeline<'_>, mut missing: u64) {
        self.last_runs.clear();
        self.last_runs.resize(at(u64::BITS), None);
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

/// The words of a set from `first` on, zero past its end.
fn words(set: &Bitmap, first: usize) -> [u64; BLOCK] {
    set.words()
        .get(first..first + BLOCK)
        .and_then(|words| words.try_into().ok())
        .unwrap_or_else(|| std::array::from_fn(|i| set.word(first + i)))
}

fn or(words: &mut [u64], index: usize, bits: u64) {
    if let Some(word) = words.get_mut(index) {
        *word |= bits;
    }
}

fn refill(words: &mut Vec<u64>, length: usize) {
    words.clear();
    words.resize(length, 0);
}
