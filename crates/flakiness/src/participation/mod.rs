//! Participation bitmaps for a block of 512 tests, transposed so that one cache line holds one run.
//!
//! A test is *seen* in a run if it has a result there that is not skipped. A seen result is *considered* unless the run
//! is a mass failure.

pub(crate) mod column;
pub(crate) mod counter;
pub(crate) mod row;

use assay_domain::test::TestOrdinal;

use crate::{
    config::{ENOUGH_RUNS, STILL_ENOUGH_RUNS},
    model::background::Background,
    numbers::{at, count},
    participation::{
        column::Column,
        counter::Counter,
        row::{Row, WORDS, and, and_not, is_empty, or, or_at, row, transpose},
    },
    timeline::Timeline,
};

/// The participation of the tests of eight bitmap words.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The first of the words.
    first: usize,
    /// The positions at which the tests of each word ran.
    pub(crate) columns: [Participation; WORDS],
    /// Tests with a result that is not skipped.
    seen: Row,
    /// Tests with any result, those that are skipped or do not count yet included.
    any: Row,
    timed: Row,
    on_stable_chain: Row,
    on_stable_branch: Row,
    runs_seen: Counter,
    runs_dropped: Counter,
    runs_skipped: Counter,
    positions_considered: Counter,
    chains_considered: Counter,
    variants_considered: Counter,
    last_runs: Vec<Option<usize>>,
    scratch: Scratch,
}

/// The positions at which 64 tests ran.
#[derive(Debug, Default)]
pub(crate) struct Participation {
    /// The tests that ran, by position.
    pub(crate) seen: Vec<u64>,
    /// The tests that ran at every position of a lane, by lane.
    pub(crate) always_seen: Vec<u64>,
    /// The tests that ran, by run.
    pub(crate) seen_in_run: Vec<u64>,
    /// The tests that ran without a mass failure, by run.
    pub(crate) considered_in_run: Vec<u64>,
}

#[derive(Debug, Default)]
struct Scratch {
    seen: Vec<Row>,
    skipped: Vec<Row>,
    seen_in_run: Vec<Row>,
    considered_in_run: Vec<Row>,
    by_chain: Vec<Row>,
    by_lane: Vec<Row>,
}

/// The counts that every test has, failing or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Presence {
    /// Runs in which the test was not skipped.
    pub(crate) seen: u32,
    /// Those of them that are not mass failures.
    pub(crate) considered: u32,
    /// Whether these are enough for a verdict.
    pub(crate) enough: bool,
    /// Runs in which it was only skipped.
    pub(crate) skipped: u32,
    /// Whether any result has a duration.
    pub(crate) timed: bool,
    /// Whether it ran on a stable chain.
    pub(crate) on_stable_chain: bool,
    /// Whether it ran on the stable branch.
    pub(crate) on_stable_branch: bool,
    /// The newest run in which it was not skipped, as its place in the history.
    pub(crate) last_run: Option<usize>,
}

impl Participation {
    fn find_always_seen(&mut self, timeline: &Timeline<'_>) {
        let seen = &self.seen;
        self.always_seen.clear();
        self.always_seen.extend(timeline.lanes.iter().map(|lane| {
            let positions = seen.get(lane.positions.clone()).unwrap_or_default();
            positions.iter().fold(u64::MAX, |all, tests| all & tests)
        }));
    }
}

