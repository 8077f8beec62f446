//! The causes of a run's failures: cause, sentence and action for each failure, and the gate of the run.

mod answer;
mod breakage;
mod evidence;
mod gate;
mod joined;
mod judged;
mod local;
mod report;
mod revert;
mod sentence;
mod unexplained;

use std::collections::HashSet;

use assay_domain::{
    cause::Knowledge,
    id::RunId,
    owners::OwnerFilter,
    project::Project,
    store::{Store, StoreError, in_snapshot},
    test_attempts::TestAttempts,
    timestamp::Timestamp,
};
use assay_flakiness::Diagnose;

pub use answer::{
    CauseEvidence, CauseProbabilities, EvidenceRun, ExplainedFailure, RunFailures, SameErrors, StableState,
};
pub use breakage::{Beginnings, Breakage};
pub use gate::{Actions, BLOCKS_FROM, ByCause, CLEAR, Gate, action, cause, gate, whose};
pub use joined::{FailureFilter, JoinedFailures, JoinedRun, joined_failures};
pub use local::{LocalFailure, LocalFailures, LocalRun, local_failures};
pub use report::{ReportFailures, report_failures};
pub use revert::RevertAdvice;
pub use sentence::explanation;
pub use unexplained::{PROVEN_FROM, own_unexplained, runs_elsewhere};

pub(crate) use judged::window_with;

use judged::{
    JudgedFailure, JudgedFailures, SignatureNumbers, UnpagedFailures, count_tests, listed_before, texts,
};

/// The failures of a run as of one state of the project, the most probable breakages of the branch first. `None` if the
/// project has no such run.
pub fn run_failures(
    store: &dyn Store,
    engine: &dyn Diagnose,
    project: &Project,
    query: &FailuresQuery,
    now: Timestamp,
) -> Result<Option<RunFailures>, StoreError> {
    let decisions = store.decisions(project, query.run)?;
    in_snapshot(store, project, |snapshot| {
        let Some(run) = snapshot.failed_run(query.run)? else {
            return Ok(None);
        };
        let explained = UnpagedFailures::read(snapshot, engine, &run, query.knowledge, now)?;
        let gate = gate(explained.causes()).of_incomplete(run.incomplete.is_some());
        let on_stable = explained.causes().any(|failure| failure.facts.on_stable);
        let mut has_owner = explained.has_owner(query.owner.as_ref());
        let mut is_listed = query.listed.filter();
        let selected = explained.only(|failure| has_owner(failure) && is_listed(failure));
        let requested = (query.page, query.per_page);
        let (page, failures) = explained.entries(snapshot, query.knowledge, &selected, requested)?;
        Ok(Some(RunFailures {
            project: project.tag(),
            incomplete: run.incomplete.clone(),
            not_run: explained.judged.not_run.clone(),
            run,
            mode: query.knowledge,
            gate,
            on_stable,
            decisions: decisions.clone(),
            page,
            failures,
        }))
    })
}

/// The cause of a test's failed attempts, judged with the runs that started no later; `None` if no attempt failed.
pub fn failure_of(
    store: &dyn Store,
    engine: &dyn Diagnose,
    project: &Project,
    attempts: &TestAttempts,
    now: Timestamp,
) -> Result<Option<ExplainedFailure>, StoreError> {
    if !attempts
        .attempts
        .iter()
        .any(|attempt| attempt.status.is_failure())
    {
        return Ok(None);
    }
    in_snapshot(store, project, |snapshot| {
        let Some(run) = snapshot.failed_run(attempts.run.id)? else {
            return Ok(None);
        };
        let explained = UnpagedFailures::read(snapshot, engine, &run, Knowledge::AtTheTime, now)?;
        let of_test = explained.only(|failure| failure.name == attempts.test);
        let (_, failures) = explained.entries(snapshot, Knowledge::AtTheTime, &of_test, (1, 1))?;
        Ok(failures.into_iter().next())
    })
}

/// Selects a run, its failures and a page of them.
#[derive(Debug, Clone)]
pub struct FailuresQuery {
    /// The run, or any of its shards.
    pub run: RunId,
    /// Whether later runs count.
    pub knowledge: Knowledge,
    /// The requested page, from 1.
    pub page: u64,
    /// Failures per page.
    pub per_page: u32,
    /// The failures in the list. The gate always covers all failures.
    pub listed: ListedFailures,
    /// Only tests with this owner are in the list.
    pub owner: Option<OwnerFilter>,
}

/// Selects the failures of a run for a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListedFailures {
    /// Every failed or recovered result, one for each variant.
    #[default]
    All,
    /// The failed tests, each with its result on the variant where this branch most probably caused the failure.
    FailedTests,
    /// The recovered tests, each with one result chosen in the same way.
    RecoveredTests,
}

impl ListedFailures {
    /// A filter that is called once for each failure, in their order, and returns whether the failure is listed.
    fn filter(self) -> impl FnMut(&&JudgedFailure) -> bool {
        let mut tests = HashSet::new();
        move |failure| {
            let status = failure.final_status.status;
            let is_listed = match self {
                Self::All => return true,
                Self::FailedTests => status.is_failure(),
                Self::RecoveredTests => !status.is_failure() && !status.is_skip(),
            };
            is_listed && tests.insert(failure.cause.test)
        }
    }
}
