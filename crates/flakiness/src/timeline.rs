//! The runs of the window in their canonical order: the input's order never matters.
//!
//! The executions (a run of one variant each) are held by variant, then revision, then time, so that a late rerun of
//! an old commit sits beside its siblings. An execution's place in that order is its *position*.

use std::{collections::BTreeMap, ops::Range};

use assay_domain::{
    observation::{History, RunFacts, RunObservations},
    timestamp::Timestamp,
};

use crate::{
    executed::{Executed, rank_revisions, time_order},
    model::Step,
    numbers::{at, count},
};

/// The runs of the window, ordered.
#[derive(Debug)]
pub(crate) struct Timeline<'h> {
    /// What was asked about.
    pub(crate) history: &'h History,
    /// The executions by variant, revision, time.
    pub(crate) entries: Vec<Entry<'h>>,
    /// The variants: each a range of positions.
    pub(crate) lanes: Vec<Lane>,
    /// The chains of all lanes.
    pub(crate) chains: Vec<Chain<'h>>,
    /// The logical runs, oldest first.
    pub(crate) runs: Vec<Run<'h>>,
    /// The positions, newest first.
    pub(crate) newest_first: Vec<usize>,
    /// Whether any run names its branch. Where none does, all count as on the stable one.
    pub(crate) branches_named: bool,
    /// How many words of the bitmaps hold tests.
    pub(crate) words: usize,
}

/// One execution: a run of one variant in which at least one test was not skipped.
#[derive(Debug)]
pub(crate) struct Entry<'h> {
    /// What was observed.
    pub(crate) observed: &'h RunObservations,
    /// Its place in the history.
    pub(crate) source: usize,
    /// The rank of its revision.
    pub(crate) revision: usize,
    /// Its chain.
    pub(crate) chain: usize,
    /// The position before it in its chain.
    pub(crate) previous: Option<usize>,
    /// What lies between that one and this.
    pub(crate) step: Step,
    /// Whether the run itself was on the stable branch.
    pub(crate) on_stable_branch: bool,
    /// Its logical run.
    pub(crate) run: usize,
    /// How many tests took part.
    pub(crate) seen: u32,
}

/// A variant.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Its positions.
    pub(crate) positions: Range<usize>,
    /// Its stable chain.
    pub(crate) stable: Option<usize>,
}

/// A branch of a variant: where the code state lives.
#[derive(Debug)]
pub(crate) struct Chain<'h> {
    /// Whether it is the stable branch's.
    pub(crate) stable: bool,
    /// Its branch, where named.
    pub(crate) branch: Option<&'h str>,
    /// Its variant.
    pub(crate) variant: &'h str,
}

/// A logical run with its executions.
#[derive(Debug)]
pub(crate) struct Run<'h> {
    /// Its facts, as its first execution tells them.
    pub(crate) facts: &'h RunFacts,
    /// Its executions, those in which every test was skipped included: what was observed, and the position.
    pub(crate) members: Vec<(&'h RunObservations, Option<usize>)>,
}

impl<'h> Timeline<'h> {
    /// Orders the runs of `history` that started within `from..=to`.
    pub(crate) fn new(history: &'h History, from: Timestamp, to: Timestamp) -> Self {
        let window: Vec<(usize, &RunObservations)> = history
            .runs
            .iter()
            .enumerate()
            .filter(|(_, observed)| (from..=to).contains(&observed.run.started_at))
            .collect();
        let longest = window
            .iter()
            .map(|(_, run)| run.present.words().len())
            .max()
            .unwrap_or(0);
        let mut timeline = Self {
            history,
            entries: Vec::with_capacity(window.len()),
            lanes: Vec::new(),
            chains: Vec::new(),
            runs: Vec::new(),
            newest_first: Vec::new(),
            branches_named: false,
            words: longest.min(at(history.tests.div_ceil(u64::BITS))),
        };
        let mut executed = Vec::with_capacity(window.len());
        for (source, observed) in &window {
            let seen = (0..timeline.words)
                .map(|word| timeline.seen_word(observed, word).count_ones())
                .sum();
            if seen > 0 {
                executed.push(Executed {
                    observed,
                    source: *source,
                    seen,
                    revision: 0,
                });
            }
        }
        timeline.branches_named = executed.iter().any(|run| run.observed.run.branch.is_some());
        let branches = rank_revisions(
            &mut executed,
            |branch| timeline.is_stable(branch),
            &history.stable_branch,
        );
        executed.sort_by(Executed::canonical_order);
        timeline.lay_out(&executed, &branches);
        timeline.group_runs(&window);
        timeline
    }