impl Block {
    /// Reads eight words of every run, from word `first` on.
    pub(crate) fn read(&mut self, timeline: &Timeline<'_>, background: &Background, first: usize) {
        self.clear(timeline, first);
        let tests: Row = std::array::from_fn(|i| timeline.known_tests(first + i));
        for (((entry, mass_failure), run), position) in timeline
            .entries
            .iter()
            .zip(&background.mass_failure)
            .zip(&timeline.run_of)
            .zip(0..)
        {
            let present = and(&row(&entry.observed.present, first), &tests);
            let skipped = and(&row(&entry.observed.skipped, first), &present);
            let seen = and_not(&present, &skipped);
            or(&mut self.any, &present);
            or(&mut self.seen, &seen);
            or(
                &mut self.timed,
                &and_not(&seen, &row(&entry.observed.untimed, first)),
            );
            if timeline.chains.get(entry.chain).is_some_and(|chain| chain.stable) {
                or(&mut self.on_stable_chain, &seen);
            }
            if entry.on_stable_branch {
                or(&mut self.on_stable_branch, &seen);
            }
            or_at(&mut self.scratch.seen_in_run, *run, &seen);
            let lasting = background.lasting(position).map(|tests| row(tests, first));
            let considered = match (mass_failure, lasting) {
                (false, _) => Some(seen),
                (true, Some(lasting)) => Some(and(&seen, &lasting)),
                (true, None) => None,
            };
            if let Some(considered) = considered {
                or_at(&mut self.scratch.considered_in_run, *run, &considered);
                or_at(&mut self.scratch.by_chain, entry.chain, &considered);
                if timeline.has_variants {
                    self.positions_considered.add(&considered);
                }
            }
            self.scratch.seen.push(seen);
            self.scratch.skipped.push(skipped);
        }
        for observed in &timeline.unsettled {
            or(&mut self.any, &and(&row(&observed.present, first), &tests));
        }
        self.count(timeline);
        for (i, column) in self.columns.iter_mut().enumerate() {
            transpose(&self.scratch.seen, i, &mut column.seen);
            column.find_always_seen(timeline);
            transpose(&self.scratch.seen_in_run, i, &mut column.seen_in_run);
            transpose(&self.scratch.considered_in_run, i, &mut column.considered_in_run);
        }
    }

    /// The tests of word `index` of the block that have any result, skipped ones included.
    pub(crate) fn any(&self, index: usize) -> u64 {
        self.any.get(index).copied().unwrap_or(0)
    }

    /// The ordinal of the test at a bit of a word.
    pub(crate) fn test(&self, index: usize, bit: u32) -> TestOrdinal {
        count(self.first + index) * u64::BITS + bit
    }

    /// The counts of the test at `bit` of word `index`.
    pub(crate) fn presence(&self, timeline: &Timeline<'_>, index: usize, bit: u32) -> Presence {
        let is_set = |row: &Row| row.get(index).is_some_and(|word| word >> bit & 1 == 1);
        let seen = self.runs_seen.of(index, bit);
        let considered = seen - self.runs_dropped.of(index, bit);
        Presence {
            seen,
            considered,
            enough: considered >= ENOUGH_RUNS
                || considered >= STILL_ENOUGH_RUNS && self.had_enough(timeline, index, bit),
            skipped: self.runs_skipped.of(index, bit),
            timed: is_set(&self.timed),
            on_stable_chain: is_set(&self.on_stable_chain),
            on_stable_branch: is_set(&self.on_stable_branch),
            last_run: self
                .last_runs
                .get(index * at(u64::BITS) + at(bit))
                .copied()
                .flatten(),
        }
    }

    /// Whether a test with too few runs had enough of them before: at its pace, it ran when the window began, and five runs
    /// fit into a window. So a test that runs every third day has a verdict, whether four or five of its runs are in the
    /// window.
    fn had_enough(&self, timeline: &Timeline<'_>, index: usize, bit: u32) -> bool {
        let considered = self.columns.get(index).map(|column| &column.considered_in_run);
        let runs = timeline.runs.iter().zip(considered.into_iter().flatten());
        let mut times = runs
            .filter(|(_, tests)| *tests >> bit & 1 == 1)
            .map(|(run, _)| run.facts.started_at);
        let Some(oldest) = times.next() else { return false };
        let (gaps, newest) = times.fold((0, oldest), |(gaps, _), time| (gaps + 1, time));
        let (from, to) = timeline.window;
        newest.since_ms(oldest) >= gaps * oldest.since_ms(from)
            && i64::from(ENOUGH_RUNS - 1) * newest.since_ms(oldest) <= gaps * to.since_ms(from)
    }

