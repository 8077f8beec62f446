//! The failures of several runs as one list.

use std::collections::HashMap;

use assay_domain::{
    cause::{FailedRun, Knowledge},
    folding::{contains_folded, fold},
    id::RunId,
    owners::OwnerFilter,
    page::Page,
    project::Project,
    store::{Snapshot, Store, StoreError, in_snapshot},
    timestamp::Timestamp,
};
use assay_flakiness::Diagnose;

use super::{
    Actions, ExplainedFailure, Gate, gate,
    judged::{JudgedFailure, UnpagedFailures, listed_before},
};
use crate::numbers::count;

/// The failures of several runs, as known when they ran.
#[derive(Debug, Clone)]
pub struct JoinedFailures {
    /// The runs that exist, in the order of the request.
    pub runs: Vec<JoinedRun>,
    /// The gate of all runs.
    pub gate: Gate,
    /// The number of tests that failed or recovered in a run. A test of two runs counts twice.
    pub total: u64,
    /// The position of the page among the listed failures.
    pub page: Page,
    /// The listed failures of the page, with the index of their run: failed before recovered, then the most probable
    /// breakages of the branch first.
    pub failures: Vec<(usize, ExplainedFailure)>,
}

/// One of several runs.
#[derive(Debug, Clone)]
pub struct JoinedRun {
    /// The run.
    pub run: FailedRun,
    /// Its gate.
    pub gate: Gate,
    /// Whether a failure of it is one of the stable branch.
    pub on_stable: bool,
}

/// Selects the failures of a list.
#[derive(Debug, Clone, Default)]
pub struct FailureFilter {
    /// Only tests whose name contains this, ignoring case.
    pub name_part: Option<String>,
    /// Only tests with this owner.
    pub owner: Option<OwnerFilter>,
}

/// The failures of these runs as of one state of the project. The gate covers those that the filter leaves out, too.
pub fn joined_failures(
    store: &dyn Store,
    engine: &dyn Diagnose,
    project: &Project,
    runs: &[RunId],
    (filter, page): (&FailureFilter, (u64, u32)),
    now: Timestamp,
) -> Result<JoinedFailures, StoreError> {
    in_snapshot(store, project, |snapshot| {
        let mut explained: Vec<(FailedRun, UnpagedFailures)> = Vec::with_capacity(runs.len());
        for id in runs {
            if let Some(run) = snapshot.failed_run(*id)? {
                let failures = UnpagedFailures::read(snapshot, engine, &run, Knowledge::AtTheTime, now)?;
                explained.push((run, failures));
            }
        }
        let joined_runs: Vec<JoinedRun> = explained
            .iter()
            .map(|(run, failures)| JoinedRun {
                run: run.clone(),
                gate: gate(failures.causes()).of_incomplete(run.incomplete.is_some()),
                on_stable: failures.causes().any(|cause| cause.facts.on_stable),
            })
            .collect();
        let total = explained
            .iter()
            .map(|(_, failures)| failures.causes().count())
            .sum();
        let name_part = filter.name_part.as_deref().map(fold);
        let has_name = |name: &str| {
            name_part
                .as_deref()
                .is_none_or(|name_part| contains_folded(name, name_part))
        };
        let mut listed: Vec<(usize, &JudgedFailure)> = Vec::new();
        for (place, (_, failures)) in explained.iter().enumerate() {
            let mut has_owner = failures.has_owner(filter.owner.as_ref());
            let of_run = failures.only(|failure| has_name(&failure.name.name) && has_owner(failure));
            listed.extend(of_run.into_iter().map(|failure| (place, failure)));
        }
        listed.sort_by(|(left_run, left), (right_run, right)| {
            listed_before(&left.cause, &right.cause)
                .then_with(|| left.name.cmp(&right.name))
                .then_with(|| left_run.cmp(right_run))
        });
        let page = Page::of_size(page.0, page.1, count(listed.len()));
        let on_page: Vec<(usize, &JudgedFailure)> = page.part(listed).collect();
        let causes = || explained.iter().flat_map(|(_, failures)| failures.causes());
        let actions = Actions::of(causes());
        let is_incomplete = explained.iter().any(|(run, _)| run.incomplete.is_some());
        let mut failures = entries(snapshot, &explained, &on_page)?;
        for (_, failure) in &mut failures {
            failure.action = actions.of_failure(failure.mine);
        }
        Ok(JoinedFailures {
            gate: gate(causes()).of_incomplete(is_incomplete),
            runs: joined_runs,
            total: count(total),
            page,
            failures,
        })
    })
}

/// The entries of the failures in their order, with one read for each run.
fn entries(
    snapshot: &mut dyn Snapshot,
    explained: &[(FailedRun, UnpagedFailures)],
    on_page: &[(usize, &JudgedFailure)],
) -> Result<Vec<(usize, ExplainedFailure)>, StoreError> {
    let mut of_runs: HashMap<usize, std::vec::IntoIter<ExplainedFailure>> = HashMap::new();
    for (place, (_, failures)) in explained.iter().enumerate() {
        let selected: Vec<&JudgedFailure> = on_page
            .iter()
            .filter(|(run, _)| *run == place)
            .map(|(_, failure)| *failure)
            .collect();
        if !selected.is_empty() {
            let (_, entries) = failures.entries(snapshot, Knowledge::AtTheTime, &selected, (1, u32::MAX))?;
            of_runs.insert(place, entries.into_iter());
        }
    }
    let in_order = on_page
        .iter()
        .filter_map(|(place, _)| Some((*place, of_runs.get_mut(place)?.next()?)));
    Ok(in_order.collect())
}
