//! Variant runs before they have a position: their revisions and their order.

use std::{cmp::Ordering, collections::HashMap};

use assay_domain::{
    merge_queue::is_queue_branch,
    observation::{RunFacts, RunObservations},
    revision::{RevisionStart, StableBranch},
    timestamp::Timestamp,
};

/// A variant run before it has its position.
pub(crate) struct VariantRun<'h> {
    /// Its observations.
    pub(crate) observed: &'h RunObservations,
    /// Its place in the history.
    pub(crate) source: usize,
    /// The rank of its revision.
    pub(crate) revision: usize,
}

impl VariantRun<'_> {
    /// A total order of variant runs that differ in anything the engine reads. Ties are broken by content, so that the
    /// order of the input does not matter even for equal times.
    pub(crate) fn canonical_order(&self, other: &Self) -> Ordering {
        let (a, b) = (self.observed, other.observed);
        let failures = |run: &RunObservations| {
            run.failures
                .iter()
                .map(|f| (f.test, f.recovered, f.failed_attempts, f.lost_ms))
                .collect::<Vec<_>>()
        };
        let repeated = |run: &RunObservations| {
            run.repeated
                .iter()
                .map(|r| (r.test, r.executions, r.failed))
                .collect::<Vec<_>>()
        };
        a.run
            .variant
            .cmp(&b.run.variant)
            .then(self.revision.cmp(&other.revision))
            .then_with(|| time_order(&a.run, &b.run))
            .then_with(|| a.run.branch.cmp(&b.run.branch))
            .then_with(|| a.present.words().cmp(b.present.words()))
            .then_with(|| a.skipped.words().cmp(b.skipped.words()))
            .then_with(|| a.untimed.words().cmp(b.untimed.words()))
            .then_with(|| failures(a).cmp(&failures(b)))
            .then_with(|| repeated(a).cmp(&repeated(b)))
    }
}
/// A line of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Line<'h> {
    /// The branch of its revisions.
    pub(crate) branch: Option<&'h str>,
    /// The place of its pull request among those of the branch, whose name may be used again; 0 without any.
    pub(crate) change: usize,
    /// Whether merges of the branch's revisions were tested.
    pub(crate) is_merge: bool,
}

/// Ranks the revisions by the start of their first run, and returns the line of each by its rank.
pub(crate) fn rank_revisions<'h>(
    variant_runs: &mut [VariantRun<'h>],
    stable_branch: StableBranch<'h>,
) -> Vec<Line<'h>> {
    let mut places = HashMap::with_capacity(variant_runs.len());
    let mut revisions: Vec<Revision<'h>> = Vec::new();
    for run in variant_runs.iter_mut() {
        let key = RevisionKey::of(&run.observed.run);
        let run_here = start_of(&run.observed.run);
        let next = revisions.len();
        let place = *places.entry(key).or_insert(next);
        if place == next {
            revisions.push(Revision {
                key,
                place,
                start: run_here,
            });
        }
        // A temporary place.
        run.revision = place;
        if let Some(revision) = revisions.get_mut(place) {
            revision.start = revision.start.with_run(run_here, stable_branch);
        }
    }
    revisions.sort_unstable_by_key(|revision| (revision.start.at, revision.start.number, revision.key));
    let mut ranks = vec![0; revisions.len()];
    for (rank, revision) in revisions.iter().enumerate() {
        if let Some(place) = ranks.get_mut(revision.place) {
            *place = rank;
        }
    }
    // The first run of each head of a branch that names a pull request. A push of it and a merge are two revisions.
    let mut named: HashMap<(&str, &str), (Timestamp, i32, i64)> = HashMap::new();
    for run in variant_runs {
        run.revision = ranks.get(run.revision).copied().unwrap_or(0);
        let facts = &run.observed.run;
        if let (Some(branch), [number]) = (facts.branch.as_deref(), &facts.pull_requests[..]) {
            let found = (facts.started_at, facts.number, *number);
            let first = named.entry((branch, RevisionKey::of(facts).head()));
            first
                .and_modify(|first| *first = (*first).min(found))
                .or_insert(found);
        }
    }
    // The pull requests of each branch, and the place of the last one. A push does not name its pull request.
    let mut changes: HashMap<&str, (Vec<i64>, usize)> = HashMap::new();
    let lines = revisions.into_iter().map(|revision| {
        let branch = revision.start.branch;
        let has_changes = |branch: &&str| !stable_branch.is(Some(branch)) && !is_queue_branch(branch);
        let change = branch.filter(has_changes).map_or(0, |branch| {
            let (numbers, last) = changes.entry(branch).or_default();
            if let Some((.., number)) = named.get(&(branch, revision.key.head())) {
                let known = numbers.iter().position(|known| known == number);
                *last = known.unwrap_or_else(|| {
                    numbers.push(*number);
                    numbers.len() - 1
                });
            }
            *last
        });
        Line {
            branch,
            change,
            is_merge: matches!(revision.key, RevisionKey::Merge(..)),
        }
    });
    lines.collect()
}

/// A revision before it has a rank.
struct Revision<'h> {
    key: RevisionKey<'h>,
    /// Its place in the order of the input.
    place: usize,
    start: RevisionStart<'h>,
}

/// Runs by time.
pub(crate) fn time_order(a: &RunFacts, b: &RunFacts) -> Ordering {
    (a.started_at, a.number, &a.id).cmp(&(b.started_at, b.number, &b.id))
}

/// The identity of the tested code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum RevisionKey<'h> {
    Named(&'h str),
    /// A merge of a revision, such as one into the base of its pull request.
    Merge(&'h str, &'h str),
    /// A run without a revision shares its code with no other run.
    Own(i32, &'h str),
}

impl<'h> RevisionKey<'h> {
    fn of(run: &'h RunFacts) -> Self {
        match (run.revision.as_deref(), run.merge.as_deref()) {
            (Some(revision), Some(merge)) => Self::Merge(revision, merge),
            (Some(revision), None) => Self::Named(revision),
            (None, _) => Self::Own(run.number, &run.id),
        }
    }

    /// The revision itself, of which a merge may have been tested.
    const fn head(self) -> &'h str {
        match self {
            Self::Named(head) | Self::Merge(head, _) | Self::Own(_, head) => head,
        }
    }
}

/// The start of a revision with this run alone, before the rule of the stable branch.
fn start_of(run: &RunFacts) -> RevisionStart<'_> {
    RevisionStart {
        at: run.started_at,
        number: run.number,
        branch: run.branch.as_deref(),
    }
}
