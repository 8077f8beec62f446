//! Builds a history from single results, for programs without a store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use assay_domain::{
    attempt::AttemptStatus,
    execution::TestOutcome,
    observation::{History, RunFacts, RunObservations},
    test::{TestName, TestOrdinal},
    timestamp::Timestamp,
};

use crate::numbers::count;

/// A run as the caller knows it. Runs with equal `id` are one run with several variants.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObservedRun {
    /// When it started.
    pub started_at: Timestamp,
    /// Its id in the evidence.
    pub id: String,
    /// Its branch, if known. If no run has one, all are judged as on the stable branch.
    pub branch: Option<String>,
    /// The tested revision, if known; otherwise the run is a revision by itself.
    pub revision: Option<String>,
    /// The suite, job or browser; empty for the default one.
    pub variant: String,
}

/// One attempt of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedAttempt {
    /// How it ended.
    pub status: AttemptStatus,
    /// Its duration in milliseconds, if known.
    pub duration_ms: Option<u64>,
}

impl From<AttemptStatus> for ObservedAttempt {
    /// An attempt of unknown duration.
    fn from(status: AttemptStatus) -> Self {
        Self {
            status,
            duration_ms: None,
        }
    }
}

/// Collects results into a [`History`].
///
/// The order of the calls matters only for the attempts of one test in one run, which must come oldest first. Ordinals
/// follow the names of tests, and run numbers the times of runs, so that any other order gives the same history.
#[derive(Debug, Clone)]
pub struct HistoryBuilder {
    stable_branch: Arc<str>,
    runs: BTreeMap<ObservedRun, BTreeMap<TestName, Vec<ObservedAttempt>>>,
}

impl HistoryBuilder {
    /// A builder without results. `stable_branch` is the branch from which releases are made.
    pub fn new(stable_branch: &str) -> Self {
        Self {
            stable_branch: stable_branch.into(),
            runs: BTreeMap::new(),
        }
    }

    /// Appends the attempts of a test in a run, oldest first. All of them are one execution with its retries. An empty
    /// list adds nothing.
    pub fn observe<A: Into<ObservedAttempt>>(
        &mut self,
        run: &ObservedRun,
        test: &TestName,
        attempts: impl IntoIterator<Item = A>,
    ) {
        let mut attempts = attempts.into_iter().map(Into::into).peekable();
        if attempts.peek().is_none() {
            return;
        }
        // Looked up before it is inserted, so that a run and a test are cloned once and not for each result.
        if !self.runs.contains_key(run) {
            self.runs.insert(run.clone(), BTreeMap::new());
        }
        let Some(tests) = self.runs.get_mut(run) else {
            return;
        };
        match tests.get_mut(test) {
            Some(known) => known.extend(attempts),
            None => {
                tests.insert(test.clone(), attempts.collect());
            }
        }
    }

    /// The history, and the tests' names by ordinal.
    pub fn build(self) -> (History, Vec<TestName>) {
        let names: BTreeSet<&TestName> = self.runs.values().flat_map(BTreeMap::keys).collect();
        let ordinals: BTreeMap<&TestName, TestOrdinal> = names.iter().copied().zip(0..).collect();
        // The runs are ordered by time, then id, so that the first row of an id is its earliest.
        let mut numbers: BTreeMap<&str, i32> = BTreeMap::new();
        for run in self.runs.keys() {
            let next = i32::try_from(numbers.len()).unwrap_or(i32::MAX).saturating_add(1);
            numbers.entry(&run.id).or_insert(next);
        }
        let runs = self
            .runs
            .iter()
            .map(|(run, tests)| {
                let facts = RunFacts {
                    id: run.id.as_str().into(),
                    number: numbers.get(run.id.as_str()).copied().unwrap_or(0),
                    started_at: run.started_at,
                    branch: run.branch.as_deref().map(Into::into),
                    revision: run.revision.as_deref().map(Into::into),
                    variant: run.variant.as_str().into(),
                    ..RunFacts::default()
                };
                let mut observed = RunObservations::of(facts);
                for (test, attempts) in tests {
                    let attempts = attempts
                        .iter()
                        .map(|attempt| (attempt.status, attempt.duration_ms));
                    if let (Some(ordinal), Some(outcome)) = (ordinals.get(test), TestOutcome::of([attempts]))
                    {
                        observed.add(*ordinal, &outcome);
                    }
                }
                observed
            })
            .collect();
        let history = History {
            stable_branch: self.stable_branch,
            tests: count(names.len()),
            runs,
        };
        (history, names.into_iter().cloned().collect())
    }
}
