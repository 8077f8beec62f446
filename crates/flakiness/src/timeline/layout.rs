//! The layout of the variant runs: lanes, chains, and the links between them.

use std::{cmp::Reverse, collections::BTreeMap};

use assay_domain::{merge_queue::is_queue_branch, timestamp::Timestamp};

use crate::{
    model::Step,
    timeline::{
        Chain, Entry, Lane, Timeline,
        failures::sound_failures,
        variant_runs::{Line, VariantRun},
    },
};

impl<'h> Timeline<'h> {
    /// Lays the ordered variant runs out in lanes and chains. `lines` has the line of each revision.
    pub(crate) fn lay_out(&mut self, variant_runs: &[VariantRun<'h>], lines: &[Line<'h>]) {
        for variant in variant_runs.chunk_by(|a, b| a.observed.run.variant == b.observed.run.variant) {
            self.lay_out_lane(variant, lines);
        }
        if self.lanes.len() > 1 {
            self.join_variants(lines.len());
        }
        self.mark_replaced();
        self.newest_first = (0..self.entries.len()).collect();
        let entries = &self.entries;
        self.newest_first.sort_by_key(|position| {
            Reverse(entries.get(*position).map(|entry| {
                let run = &entry.observed.run;
                (run.started_at, run.number, &run.id, *position)
            }))
        });
        for position in &self.newest_first {
            let chain = entries
                .get(*position)
                .and_then(|entry| self.chains.get(entry.chain));
            let Some(chain) = chain.filter(|chain| chain.stable) else {
                continue;
            };
            if let Some(lane) = self.lanes.get_mut(chain.lane) {
                lane.stable_newest_first.push(*position);
            }
        }
    }

    /// Marks the chains after which their branch's name was used again. The pull requests of a branch are numbered as they
    /// began.
    fn mark_replaced(&mut self) {
        let entries = &self.entries;
        let of = |chain: &Chain<'_>| entries.get(chain.positions.clone()).unwrap_or_default();
        let mut newest: BTreeMap<&str, (usize, Timestamp)> = BTreeMap::new();
        for chain in &self.chains {
            if let (Some(branch), [first, ..]) = (chain.branch, of(chain)) {
                let began = (chain.change, first.started_at());
                let newest = newest.entry(branch).or_insert(began);
                if (began.0, Reverse(began.1)) > (newest.0, Reverse(newest.1)) {
                    *newest = began;
                }
            }
        }
        for chain in &mut self.chains {
            let newest = chain.branch.and_then(|branch| newest.get(branch));
            chain.is_replaced = newest
                .zip(of(chain).last())
                .is_some_and(|((change, began), last)| *change != chain.change && *began > last.started_at());
        }
    }

    /// Records where each revision ran, variant by variant.
    fn join_variants(&mut self, revisions: usize) {
        self.variants = vec![Vec::new(); revisions];
        let mut chain = None;
        for (position, entry) in self.entries.iter().enumerate() {
            let same_chain = chain.replace(entry.chain) == Some(entry.chain);
            let Some(ranges) = self.variants.get_mut(entry.revision) else {
                continue;
            };
            match ranges.last_mut() {
                Some(range) if same_chain && range.end == position => range.end += 1,
                _ => ranges.push(position..position + 1),
            }
        }
    }

    /// Lays out the runs of one variant: its stable chain, then the others in the order of their first run.
    fn lay_out_lane(&mut self, variant_runs: &[VariantRun<'h>], lines: &[Line<'h>]) {
        let mut line_indexes: BTreeMap<Line<'_>, usize> = BTreeMap::new();
        let mut by_line: Vec<(Line<'h>, Vec<_>)> = Vec::new();
        for run in variant_runs.iter().enumerate() {
            let mut line = lines.get(run.1.revision).copied().unwrap_or_default();
            line.is_merge &= !self.stable_branch.is(line.branch);
            let next = by_line.len();
            let place = *line_indexes.entry(line).or_insert(next);
            if place == next {
                by_line.push((line, Vec::new()));
            }
            if let Some((_, runs)) = by_line.get_mut(place) {
                runs.push(run);
            }
        }
        by_line.sort_by_key(|(line, _)| !self.stable_branch.is(line.branch));
        let start = self.entries.len();
        let mut lane = Lane {
            positions: start..start + variant_runs.len(),
            by_revision: vec![start; variant_runs.len()],
            stable: None,
            stable_newest_first: Vec::new(),
        };
        for (Line { branch, change, .. }, runs) in by_line {
            let first = self.entries.len();
            let stable = self.stable_branch.is(branch);
            let chain = Chain {
                stable,
                queue: !stable && branch.is_some_and(is_queue_branch),
                branch,
                change,
                is_replaced: false,
                variant: variant_runs.first().map_or("", |run| &run.observed.run.variant),
                lane: self.lanes.len(),
                positions: first..first + runs.len(),
            };
            if chain.stable {
                lane.stable = Some(self.chains.len());
            }
            let mut revisions = Revisions::default();
            for (place, run) in runs {
                if let Some(position) = lane.by_revision.get_mut(place) {
                    *position = self.entries.len();
                }
                let (step, since_revision_ms) = revisions.enter(run.revision, run.observed.run.started_at);
                self.append(run, step, since_revision_ms);
            }
            self.chains.push(chain);
        }
        self.link_dependents(&lane);
        self.lanes.push(lane);
    }

    /// Appends a variant run to the current chain, at the next position.
    fn append(&mut self, run: &VariantRun<'h>, step: Step, since_revision_ms: i64) {
        self.entries.push(Entry {
            observed: run.observed,
            source: run.source,
            revision: run.revision,
            chain: self.chains.len(),
            failures: sound_failures(self, run.observed),
            step,
            since_revision_ms,
            stable_before: None,
            dependents: Vec::new(),
            on_stable_branch: self.stable_branch.is(run.observed.run.branch.as_deref()),
        });
    }

    /// Links each position off the stable chain with the last stable position before it. New code inherits its state.
    fn link_dependents(&mut self, lane: &Lane) {
        let mut stable_before = None;
        for position in &lane.by_revision {
            let Some(entry) = self.entries.get_mut(*position) else {
                continue;
            };
            if lane.stable == Some(entry.chain) {
                stable_before = Some(*position);
                continue;
            }
            entry.stable_before = stable_before;
            let is_new = entry.step.is_new_code();
            let stable = stable_before.and_then(|stable| self.entries.get_mut(stable));
            if let Some(stable) = stable.filter(|_| is_new) {
                stable.dependents.push(*position);
            }
        }
    }
}

/// The revisions of a chain, in their order.
#[derive(Debug, Default)]
struct Revisions {
    /// The revision and its start.
    current: Option<(usize, Timestamp)>,
    /// The time from the start of the revision before to that of the current one.
    since_ms: i64,
}

impl Revisions {
    /// The step to a run of this revision, and the time from the start of the revision before to that of this one.
    fn enter(&mut self, revision: usize, at: Timestamp) -> (Step, i64) {
        let step = Step::between(self.current.map(|(current, _)| current), revision);
        if step.is_new_code() {
            self.since_ms = self.current.map_or(0, |(_, began)| at.since_ms(began));
            self.current = Some((revision, at));
        }
        (step, self.since_ms)
    }
}
