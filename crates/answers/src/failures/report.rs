//! Explains the failures of a report that is not stored yet.
//!
//! The report is added to the runs of the window in memory. If its run is already stored, the report is another part of
//! it, as in an import: what earlier parts hold of its tests is evidence.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use assay_domain::{
    cause::{ErrorName, FinalStatus, Knowledge},
    execution::TestOutcome,
    merge_queue::tested_pull_requests,
    observation::{Bitmap, History, RunFacts, RunObservations},
    project::Project,
    recording::{RecordedTest, Recording},
    rules::RecordingRules,
    store::{RecognisedReport, Snapshot, Store, StoreError, in_snapshot},
    test::TestOrdinal,
    test_names::{TestNameRef, TestNames},
    timestamp::Timestamp,
};
use assay_flakiness::{Diagnose, ErrorTexts, FailureCause};
use serde::Serialize;

use super::{
    Actions, Beginnings, ExplainedFailure, Gate, JudgedFailure, SignatureNumbers, count_tests, gate,
    listed_before, own_unexplained, texts,
};
use crate::{
    changes::{ChangedTests, NotRun},
    owners,
};

/// Most failures in an answer.
const MOST_FAILURES: usize = 200;

/// The failures of a report.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReportFailures {
    /// The mode of the judgement: runs that started later do not count.
    pub mode: Knowledge,
    /// The action for the report.
    pub gate: Gate,
    /// Why the report may lack results; null if it is complete.
    pub incomplete: Option<String>,
    /// What usually runs and did not run here; empty without a failed test.
    pub not_run: NotRun,
    /// The number of tests that failed or recovered.
    pub total: usize,
    /// The first 200 of them: failed before recovered, then the most probable breakages of this branch first.
    pub failures: Vec<ExplainedFailure>,
    /// The tests of the report that ran, and that no run of the stable branch has reported in the last 14 days. Empty
    /// without such a run.
    pub new_tests: ChangedTests,
}

/// Explains the failures of a report from the stored runs.
pub fn report_failures(
    store: &dyn Store,
    engine: &dyn Diagnose,
    project: &Project,
    (recording, rules): (&Recording, RecordingRules),
    now: Timestamp,
) -> Result<ReportFailures, StoreError> {
    in_snapshot(store, project, |snapshot| {
        let recognised = snapshot.recognise(recording, rules, now)?;
        let overlay = Overlay::new(snapshot, engine, recording, recognised, now)?;
        overlay.explained(snapshot, engine, now)
    })
}

/// The runs of the window, including the report.
struct Overlay<'r> {
    recording: &'r Recording,
    recognised: RecognisedReport,
    /// The ordinals of the report's tests. New tests get ordinals after all stored ones.
    ordinals: Vec<TestOrdinal>,
    history: History,
    number: i32,
    /// The index of the report among the runs.
    index: usize,
    window: (Timestamp, Timestamp),
}