    /// The column of the failing test at `bit` of word `index`; `presence` is its own.
    pub(crate) fn column(
        &self,
        timeline: &Timeline<'_>,
        index: usize,
        bit: u32,
        presence: Presence,
    ) -> Option<Column<'_>> {
        let positions = if timeline.has_variants {
            self.positions_considered.of(index, bit)
        } else {
            presence.considered
        };
        Some(Column {
            participation: self.columns.get(index)?,
            bit,
            presence,
            pairs: positions - self.chains_considered.of(index, bit),
            variants: self.variants_considered.of(index, bit),
        })
    }

    fn clear(&mut self, timeline: &Timeline<'_>, first: usize) {
        self.first = first;
        for row in [
            &mut self.seen,
            &mut self.any,
            &mut self.timed,
            &mut self.on_stable_chain,
            &mut self.on_stable_branch,
        ] {
            *row = [0; WORDS];
        }
        for counter in [
            &mut self.runs_seen,
            &mut self.runs_dropped,
            &mut self.runs_skipped,
            &mut self.positions_considered,
            &mut self.chains_considered,
            &mut self.variants_considered,
        ] {
            *counter = Counter::default();
        }
        self.scratch.seen.clear();
        self.scratch.skipped.clear();
        for (rows, length) in [
            (&mut self.scratch.seen_in_run, timeline.runs.len()),
            (&mut self.scratch.considered_in_run, timeline.runs.len()),
            (&mut self.scratch.by_chain, timeline.chains.len()),
            (&mut self.scratch.by_lane, timeline.lanes.len()),
        ] {
            rows.clear();
            rows.resize(length, [0; WORDS]);
        }
    }

    fn count(&mut self, timeline: &Timeline<'_>) {
        let runs = self
            .scratch
            .seen_in_run
            .iter()
            .zip(&self.scratch.considered_in_run);
        for (run, (seen, considered)) in timeline.runs.iter().zip(runs) {
            self.runs_seen.add(seen);
            self.runs_dropped.add(&and_not(seen, considered));
            // A run counts as skipped if no variant of it ran the test.
            let mut skipped = [0; WORDS];
            for row in run
                .positions
                .iter()
                .filter_map(|position| self.scratch.skipped.get(*position))
            {
                or(&mut skipped, row);
            }
            for observed in &run.idle {
                let idle: Row = std::array::from_fn(|i| timeline.skipped_word(observed, self.first + i));
                or(&mut skipped, &idle);
                or(&mut self.any, &idle);
            }
            self.runs_skipped.add(&and_not(&skipped, seen));
        }
        for (chain, seen) in timeline.chains.iter().zip(&self.scratch.by_chain) {
            self.chains_considered.add(seen);
            or_at(&mut self.scratch.by_lane, chain.lane, seen);
        }
        for seen in &self.scratch.by_lane {
            self.variants_considered.add(seen);
        }
        self.find_last_runs(timeline);
    }

    fn find_last_runs(&mut self, timeline: &Timeline<'_>) {
        self.last_runs.clear();
        self.last_runs.resize(WORDS * at(u64::BITS), None);
        let mut missing = self.seen;
        for position in &timeline.newest_first {
            if is_empty(&missing) {
                return;
            }
            let Some(seen) = self.scratch.seen.get(*position) else {
                continue;
            };
            let source = timeline.entries.get(*position).map(|entry| entry.source);
            for ((seen, missing), last_runs) in seen
                .iter()
                .zip(&mut missing)
                .zip(self.last_runs.chunks_mut(at(u64::BITS)))
            {
                let mut newest = seen & *missing;
                *missing &= !newest;
                while newest != 0 {
                    if let Some(last) = last_runs.get_mut(at(newest.trailing_zeros())) {
                        *last = source;
                    }
                    newest &= newest - 1;
                }
            }
        }
    }
}
