//! The runs of the window in their canonical order, which does not depend on the order of the input.
//!
//! A *variant run* is the part of a run on one variant. Variant runs are ordered by variant, then chain (the stable one
//! first), then revision, then time. A late rerun of an old commit is thus beside the other runs of that commit. The
//! index in this order is the *position*.

pub(crate) mod failures;
pub(crate) mod layout;
pub(crate) mod positions;
pub(crate) mod variant_runs;

use std::{borrow::Cow, collections::HashMap, ops::Range};

use assay_domain::{
    observation::{Bitmap, Failure, History, RunFacts, RunObservations},
    revision::StableBranch,
    test::TestOrdinal,
    timestamp::{DAY_MS, Timestamp},
};

use crate::{
    model::Step,
    numbers::at,
    timeline::variant_runs::{VariantRun, rank_revisions, time_order},
};

/// The runs of the window, ordered.
#[derive(Debug)]
pub(crate) struct Timeline<'h> {
    /// The history that is judged.
    pub(crate) history: &'h History,
    /// The first and the last time that count.
    pub(crate) window: (Timestamp, Timestamp),
    /// The variant runs that do not count yet. Their tests get a verdict, from the other runs.
    pub(crate) unsettled: Vec<&'h RunObservations>,
    /// The variant runs by variant, chain, revision, time.
    pub(crate) entries: Vec<Entry<'h>>,
    /// The variants: each a range of positions.
    pub(crate) lanes: Vec<Lane>,
    /// The chains of all lanes.
    pub(crate) chains: Vec<Chain<'h>>,
    /// The positions of each revision, variant by variant, by its rank; empty with one variant.
    pub(crate) variants: Vec<Vec<Range<usize>>>,
    /// The runs, oldest first.
    pub(crate) runs: Vec<Run<'h>>,
    /// The positions, newest first.
    pub(crate) newest_first: Vec<usize>,
    /// The run of each position.
    pub(crate) run_of: Vec<usize>,
    /// Whether a run has several variants.
    pub(crate) has_variants: bool,
    /// The stable branch of the runs in which at least one test was not skipped.
    pub(crate) stable_branch: StableBranch<'h>,
    /// The number of bitmap words that contain tests.
    pub(crate) words: usize,
    /// The bits of the last of these words that are tests.
    last_word: u64,
}

/// A variant run in which at least one test was not skipped.
#[derive(Debug)]
pub(crate) struct Entry<'h> {
    /// Its observations.
    pub(crate) observed: &'h RunObservations,
    /// Its place in the history.
    pub(crate) source: usize,
    /// The rank of its revision.
    pub(crate) revision: usize,
    /// Its chain.
    pub(crate) chain: usize,
    /// The failures that agree with its bitmaps, ascending by test, each test once.
    pub(crate) failures: Cow<'h, [Failure]>,
    /// The transition from the previous position of the same chain.
    pub(crate) step: Step,
    /// The time from the start of the chain's revision before to that of this one; 0 for the first revision.
    pub(crate) since_revision_ms: i64,
    /// The last position of the lane's stable chain before it; `None` on that chain.
    pub(crate) stable_before: Option<usize>,
    /// The positions of branches at which new code inherits this position's state; empty off the stable chain.
    pub(crate) dependents: Vec<usize>,
    /// Whether the run itself was on the stable branch.
    pub(crate) on_stable_branch: bool,
}

/// The positions of a revision: on the variants before a variant, on it, and on those after it.
type Variants<'t> = (&'t [Range<usize>], &'t Range<usize>, &'t [Range<usize>]);

/// A variant.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Its positions.
    pub(crate) positions: Range<usize>,
    /// The same, ordered by revision and time, whatever their chain.
    pub(crate) by_revision: Vec<usize>,
    /// Its stable chain.
    pub(crate) stable: Option<usize>,
    /// The positions of the stable chain, newest first.
    pub(crate) stable_newest_first: Vec<usize>,
}

/// A branch of a variant, which has a code state.
#[derive(Debug)]
pub(crate) struct Chain<'h> {
    /// Whether it is the stable branch's.
    pub(crate) stable: bool,
    /// Whether it is a merge queue's. Its failures are those of several changes: no witness, and no branch that fails.
    pub(crate) queue: bool,
    /// Its branch, if it has a name.
    pub(crate) branch: Option<&'h str>,
    /// The place of its pull request among those of the branch; 0 without any.
    pub(crate) change: usize,
    /// Whether the branch's name was used again for another pull request after its last run.
    pub(crate) is_replaced: bool,
    /// Its variant.
    pub(crate) variant: &'h str,
    /// Its lane.
    pub(crate) lane: usize,
    /// Its positions.
    pub(crate) positions: Range<usize>,
}

