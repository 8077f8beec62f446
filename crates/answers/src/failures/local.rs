//! Explains the failures of a run that is not stored, such as one on a developer's machine, from the stored runs.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use assay_domain::{
    attempt::AttemptStatus,
    cause::{FinalStatus, Knowledge, WindowErrors},
    observation::{Failure, History, RunFacts, RunObservations},
    project::Project,
    revision::StableBranch,
    signature::ErrorClass,
    store::{Snapshot, Store, StoreError, in_snapshot},
    test::{CandidateFiles, TestLookup, TestOrdinal, TestSelector},
    timestamp::Timestamp,
};
use assay_flakiness::Diagnose;

use super::{
    ExplainedFailure, Gate, JudgedFailures, SignatureNumbers, UnpagedFailures, count_tests, gate,
    own_unexplained, texts,
};
use crate::owners;

/// The number of the unstored run. All stored runs have smaller numbers.
const NUMBER: i32 = i32::MAX;
/// The id of the unstored run.
const LOCAL: &str = "local";
/// A branch or a revision that no stored run has, because stored names have no control characters.
const NEW: &str = "\u{1}";

/// A run that is not stored.
#[derive(Debug, Clone)]
pub struct LocalRun {
    /// The branch whose history counts as this run's own. Without one, the run counts as the first of a new branch.
    /// Ignored if the window has runs and none of them has a branch: then this run counts as the next one after them.
    pub branch: Option<String>,
    /// The tests that failed.
    pub failures: Vec<LocalFailure>,
}

/// A test that failed in a run that is not stored.
#[derive(Debug, Clone)]
pub struct LocalFailure {
    /// The test.
    pub test: TestSelector,
    /// The class of its error, if its message is known.
    pub error: Option<ErrorClass>,
    /// The number of failed attempts, at least 1.
    pub attempts: u32,
}

/// The causes of a local run's failures, and the tests that could not be judged.
#[derive(Debug, Clone)]
pub struct LocalFailures {
    /// The action for the failures of known tests.
    pub gate: Gate,
    /// The failures of known tests. The failures that this change most probably caused come first.
    pub failures: Vec<ExplainedFailure>,
    /// The tests without a stored result.
    pub unknown: Vec<TestSelector>,
    /// The names that several files share.
    pub ambiguous: Vec<(TestSelector, CandidateFiles)>,
}

/// The causes of failures that are not stored, as of one state of the project.
pub fn local_failures(
    store: &dyn Store,
    engine: &dyn Diagnose,
    project: &Project,
    local: &LocalRun,
    now: Timestamp,
) -> Result<LocalFailures, StoreError> {
    in_snapshot(store, project, |snapshot| {
        let mut known_failures: BTreeMap<TestOrdinal, &LocalFailure> = BTreeMap::new();
        let (mut unknown, mut ambiguous) = (Vec::new(), Vec::new());
        let tests: Vec<TestSelector> = local
            .failures
            .iter()
            .map(|failure| failure.test.clone())
            .collect();
        for (failure, lookup) in local.failures.iter().zip(snapshot.test_ordinals(&tests)?) {
            match lookup {
                TestLookup::Found(ordinal) => {
                    known_failures.entry(ordinal).or_insert(failure);
                }
                TestLookup::Missing => unknown.push(failure.test.clone()),
                TestLookup::Ambiguous(files) => ambiguous.push((failure.test.clone(), files)),
            }
        }
        let explained = explained(snapshot, engine, local.branch.as_deref(), &known_failures, now)?;
        let gate = gate(explained.causes());
        let count = u32::try_from(known_failures.len().max(1)).unwrap_or(u32::MAX);
        let all_failures = explained.only(|_| true);
        let (_, failures) = explained.entries(snapshot, Knowledge::AtTheTime, &all_failures, (1, count))?;
        Ok(LocalFailures {
            gate,
            failures,
            unknown,
            ambiguous,
        })
    })
}

