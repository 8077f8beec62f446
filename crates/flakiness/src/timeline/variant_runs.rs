//! Variant runs before they have a position: their revisions and their order.

use std::{cmp::Ordering, collections::HashMap};

use assay_domain::{
    observation::{RunFacts, RunObservations},
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
    }
}
/// Ranks the revisions by the start of their first run, and returns the branch of each by its rank. A revision that
/// ever ran on the stable branch belongs to it, and any other to the branch of its first run.
pub(crate) fn rank_revisions<'h>(
    variant_runs: &mut [VariantRun<'h>],
    is_stable: impl Fn(Option<&str>) -> bool,
    stable_branch: &'h str,
) -> Vec<Option<&'h str>> {
    let mut places = HashMap::with_capacity(variant_runs.len());
    let mut revisions: Vec<Revision<'h>> = Vec::new();
    for run in variant_runs.iter_mut() {
        let key = RevisionKey::of(&run.observed.run);
        let run_here = FirstRun::of(&run.observed.run);
        let next = revisions.len();
        let place = *places.entry(key).or_insert(next);
        if place == next {
            revisions.push(Revision {
                key,
                place,
                first: run_here,
            });
        }
        // A temporary place.
        run.revision = place;
        let Some(revision) = revisions.get_mut(place) else {
            continue;
        };
        let on_stable = is_stable(revision.first.branch) || is_stable(run_here.branch);
        revision.first = revision.first.min(run_here);
        if on_stable {
            revision.first.branch = Some(stable_branch);
        }
    }
    revisions.sort_unstable_by_key(|revision| (revision.first.at, revision.first.number, revision.key));
    let mut ranks = vec![0; revisions.len()];
    for (rank, revision) in revisions.iter().enumerate() {
        if let Some(place) = ranks.get_mut(revision.place) {
            *place = rank;
        }
    }
    for run in variant_runs {
        run.revision = ranks.get(run.revision).copied().unwrap_or(0);
    }
    revisions
        .into_iter()
        .map(|revision| revision.first.branch)
        .collect()
}

/// A revision before it has a rank.
struct Revision<'h> {
    key: RevisionKey<'h>,
    /// Its place in the order of the input.
    place: usize,
    first: FirstRun<'h>,
}

/// Runs by time.
pub(crate) fn time_order(a: &RunFacts, b: &RunFacts) -> Ordering {
    (a.started_at, a.number, &a.id).cmp(&(b.started_at, b.number, &b.id))
}

/// The identity of the tested code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum RevisionKey<'h> {
    Named(&'h str),
    /// A run without a revision shares its code with no other run.
    Own(i32, &'h str),
}

impl<'h> RevisionKey<'h> {
    fn of(run: &'h RunFacts) -> Self {
        run.revision
            .as_deref()
            .map_or(Self::Own(run.number, &run.id), Self::Named)
    }
}

/// The first run of a revision: its time and branch. Ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FirstRun<'h> {
    at: Timestamp,
    number: i32,
    branch: Option<&'h str>,
}

impl<'h> FirstRun<'h> {
    fn of(run: &'h RunFacts) -> Self {
        Self {
            at: run.started_at,
            number: run.number,
            branch: run.branch.as_deref(),
        }
    }
}
