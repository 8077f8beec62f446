//! The runs of the stable branch with which a run is compared.

use assay_domain::{
    observation::{History, RunObservations},
    revision::{StableBranch, is_same_revision},
};

/// The number of complete runs of the stable branch that show what is usual.
pub(super) const LAST_RUNS: usize = 10;

/// The indexes of the last complete runs of the stable branch before the run of this number and its merge base, the newest
/// first.
pub(super) fn last_complete(history: &History, number: i32) -> Vec<usize> {
    let stable = history.stable();
    let run = history.runs.iter().find(|observed| observed.run.number == number);
    let before = run.map(|run| stable_before(history, run, stable));
    let complete = before
        .into_iter()
        .flatten()
        .filter(|(_, observed)| observed.ending.complete);
    complete.take(LAST_RUNS).map(|(index, _)| index).collect()
}

/// The runs of the stable branch on the run's variant that started before it, the newest revision first, with their indexes.
/// If any run of the stable branch tested the merge base, they are those of the merge base and of revisions before.
pub(super) fn stable_before<'a>(
    history: &'a History,
    run: &RunObservations,
    stable: StableBranch<'_>,
) -> Vec<(usize, &'a RunObservations)> {
    let order = history.revision_order();
    let started = |observed: &RunObservations| (observed.run.started_at, observed.run.number);
    let is_stable = |observed: &RunObservations| stable.is(observed.run.branch.as_deref());
    let merge_base = run.run.merge_base.as_deref().filter(|_| !is_stable(run));
    let is_of_base = |observed: &RunObservations| {
        let revision = observed.run.revision.as_deref();
        merge_base
            .zip(revision)
            .is_some_and(|(base, revision)| is_same_revision(base, revision))
    };
    let runs = history.runs.iter().zip(&order);
    let of_base = runs.filter(|(observed, _)| is_stable(observed) && is_of_base(observed));
    let base = of_base.map(|(_, order)| *order).min();
    let mut before: Vec<(usize, &RunObservations)> = history
        .runs
        .iter()
        .enumerate()
        .filter(|(index, other)| {
            is_stable(other)
                && other.run.variant == run.run.variant
                && started(other) < started(run)
                && base
                    .is_none_or(|base| is_of_base(other) || order.get(*index).is_some_and(|own| *own < base))
        })
        .collect();
    before.sort_by_key(|(index, _)| std::cmp::Reverse(order.get(*index)));
    before
}