/// A run with its variants.
#[derive(Debug)]
pub(crate) struct Run<'h> {
    /// Its facts, from its first variant run.
    pub(crate) facts: &'h RunFacts,
    /// Whether it was on the stable branch.
    pub(crate) on_stable_branch: bool,
    /// The positions of its variant runs.
    pub(crate) positions: Vec<usize>,
    /// Its variant runs in which every test was skipped.
    pub(crate) idle: Vec<&'h RunObservations>,
}

impl Entry<'_> {
    /// The time when it started.
    pub(crate) const fn started_at(&self) -> Timestamp {
        self.observed.run.started_at
    }

    /// The failure of a test in it; `None` without a failed attempt.
    pub(crate) fn failure(&self, test: TestOrdinal) -> Option<&Failure> {
        let place = self.failures.binary_search_by_key(&test, |failure| failure.test);
        self.failures.get(place.ok()?)
    }

    /// Whether the test has a failed attempt in it.
    pub(crate) fn has_failure(&self, test: TestOrdinal) -> bool {
        self.failure(test).is_some()
    }
}

impl<'h> Timeline<'h> {
    /// Orders the runs of `history` that started within `from..=to`, and of these the ones that count.
    pub(crate) fn new(
        history: &'h History,
        (from, to): (Timestamp, Timestamp),
        counts: impl Fn(&RunObservations) -> bool,
    ) -> Self {
        let mut unsettled = Vec::new();
        let mut window: Vec<(usize, &RunObservations)> = Vec::new();
        let mut longest = 0;
        for (source, observed) in history.runs.iter().enumerate() {
            if !(from..=to).contains(&observed.run.started_at) {
                continue;
            }
            longest = longest.max(observed.present.words().len());
            if counts(observed) {
                window.push((source, observed));
            } else {
                unsettled.push(observed);
            }
        }
        let words_of_tests = at(history.tests.div_ceil(u64::BITS));
        let words = longest.min(words_of_tests);
        let tests_in_last = if words == words_of_tests {
            history.tests % u64::BITS
        } else {
            0
        };
        let mut timeline = Self {
            history,
            window: (from, to),
            unsettled,
            entries: Vec::with_capacity(window.len()),
            lanes: Vec::new(),
            chains: Vec::new(),
            variants: Vec::new(),
            runs: Vec::new(),
            newest_first: Vec::new(),
            run_of: Vec::new(),
            has_variants: false,
            stable_branch: StableBranch::among(&history.stable_branch, std::iter::empty()),
            words,
            last_word: if tests_in_last == 0 {
                u64::MAX
            } else {
                (1 << tests_in_last) - 1
            },
        };
        let mut variant_runs = Vec::with_capacity(window.len());
        for (source, observed) in &window {
            if (0..timeline.words).any(|word| timeline.seen_word(observed, word) != 0) {
                variant_runs.push(VariantRun {
                    observed,
                    source: *source,
                    revision: 0,
                });
            }
        }
        let branches_of_runs = variant_runs.iter().map(|run| run.observed.run.branch.as_deref());
        timeline.stable_branch = StableBranch::among(&history.stable_branch, branches_of_runs);
        let lines = rank_revisions(&mut variant_runs, timeline.stable_branch);
        variant_runs.sort_by(VariantRun::canonical_order);
        timeline.lay_out(&variant_runs, &lines);
        timeline.group_runs(&window);
        timeline
    }

