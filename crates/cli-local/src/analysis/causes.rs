//! The causes of a collected history's failures, and the gates of its runs.

use std::{collections::BTreeMap, sync::Arc};

use assay_answers::{
    changes::NotRun,
    failures::{self, Actions, ByCause, CauseProbabilities, StableState},
};
use assay_domain::{
    cause::{Action, Cause, Knowledge},
    observation::History,
    timestamp::Timestamp,
    verdict::ENGINE_WINDOW_DAYS,
};
use assay_flakiness::{Diagnose as _, Engine, ErrorTexts, FailureCause};
use serde::Serialize;

use crate::analysis::collector::{Collector, RunResults};

/// The cause of every failure of a window, and the gate of every run with failures.
#[derive(Debug, Clone, Serialize)]
pub struct Causes {
    /// One entry per failed or recovered result: by run, then by test, then by variant.
    pub causes: Vec<CausedFailure>,
    /// One entry per run with such a result, oldest first.
    pub gates: Vec<RunGate>,
    /// What did not run in the selected run.
    #[serde(skip)]
    pub not_run: NotRun,
}

/// A failed or recovered result with its cause.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CausedFailure {
    /// The run's name.
    pub run: Arc<str>,
    /// The run's number, from 1 in the order of the starts. Sentences use it.
    pub run_number: i32,
    /// The full name of the test.
    pub test_name: String,
    /// Its file.
    pub file_path: Option<String>,
    /// The variant of the run; empty if there is only one.
    pub variant: Arc<str>,
    /// Whether a retry passed.
    pub recovered: bool,
    /// The most probable cause, or `unclear`.
    pub cause: Cause,
    /// The probability of each cause.
    pub probabilities: CauseProbabilities,
    /// P(this branch broke it).
    pub mine: f64,
    /// The action for this failure alone.
    pub action: Action,
    /// One sentence with the counts behind the cause.
    pub explanation: String,
    /// The state of the test on the stable branch at that time.
    pub stable: StableState,
    /// The number of earlier runs on other branches in which the test ran.
    pub runs_elsewhere: u32,
    /// Whether many tests failed together in its run.
    #[serde(skip)]
    pub in_mass_failure: bool,
    /// Other tests of the run that failed with the same error.
    #[serde(skip)]
    pub same_error_in_run: u32,
    /// The time of the test's first known failure.
    #[serde(skip)]
    pub first_failed_at: Option<Timestamp>,
    /// The fingerprint of its error, if it has one.
    #[serde(skip)]
    pub fingerprint: Option<String>,
}

/// The action for a run with failures.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunGate {
    /// The run's name.
    pub run: Arc<str>,
    /// Its number.
    pub run_number: i32,
    /// Its branch, if known.
    pub branch: Option<Arc<str>>,
    /// P(this branch broke at least one of the failed tests).
    pub mine: f64,
    /// The action.
    pub action: Action,
    /// The failed tests by cause.
    pub by_cause: ByCause,
}

/// Selects failures.
#[derive(Debug, Clone, Copy)]
pub enum FailureSelection<'a> {
    /// The failures of every run of the window.
    All,
    /// The failures of the run with this name: its whole name, or the end of it after a slash.
    Run(&'a str),
}

/// There is no such run, or several runs match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchRun {
    /// No run of the history has the name.
    #[error(
        "no run is called {0:?}; --causes at-the-time --json lists the runs with failures under \"gates\""
    )]
    Unknown(String),
    /// Several runs end with the name.
    #[error("{count} runs are called {name:?}, for instance {first:?} and {second:?}; give the whole name")]
    Ambiguous {
        /// The requested name.
        name: String,
        /// The number of runs.
        count: usize,
        /// One of them.
        first: String,
        /// Another one.
        second: String,
    },
}

impl Collector {
    /// The causes of the failures of the window that ends at `now`.
    ///
    /// # Errors
    /// [`NoSuchRun`] if one run was requested and it is missing.
    pub fn causes(
        &self,
        selection: FailureSelection<'_>,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> Result<Causes, NoSuchRun> {
        // A run is judged with the window before it, so two windows are read.
        let runs = self.window(now.plus_days(-2 * ENGINE_WINDOW_DAYS), now);
        let history = self.history(&runs);
        let texts = texts(&history, &runs);
        let engine = Engine::default();
        let (mut causes, not_run) = match selection {
            FailureSelection::All => (engine.causes(&history, &texts, knowledge, now), NotRun::default()),
            FailureSelection::Run(name) => {
                let number = run_number(&history, name)?;
                (
                    engine.causes_of_run(&history, &texts, number, knowledge, now),
                    NotRun::of(&history, number, false, |test| Some(self.tests.name(test))),
                )
            }
        };
        failures::own_unexplained(&history, &mut causes);
        Ok(Causes {
            not_run,
            ..self.describe(&history, &causes, knowledge)
        })
    }

