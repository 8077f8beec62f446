//! Executions on their way to a position: which code each ran, and the one order among them.

use std::{cmp::Ordering, collections::HashMap};

use assay_domain::{
    observation::{RunFacts, RunObservations},
    timestamp::Timestamp,
};

/// An execution before it has its position.
pub(crate) struct Execution<'h> {
    /// What was observed.
    pub(crate) observed: &'h RunObservations,
    /// Its place in the history.
    pub(crate) source: usize,
    /// The rank of its revision.
    pub(crate) revision: usize,
}

impl Execution<'_> {
    /// Total up to executions that are alike in everything the engine reads: ties are settled by content, so that
    /// even equal times leave nothing to the order of the input.
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
/// Gives each revision its rank by the time when it was first seen, and returns the branch to which it belongs, by rank:
/// the stable one where it ever ran there, else the one on which it was first seen.
pub(crate) fn rank_revisions<'h>(
    executed: &mut [Execution<'h>],
    is_stable: impl Fn(Option<&str>) -> bool,
    stable_branch: &'h str,
) -> Vec<Option<&'h str>> {
    let mut places = HashMap::with_capacity(executed.len());
    let mut revisions: Vec<Revision<'h>> = Vec::new();
    for run in executed.iter_mut() {
        let key = RevisionKey::of(&run.observed.run);
        let seen = FirstSeen::of(&run.observed.run);
        let next = revisions.len();
        let place = *places.entry(key).or_insert(next);
        if place == next {
            revisions.push(Revision {
                key,
                place,
                first: seen,
            });
        }
        // Its place for now.
        run.revision = place;
        let Some(revision) = revisions.get_mut(place) else {
            continue;
        };
        let on_stable = is_stable(revision.first.branch) || is_stable(seen.branch);
        revision.first = revision.first.min(seen);
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
    for run in executed {
        run.revision = ranks.get(run.revision).copied().unwrap_or(0);
    }
    revisions
        .into_iter()
        .map(|revision| revision.first.branch)
        .collect()
}

/// A revision on its way to a rank.
struct Revision<'h> {
    key: RevisionKey<'h>,
    /// Its place in the order in which the revisions came.
    place: usize,
    first: FirstSeen<'h>,
}

/// Runs by time.
pub(crate) fn time_order(a: &RunFacts, b: &RunFacts) -> Ordering {
    (a.started_at, a.number, &a.id).cmp(&(b.started_at, b.number, &b.id))
}

/// What makes two runs the same code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum RevisionKey<'h> {
    Named(&'h str),
    /// A run that does not tell its revision shares it with no other run.
    Own(i32, &'h str),
}

impl<'h> RevisionKey<'h> {
    fn of(run: &'h RunFacts) -> Self {
        run.revision
            .as_deref()
            .map_or(Self::Own(run.number, &run.id), Self::Named)
    }
}

/// Where and when a revision was first seen; the order is by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FirstSeen<'h> {
    at: Timestamp,
    number: i32,
    branch: Option<&'h str>,
}

impl<'h> FirstSeen<'h> {
    fn of(run: &'h RunFacts) -> Self {
        Self {
            at: run.started_at,
            number: run.number,
            branch: run.branch.as_deref(),
        }
    }
}