    /// The positions of this position's revision: on the variants before its own, on its own, and on those after it.
    pub(crate) fn variants_of(&self, position: usize) -> Option<Variants<'_>> {
        let revision = self.entries.get(position)?.revision;
        let variants = self.variants.get(revision)?;
        let own = variants.iter().position(|range| range.contains(&position))?;
        let (before, rest) = variants.split_at_checked(own)?;
        let (own, after) = rest.split_first()?;
        Some((before, own, after))
    }

    /// Whether the newest run is more than a day younger than a chain's last one. It does not depend on the time of the
    /// judgement, which requests share.
    pub(crate) fn is_over(&self, chain: &Chain<'_>) -> bool {
        let last = self.entries.get(chain.positions.clone()).and_then(<[_]>::last);
        let newest = self
            .newest_first
            .first()
            .and_then(|newest| self.entries.get(*newest));
        last.zip(newest)
            .is_some_and(|(last, newest)| newest.started_at().since_ms(last.started_at()) > DAY_MS)
    }

    /// Whether a position is on the stable chain of its variant.
    pub(crate) fn is_on_stable_chain(&self, position: usize) -> bool {
        let entry = self.entries.get(position);
        let chain = entry.and_then(|entry| self.chains.get(entry.chain));
        chain.is_some_and(|chain| chain.stable)
    }

    /// ` on main`, or empty if no run names its branch.
    pub(crate) fn on_stable_branch(&self) -> String {
        match self.stable_branch.any_branch_named {
            true => format!(" on {}", self.stable_branch.name),
            false => String::new(),
        }
    }

    /// The newest run that does not count yet and in which the test failed.
    pub(crate) fn unsettled_failure(&self, test: TestOrdinal) -> Option<&'h RunFacts> {
        let failed = self.unsettled.iter().filter(|observed| observed.failed(test));
        let runs = failed.map(|observed| &observed.run);
        runs.max_by_key(|run| (run.started_at, run.number))
    }

    /// The tests of a word that ran at a position and were not skipped.
    pub(crate) fn seen_word(&self, observed: &RunObservations, word: usize) -> u64 {
        observed.present.word(word) & !observed.skipped.word(word) & self.known_tests(word)
    }

    /// Whether a test ran in a variant run and was not skipped.
    pub(crate) fn is_seen(&self, observed: &RunObservations, test: TestOrdinal) -> bool {
        self.seen_word(observed, at(test / u64::BITS)) >> (test % u64::BITS) & 1 == 1
    }

    /// The tests of a word that were skipped at a position.
    pub(crate) fn skipped_word(&self, observed: &RunObservations, word: usize) -> u64 {
        observed.present.word(word) & observed.skipped.word(word) & self.known_tests(word)
    }

    /// The bits of a word that are tests of the history.
    pub(crate) fn known_tests(&self, word: usize) -> u64 {
        match self.words.checked_sub(word + 1) {
            None => 0,
            Some(0) => self.last_word,
            Some(_) => u64::MAX,
        }
    }

    /// The tests that ran in a variant run and were not skipped.
    pub(crate) fn seen(&self, observed: &RunObservations) -> Bitmap {
        Bitmap::from_words(
            (0..self.words)
                .map(|word| self.seen_word(observed, word))
                .collect(),
        )
    }

    /// The number of tests that ran at a position.
    pub(crate) fn count_seen(&self, observed: &RunObservations) -> u32 {
        (0..self.words)
            .map(|word| self.seen_word(observed, word).count_ones())
            .sum()
    }

    /// The number of tests that ran in both variant runs.
    pub(crate) fn count_in_both(&self, one: &RunObservations, other: &RunObservations) -> u32 {
        (0..self.words)
            .map(|word| (self.seen_word(one, word) & self.seen_word(other, word)).count_ones())
            .sum()
    }

    /// The number of tests that ran in the window.
    pub(crate) fn count_tests(&self) -> u32 {
        let ran = |word: usize| {
            let words = self
                .entries
                .iter()
                .map(|entry| self.seen_word(entry.observed, word));
            words.fold(0, |ran, seen| ran | seen)
        };
        (0..self.words).map(|word| ran(word).count_ones()).sum()
    }

    /// Joins the variants of one run (equal number and id), oldest run first.
    fn group_runs(&mut self, window: &[(usize, &'h RunObservations)]) {
        let mut positions = vec![None; self.history.runs.len()];
        for (position, entry) in self.entries.iter().enumerate() {
            if let Some(of_source) = positions.get_mut(entry.source) {
                *of_source = Some(position);
            }
        }
        let mut places = HashMap::with_capacity(window.len());
        for (source, observed) in window {
            let facts = &observed.run;
            let place = *places
                .entry((facts.number, &*facts.id))
                .or_insert(self.runs.len());
            if place == self.runs.len() {
                self.runs.push(Run {
                    facts,
                    on_stable_branch: false,
                    positions: Vec::with_capacity(1),
                    idle: Vec::new(),
                });
            }
            let Some(run) = self.runs.get_mut(place) else {
                continue;
            };
            if (facts.started_at, &facts.branch) < (run.facts.started_at, &run.facts.branch) {
                run.facts = facts;
            }
            match positions.get(*source).copied().flatten() {
                Some(position) => run.positions.push(position),
                None => run.idle.push(observed),
            }
        }
        self.runs.sort_by(|a, b| time_order(a.facts, b.facts));
        self.run_of = vec![0; self.entries.len()];
        for (index, run) in self.runs.iter_mut().enumerate() {
            self.has_variants |= run.positions.len() > 1;
            for position in &run.positions {
                run.on_stable_branch |= self
                    .entries
                    .get(*position)
                    .is_some_and(|entry| entry.on_stable_branch);
                if let Some(run_of) = self.run_of.get_mut(*position) {
                    *run_of = index;
                }
            }
        }
    }
}