    fn describe(&self, history: &History, causes: &[FailureCause], knowledge: Knowledge) -> Causes {
        let mut by_run: BTreeMap<(Timestamp, i32), Vec<&FailureCause>> = BTreeMap::new();
        let mut entries = Vec::with_capacity(causes.len());
        let first_failures = history.first_failures();
        for failure in causes {
            if let Some(observed) = history.runs.get(failure.run_index) {
                let run = (observed.run.started_at, observed.run.number);
                by_run.entry(run).or_default().push(failure);
            }
        }
        let actions: BTreeMap<i32, Actions> = by_run
            .iter()
            .map(|((_, number), causes)| (*number, Actions::of(causes.iter().copied())))
            .collect();
        for failure in causes {
            let Some(observed) = history.runs.get(failure.run_index) else {
                continue;
            };
            let facts = &observed.run;
            let Some(actions) = actions.get(&facts.number) else {
                continue;
            };
            let name = self.tests.name(failure.test);
            let mine = failure.probabilities.mine().clamp(0.0, 1.0);
            entries.push(CausedFailure {
                run: Arc::clone(&facts.id),
                run_number: facts.number,
                test_name: name.name,
                file_path: name.file_path,
                variant: Arc::clone(&facts.variant),
                recovered: failure.recovered,
                cause: failures::cause(failure),
                probabilities: failure.probabilities.into(),
                mine,
                action: actions.of_failure(mine),
                explanation: failures::explanation(history, failure, knowledge),
                stable: StableState::of(failure),
                runs_elsewhere: failures::runs_elsewhere(history, failure),
                in_mass_failure: failure.in_mass_failure,
                same_error_in_run: failure.facts.same_error.in_this_run,
                first_failed_at: first_failures.get(&failure.test).copied(),
                fingerprint: failure
                    .text
                    .and_then(|text| Some(self.signatures.get(text)?.fingerprint.clone())),
            });
        }
        let gates = by_run.into_iter().filter_map(|((_, number), causes)| {
            let run = &history.runs.get(causes.first()?.run_index)?.run;
            let gate = failures::gate(causes);
            Some(RunGate {
                run: Arc::clone(&run.id),
                run_number: number,
                branch: run.branch.clone(),
                mine: gate.mine,
                action: gate.action,
                by_cause: gate.by_cause,
            })
        });
        Causes {
            gates: gates.collect(),
            causes: entries,
            not_run: NotRun::default(),
        }
    }
}

/// The number of the run with a name.
fn run_number(history: &History, name: &str) -> Result<i32, NoSuchRun> {
    let exact = history.runs.iter().find(|observed| &*observed.run.id == name);
    if let Some(observed) = exact {
        return Ok(observed.run.number);
    }
    let ending = format!("/{name}");
    let matching: BTreeMap<i32, &str> = history
        .runs
        .iter()
        .filter(|observed| observed.run.id.ends_with(&ending))
        .map(|observed| (observed.run.number, &*observed.run.id))
        .collect();
    let mut matches = matching.iter();
    match (matches.next(), matches.next()) {
        (Some((number, _)), None) => Ok(*number),
        (Some((_, first)), Some((_, second))) => Err(NoSuchRun::Ambiguous {
            name: name.to_owned(),
            count: matching.len(),
            first: (*first).to_owned(),
            second: (*second).to_owned(),
        }),
        (None, _) => Err(NoSuchRun::Unknown(name.to_owned())),
    }
}

/// The text of the last failed attempt of each failure.
fn texts(history: &History, runs: &[RunResults<'_>]) -> ErrorTexts {
    let mut texts = ErrorTexts::new();
    for (index, (observed, results)) in history.runs.iter().zip(runs).enumerate() {
        for failure in &observed.failures {
            let signatures = results
                .attempts(failure.test)
                .filter_map(|attempt| attempt.signature);
            if let Some(text) = signatures.last() {
                texts.insert(index, failure.test, text);
            }
        }
    }
    texts
}

/// The name of a cause for people.
pub const fn cause_words(cause: Cause) -> &'static str {
    match cause {
        Cause::Flake => "flake",
        Cause::Environment => "environment",
        Cause::BrokenBefore => "broken before",
        Cause::EarlierOnBranch => "earlier on the branch",
        Cause::ThisChange => "this change",
        Cause::Unclear => "unclear",
    }
}