impl<'r> Overlay<'r> {
    fn new(
        snapshot: &mut dyn Snapshot,
        engine: &dyn Diagnose,
        recording: &'r Recording,
        recognised: RecognisedReport,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let started_at = recognised
            .run
            .map_or(recording.started_at, |(_, started_at)| started_at);
        let window = engine.causes_window(started_at, Knowledge::AtTheTime, now);
        let history = snapshot.observations(window.0, window.1)?;
        let release_branch = recognised.release_branch.as_deref();
        let mut history = Arc::unwrap_or_clone(history.of_stable_branch(release_branch));
        let mut next = history.tests;
        let ordinals: Vec<TestOrdinal> = recognised
            .tests
            .iter()
            .map(|test| {
                test.unwrap_or_else(|| {
                    next = next.saturating_add(1);
                    next - 1
                })
            })
            .collect();
        history.tests = next.max(ordinals.iter().max().map_or(0, |last| last.saturating_add(1)));
        let number = recognised.run.map_or(recognised.next_run, |(number, _)| number);
        let context = &recognised.context;
        let facts = RunFacts {
            id: recording.run_key.as_str().into(),
            number,
            started_at,
            release_branch: recognised.release_branch.clone(),
            branch: context.branch.as_deref().map(Into::into),
            revision: context.revision().map(Into::into),
            merge: context.merge().map(Into::into),
            variant: context.suite.as_deref().unwrap_or_default().into(),
            merge_base: context.merge_base.as_deref().map(Into::into),
            pull_requests: tested_pull_requests(
                context.branch.as_deref(),
                context.pull_request_title.as_deref(),
                context.pull_request_number,
            ),
        };
        let stored = history
            .runs
            .iter()
            .position(|observed| observed.run.number == number);
        let index = stored.unwrap_or(history.runs.len());
        let mut observed = match stored {
            Some(index) => {
                let mut observed = history.runs.remove(index);
                let id = observed.run.id;
                observed.run = RunFacts { id, ..facts };
                observed
            }
            None => RunObservations::of(facts),
        };
        remove_tests(&mut observed, &ordinals);
        for (ordinal, outcome) in ordinals.iter().zip(&recognised.outcomes) {
            observed.add(*ordinal, &outcome.in_run);
        }
        history.runs.insert(index, observed);
        Ok(Self {
            recording,
            recognised,
            ordinals,
            history,
            number,
            index,
            window,
        })
    }

    fn explained(
        self,
        snapshot: &mut dyn Snapshot,
        engine: &dyn Diagnose,
        now: Timestamp,
    ) -> Result<ReportFailures, StoreError> {
        let of_report = self.recording.tests.iter().zip(&self.recognised.outcomes);
        let tests: HashMap<TestOrdinal, (&RecordedTest, TestOutcome)> = self
            .ordinals
            .iter()
            .copied()
            .zip(of_report.map(|(test, outcome)| (test, outcome.own)))
            .collect();
        let (texts, names) = self.texts(snapshot)?;
        let mut causes: Vec<FailureCause> =
            engine.causes_of_run(&self.history, &texts, self.number, Knowledge::AtTheTime, now);
        own_unexplained(&self.history, &mut causes);
        // What failed only in other parts of the run is not a failure of this report.
        let failed_here =
            |test: &TestOrdinal| tests.get(test).is_some_and(|(_, own)| own.failed_attempts > 0);
        causes.retain(|cause| failed_here(&cause.test) && cause.run_index == self.index);
        let (gate, actions) = (gate(&causes), Actions::of(&causes));
        causes.sort_by(|left, right| {
            let name = |cause: &FailureCause| tests.get(&cause.test).map(|(test, _)| &test.test);
            listed_before(left, right).then_with(|| name(left).cmp(&name(right)))
        });
        let total = causes.len();
        causes.truncate(MOST_FAILURES);
        let stored: HashSet<TestOrdinal> = self.recognised.tests.iter().flatten().copied().collect();
        let known_tests: Vec<TestOrdinal> = causes
            .iter()
            .map(|cause| cause.test)
            .filter(|test| stored.contains(test))
            .collect();
        let facts = snapshot.stored_facts(&known_tests)?;
        let owners = owners::in_window(snapshot, self.window)?;
        let mut owners = owners.lookup();
        let beginnings = Beginnings::of(&self.history, causes.iter());
        let failures = causes.into_iter().filter_map(|cause| {
            let (test, outcome) = tests.get(&cause.test)?;
            let final_status = FinalStatus {
                status: outcome.status,
                attempts: outcome.attempts,
            };
            let error = cause.text.and_then(|text| names.get(&text));
            let facts = facts.get(&cause.test).copied().unwrap_or_default();
            let judged = JudgedFailure::new(&self.history, cause, final_status, test.test.clone());
            Some(ExplainedFailure::of(
                &self.history,
                &judged,
                Knowledge::AtTheTime,
                facts,
                (error, &mut owners, &actions, &beginnings),
            ))
        });
        let failures = failures.collect();
        let incomplete = self.recording.why_incomplete(self.recognised.left_over);
        Ok(ReportFailures {
            mode: Knowledge::AtTheTime,
            gate: gate.of_incomplete(incomplete.is_some()),
            incomplete,
            not_run: match total {
                0 => NotRun::default(),
                _ => self.not_run(&*snapshot.all_test_names()?),
            },
            total,
            failures,
            new_tests: self.new_tests(),
        })
    }