fn explained(
    snapshot: &mut dyn Snapshot,
    engine: &dyn Diagnose,
    branch: Option<&str>,
    failures: &BTreeMap<TestOrdinal, &LocalFailure>,
    now: Timestamp,
) -> Result<UnpagedFailures, StoreError> {
    let (from, to) = engine.causes_window(now, Knowledge::AtTheTime, now);
    let stored = snapshot.observations(from, to)?;
    let release_branch = branch.filter(|branch| stored.release_branches().contains(*branch));
    let stored = stored.of_stable_branch(release_branch);
    let tests: Vec<TestOrdinal> = failures.keys().copied().collect();
    let mut errors = snapshot.window_errors(NUMBER, &tests, from, to)?;
    let fingerprints: Vec<String> = failures
        .values()
        .filter_map(|failure| Some(failure.error.as_ref()?.fingerprint.clone()))
        .collect();
    let numbers = snapshot.signature_numbers(&fingerprints)?;
    add_texts(&mut errors, failures, numbers);
    let mut history = History::clone(&stored);
    history.runs.extend(variant_runs(&stored, branch, failures, now));
    let texts = texts(&history, &errors);
    let mut causes = engine.causes_of_run(&history, &texts, NUMBER, Knowledge::AtTheTime, now);
    own_unexplained(&history, &mut causes);
    let tests: Vec<TestOrdinal> = causes.iter().map(|cause| cause.test).collect();
    let names = snapshot.test_names(&tests)?;
    let statuses = tests.iter().map(|test| FinalStatus {
        status: AttemptStatus::Failed,
        attempts: failures.get(test).map_or(1, |failure| failure.attempts),
    });
    let finals = statuses.zip(names).collect();
    Ok(UnpagedFailures {
        owners: owners::in_window(snapshot, (from, to))?,
        judged: Arc::new(JudgedFailures::new(&history, causes, finals, errors)),
        history: Arc::new(history),
    })
}

/// Adds the errors of the run to those of the window. An error that was never stored gets an unused number.
fn add_texts(
    errors: &mut WindowErrors,
    failures: &BTreeMap<TestOrdinal, &LocalFailure>,
    stored: HashMap<String, u32>,
) {
    let mut numbers = SignatureNumbers::new(stored);
    let mut of_run = Vec::new();
    for (test, failure) in failures {
        let Some(error) = &failure.error else {
            continue;
        };
        let number = numbers.number(&error.fingerprint);
        of_run.push((*test, number));
        errors.names.push((number, error.into()));
    }
    count_tests(errors, of_run.iter().copied());
    let of_run = of_run.into_iter().map(|(test, number)| (NUMBER, test, number));
    errors.failures.extend(of_run);
}

/// The variant runs of the unstored run: one for each variant on which its failed tests ran last, preferably on the
/// stable branch. All tests of that stored run count as present. Otherwise three failures of three tests would look
/// like a mass failure.
fn variant_runs(
    history: &History,
    branch: Option<&str>,
    failures: &BTreeMap<TestOrdinal, &LocalFailure>,
    now: Timestamp,
) -> Vec<RunObservations> {
    let stable_branch = history.stable();
    let (branch, revision) = if stable_branch.any_branch_named || history.runs.is_empty() {
        (Some(branch.unwrap_or(NEW)), None)
    } else {
        // All runs of the window count as on the stable branch, and so does this one.
        (None, Some(NEW))
    };
    let mut variant_runs: Vec<RunObservations> = Vec::new();
    for (test, failure) in failures {
        let last = last_variant_run(history, stable_branch, *test);
        let variant = last.map_or_else(|| "".into(), |last| Arc::clone(&last.run.variant));
        let index = variant_runs
            .iter()
            .position(|variant_run| variant_run.run.variant == variant);
        let index = index.unwrap_or(variant_runs.len());
        if index == variant_runs.len() {
            let mut variant_run = RunObservations::of(RunFacts {
                id: LOCAL.into(),
                number: NUMBER,
                started_at: now,
                branch: branch.map(Into::into),
                revision: revision.map(Into::into),
                variant,
                ..RunFacts::default()
            });
            if let Some(last) = last {
                variant_run.present.clone_from(&last.present);
            }
            variant_runs.push(variant_run);
        }
        if let Some(variant_run) = variant_runs.get_mut(index) {
            variant_run.present.insert(*test);
            variant_run.failures.push(Failure {
                test: *test,
                recovered: false,
                failed_attempts: failure.attempts.max(1),
                lost_ms: None,
            });
        }
    }
    variant_runs
}

/// The newest variant run with a test: on the stable branch, else on any branch.
fn last_variant_run<'h>(
    history: &'h History,
    stable_branch: StableBranch<'_>,
    test: TestOrdinal,
) -> Option<&'h RunObservations> {
    let ran = history
        .runs
        .iter()
        .filter(|observed| observed.present.contains(test));
    ran.max_by_key(|observed| {
        let is_stable = stable_branch.is(observed.run.branch.as_deref());
        (is_stable, observed.run.started_at, observed.run.number)
    })
}