    /// The tests of a word that took part in an execution and were not skipped.
    pub(crate) fn seen_word(&self, observed: &RunObservations, word: usize) -> u64 {
        observed.present.word(word) & !observed.skipped.word(word) & self.known_tests(word)
    }

    /// The tests of a word that were skipped in an execution.
    pub(crate) fn skipped_word(&self, observed: &RunObservations, word: usize) -> u64 {
        observed.present.word(word) & observed.skipped.word(word) & self.known_tests(word)
    }

    /// The bits of a word that are tests of the history at all.
    fn known_tests(&self, word: usize) -> u64 {
        let first = count(word).saturating_mul(u64::BITS);
        match self.history.tests.saturating_sub(first) {
            0 => 0,
            tests @ 1..u64::BITS => (1 << tests) - 1,
            _ => u64::MAX,
        }
    }

    fn is_stable(&self, branch: Option<&str>) -> bool {
        !self.branches_named || branch == Some(&*self.history.stable_branch)
    }

    /// Lays the ordered executions out in lanes and chains; `branches` tells each revision's branch.
    fn lay_out(&mut self, executed: &[Executed<'h>], branches: &[Option<&'h str>]) {
        let mut by_branch: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        let mut last_of_chain: Vec<Option<usize>> = Vec::new();
        for group in executed.chunk_by(|a, b| a.observed.run.variant == b.observed.run.variant) {
            by_branch.clear();
            let start = self.entries.len();
            let mut lane = Lane {
                positions: start..start + group.len(),
                stable: None,
            };
            for run in group {
                let facts = &run.observed.run;
                let branch = branches.get(run.revision).copied().flatten();
                let stable = self.is_stable(branch);
                let chain = *by_branch.entry(branch).or_insert_with(|| {
                    self.chains.push(Chain {
                        stable,
                        branch,
                        variant: &facts.variant,
                    });
                    last_of_chain.push(None);
                    self.chains.len() - 1
                });
                if stable {
                    lane.stable = Some(chain);
                }
                let position = self.entries.len();
                let previous = last_of_chain
                    .get_mut(chain)
                    .and_then(|last| last.replace(position));
                let step = match previous.and_then(|previous| self.entries.get(previous)) {
                    None => Step::First,
                    Some(previous) if previous.revision == run.revision => Step::SameRevision,
                    Some(_) => Step::NewRevision,
                };
                self.entries.push(Entry {
                    observed: run.observed,
                    source: run.source,
                    revision: run.revision,
                    chain,
                    previous,
                    step,
                    on_stable_branch: self.is_stable(facts.branch.as_deref()),
                    run: 0,
                    seen: run.seen,
                });
            }
            self.lanes.push(lane);
        }
        self.newest_first = (0..self.entries.len()).collect();
        let entries = &self.entries;
        self.newest_first.sort_by_key(|position| {
            std::cmp::Reverse(entries.get(*position).map(|entry| {
                let run = &entry.observed.run;
                (run.started_at, run.number, &run.id, *position)
            }))
        });
    }

    /// Joins the executions of one run (equal number and id), oldest run first.
    fn group_runs(&mut self, window: &[(usize, &'h RunObservations)]) {
        let positions: BTreeMap<usize, usize> = self
            .entries
            .iter()
            .enumerate()
            .map(|(position, entry)| (entry.source, position))
            .collect();
        let mut grouped: BTreeMap<(i32, &str), Run<'h>> = BTreeMap::new();
        for (source, observed) in window {
            let facts = &observed.run;
            let run = grouped.entry((facts.number, &facts.id)).or_insert_with(|| Run {
                facts,
                members: Vec::with_capacity(1),
            });
            if (facts.started_at, &facts.branch) < (run.facts.started_at, &run.facts.branch) {
                run.facts = facts;
            }
            run.members.push((observed, positions.get(source).copied()));
        }
        self.runs = grouped.into_values().collect();
        self.runs.sort_by(|a, b| time_order(a.facts, b.facts));
        for (index, run) in self.runs.iter().enumerate() {
            for position in run.members.iter().filter_map(|(_, position)| *position) {
                if let Some(entry) = self.entries.get_mut(position) {
                    entry.run = index;
                }
            }
        }
    }
}