    /// What usually runs and did not run. Another shard, or another report of the job, may have the other files and classes.
    fn not_run(&self, names: &TestNames) -> NotRun {
        let of_report = self.ordinals.iter().copied().zip(&self.recording.tests);
        let of_report: HashMap<TestOrdinal, &RecordedTest> = of_report.collect();
        let is_part = self.recording.shard.is_some() || self.recognised.has_several_parts;
        NotRun::of(&self.history, self.number, is_part, |test| {
            match of_report.get(&test) {
                Some(recorded) => Some(recorded.test.clone()),
                None => names.get(test).map(TestNameRef::owned),
            }
        })
    }

    /// The tests that ran, and that no other run of the stable branch has reported.
    fn new_tests(&self) -> ChangedTests {
        let stable = self.history.stable();
        let of_stable: Vec<&RunObservations> = self
            .history
            .runs
            .iter()
            .filter(|observed| observed.run.number != self.number)
            .filter(|observed| stable.is(observed.run.branch.as_deref()))
            .collect();
        if of_stable.is_empty() {
            return ChangedTests::default();
        }
        let mut known = Bitmap::default();
        for observed in of_stable {
            known.insert_all(&observed.present);
        }
        let of_report = self
            .ordinals
            .iter()
            .zip(&self.recording.tests)
            .zip(&self.recognised.outcomes);
        let new = of_report
            .filter(|((ordinal, _), outcome)| !outcome.own.status.is_skip() && !known.contains(**ordinal));
        ChangedTests::of(new.map(|((_, test), _)| test.test.borrowed()).collect())
    }

    /// The error texts of the window and the report, and the fingerprint and title of each of the report's texts.
    fn texts(
        &self,
        snapshot: &mut dyn Snapshot,
    ) -> Result<(ErrorTexts, HashMap<u32, ErrorName>), StoreError> {
        let mut text_of_test: BTreeMap<TestOrdinal, u32> = BTreeMap::new();
        let mut names: HashMap<u32, ErrorName> = HashMap::new();
        let mut numbers = SignatureNumbers::new(self.recognised.signatures.clone());
        for (ordinal, test) in self.ordinals.iter().zip(&self.recording.tests) {
            let Some(class) = test
                .attempts
                .iter()
                .filter_map(|attempt| attempt.class.as_ref())
                .next_back()
            else {
                continue;
            };
            let number = numbers.number(&class.fingerprint);
            text_of_test.insert(*ordinal, number);
            names.entry(number).or_insert_with(|| class.into());
        }
        let stored: HashSet<TestOrdinal> = self.recognised.tests.iter().flatten().copied().collect();
        let known_tests: Vec<TestOrdinal> = text_of_test
            .keys()
            .copied()
            .filter(|test| stored.contains(test))
            .collect();
        let mut errors = snapshot.window_errors(self.number, &known_tests, self.window.0, self.window.1)?;
        count_tests(&mut errors, text_of_test.clone());
        errors.failures.retain(|(run, ..)| *run != self.number);
        let mut texts = texts(&self.history, &errors);
        for (test, text) in text_of_test {
            texts.insert(self.index, test, text);
        }
        Ok((texts, names))
    }
}

/// Removes tests from a run.
fn remove_tests(observed: &mut RunObservations, tests: &[TestOrdinal]) {
    let removed: HashSet<TestOrdinal> = tests.iter().copied().collect();
    let remove = |from: &mut Bitmap| tests.iter().for_each(|test| from.remove(*test));
    remove(&mut observed.present);
    remove(&mut observed.skipped);
    remove(&mut observed.untimed);
    observed
        .failures
        .retain(|failure| !removed.contains(&failure.test));
    observed
        .repeated
        .retain(|repetition| !removed.contains(&repetition.test));
}
