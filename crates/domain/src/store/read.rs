//! The reads of the API: `Store`, and `Snapshot` for answers that take several reads.

use std::{any::Any, collections::HashMap, sync::Arc};

use super::StoreError;
use crate::{
    attempt::{AttemptStatus, ErrorDetail},
    branch::Branches,
    cause::{FailedRun, FinalStatus, StoredFacts, WindowErrors},
    decision::RunDecision,
    execution::TestOutcome,
    fix::TestFixes,
    history::{HistoryRest, Occurrence, TestHistory, TestSummary},
    id::{KeyId, OrganizationId, ProjectId, RunId, SessionId},
    ingest::ProjectUpload,
    key::{KeyHash, StoredKey},
    observation::{History, RunObservations},
    owners::OwnersFile,
    period::Period,
    plan::Plan,
    project::{Caller, Project, ProjectEntry},
    recording::{LeftOver, Recording, RunContext},
    rules::RecordingRules,
    run::{RunDetail, RunPage, RunPart, RunQuery, RunRest, SomeTests, TestEntry},
    settings::Settings,
    signature::{SignatureDetail, SignatureHits, SignaturePage, SignatureQuery, TestSignature},
    test::{TestLookup, TestName, TestOrdinal, TestSelector},
    test_attempts::TestAttempts,
    test_names::TestNames,
    timestamp::Timestamp,
    timing::Timings,
    verdict::TestVerdict,
};

/// The rows that the check of a request with a read key needs.
pub trait ReadKeys: Send + Sync {
    /// The read key of this hash in any state. It does not find ingest keys.
    fn key(&self, hash: &KeyHash) -> Result<Option<StoredKey>, StoreError>;

    /// The plan of an organization, unless it was deleted.
    fn plan(&self, organization: OrganizationId) -> Result<Option<Plan>, StoreError>;

    /// The organization of this name.
    fn organization_named(&self, name: &str) -> Result<Option<OrganizationId>, StoreError>;

    /// Records the use of a key on the day of `now`.
    fn key_used(&self, key: KeyId, now: Timestamp) -> Result<(), StoreError>;

    /// The caller's project of this id.
    fn project(&self, caller: &Caller, id: ProjectId, now: Timestamp) -> Result<Option<Project>, StoreError>;

    /// Ends a session, of a key if it has one. It is forgotten after `expires_at`, when it cannot be used anyway. Processes
    /// share such sessions.
    fn end_session(
        &self,
        session: SessionId,
        key: Option<KeyId>,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Whether a session was ended.
    fn is_session_ended(&self, session: SessionId) -> Result<bool, StoreError>;
}

/// The reads of the API. Every method for one project takes the [`Project`] that only [`ReadKeys::project`] returns.
pub trait Store: ReadKeys {
    /// Checks that the store answers and has the schema that this program expects.
    fn ready(&self) -> Result<(), StoreError>;

    /// The current numbers of connections. It does not wait for one.
    fn connections(&self) -> Connections;

    /// The number of reads of data that the primary and the standbys answered since the start of this process.
    fn reads_by_node(&self) -> [(&'static str, u64); 2];

    /// The figures of the projects of all organizations that were judged last, at most 100, for the operators' metrics.
    fn judged_figures(&self) -> Result<Vec<ProjectFigures>, StoreError>;

    /// The caller's projects, oldest first.
    fn projects(&self, caller: &Caller) -> Result<Vec<ProjectEntry>, StoreError>;

    /// The project's configuration.
    fn settings(&self, project: &Project) -> Result<Settings, StoreError>;

    /// Every branch with a visible run, in case-insensitive alphabetical order. Branches that differ only in case are
    /// ordered by code point. If there are too many, those with the newest runs are returned.
    fn branches(&self, project: &Project) -> Result<Branches, StoreError>;

    /// One page of the runs list.
    fn runs(&self, project: &Project, query: &RunQuery) -> Result<RunPage, StoreError>;

    /// The newest uploads of the project's visible runs, the newest first, at most `limit`.
    fn project_uploads(&self, project: &Project, limit: u32) -> Result<Vec<ProjectUpload>, StoreError>;

    /// The run with this id. The id of any of its shards also identifies it.
    ///
    /// For a very long run, only the first tests are read. [`Self::run_part`] reads the others.
    fn run(&self, project: &Project, id: RunId) -> Result<Option<RunDetail>, StoreError>;

    /// The run with this id, with only some of its tests.
    fn run_with(
        &self,
        project: &Project,
        id: RunId,
        tests: &SomeTests,
    ) -> Result<Option<RunDetail>, StoreError>;

    /// The next tests of a run, in a separate transaction; none if the run changed since the first read.
    fn run_part(
        &self,
        project: &Project,
        rest: &RunRest,
        part: &RunPart,
    ) -> Result<Option<Vec<TestEntry>>, StoreError>;

    /// The decisions of gates on the stored reports of a run, newest first; empty if there is no such run. Decisions on
    /// replaced reports are omitted.
    fn decisions(&self, project: &Project, run: RunId) -> Result<Vec<RunDecision>, StoreError>;

    /// The attempts of a test in a run; none if there is no such run. The candidates of an ambiguous name are the files
    /// that have it in this run.
    fn attempts(
        &self,
        project: &Project,
        run: RunId,
        test: &TestSelector,
    ) -> Result<Option<TestLookup<TestAttempts>>, StoreError>;

    /// The errors of the last failed attempt of each of these tests in its run, in the same order. Empty where no attempt
    /// failed, and where there is no such run or test.
    fn last_errors(
        &self,
        project: &Project,
        tests: &[(RunId, TestName)],
    ) -> Result<Vec<Vec<ErrorDetail>>, StoreError>;

    /// The results of a test in the runs of a period. For a very long history, only the newest occurrences are read.
    /// [`Self::history_part`] reads the others.
    fn history(
        &self,
        project: &Project,
        test: &TestSelector,
        period: &Period,
    ) -> Result<TestLookup<TestHistory>, StoreError>;

    /// The next occurrences of a history in their current state, and the rest.
    fn history_part(
        &self,
        project: &Project,
        rest: HistoryRest,
    ) -> Result<(Vec<Occurrence>, Option<HistoryRest>), StoreError>;

    /// The usual durations of the tests, by what had arrived before a time.
    fn timings(&self, project: &Project, before: Timestamp) -> Result<Timings, StoreError>;

    /// A test's stored verdict.
    fn verdict(&self, project: &Project, test: &TestSelector) -> Result<TestLookup<TestVerdict>, StoreError>;

    /// The stored fixes of a test, with its runs of the period on the stable branch if it has any.
    fn fixes(
        &self,
        project: &Project,
        test: &TestSelector,
        period: &Period,
    ) -> Result<TestLookup<TestFixes>, StoreError>;

    /// An error signature over a period, or over everything visible if it did not occur in the period.
    fn signature(
        &self,
        project: &Project,
        fingerprint: &str,
        period: &Period,
    ) -> Result<Option<SignatureDetail>, StoreError>;

    /// One page of the signatures that occurred in a period.
    fn signatures(&self, project: &Project, query: &SignatureQuery) -> Result<SignaturePage, StoreError>;

    /// The most frequent signatures of a test in a period, at most 20.
    fn test_signatures(
        &self,
        project: &Project,
        test: &TestSelector,
        period: &Period,
    ) -> Result<TestLookup<Vec<TestSignature>>, StoreError>;

    /// A test in short: its verdict, and its outcomes, failures and signatures in a period. At most `failures` runs
    /// with a failed attempt are read.
    fn test_summary(
        &self,
        project: &Project,
        test: &TestSelector,
        period: &Period,
        failures: u32,
    ) -> Result<TestLookup<TestSummary>, StoreError>;

    /// Runs several reads over one state of the store. [`in_snapshot`] returns a result.
    ///
    /// If the connection is broken, `work` runs again, so its effects must be limited to its last result.
    fn with_snapshot(&self, project: &Project, work: &mut SnapshotWork<'_>) -> Result<(), StoreError>;
}

/// Work on a [`Snapshot`].
pub type SnapshotWork<'a> = dyn FnMut(&mut dyn Snapshot) -> Result<(), StoreError> + 'a;

/// The cache key of a [`SharedValue`] within a window. The value may depend only on the runs of the window, and on the
/// project's stable branch and owners file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SharedKey {
    /// The kind of value.
    pub kind: &'static str,
    /// Distinguishes values of one kind, for example by the number of a run; 0 for a value of the whole window.
    pub of: i32,
}

impl SharedKey {
    /// The key of a value of the whole window.
    pub const fn of_window(kind: &'static str) -> Self {
        Self { kind, of: 0 }
    }

    /// The key of verdicts on the tests of a history. In one state of the runs, their number depends on the time only by
    /// the runs that do not count yet.
    pub fn of_verdicts(kind: &'static str, history: &History, now: Timestamp) -> Self {
        Self {
            kind,
            of: i32::try_from(history.unsettled(now)).unwrap_or(i32::MAX),
        }
    }
}

/// A value that requests share, and its approximate size in bytes.
pub type SharedValue = (Arc<dyn Any + Send + Sync>, usize);

/// Computes a [`SharedValue`].
pub type ComputeShared<'a> = dyn FnMut(&mut dyn Snapshot) -> Result<SharedValue, StoreError> + 'a;

/// One state of a project, for answers that need several reads. An error of a read must be returned unchanged.
pub trait Snapshot {
    /// The engine's input: the runs that started within `from..=to`.
    fn observations(&mut self, from: Timestamp, to: Timestamp) -> Result<Arc<History>, StoreError>;

    /// Passes the runs that started within `from..=to` to `each`, oldest first, each with the milliseconds from its start
    /// to its end if a report has them. The memory does not depend on their number.
    fn each_run(
        &mut self,
        window: (Timestamp, Timestamp),
        each: &mut dyn FnMut(RunObservations, Option<u64>),
    ) -> Result<(), StoreError>;

    /// A value computed from the runs that started within `from..=to`. A store may return the value that another
    /// request computed for the same key from the same runs. [`shared`] gives it its type.
    fn shared_value(
        &mut self,
        key: SharedKey,
        from: Timestamp,
        to: Timestamp,
        compute: &mut ComputeShared<'_>,
    ) -> Result<SharedValue, StoreError>;

    /// The names of these tests, in the same order.
    fn test_names(&mut self, tests: &[TestOrdinal]) -> Result<Vec<TestName>, StoreError>;

    /// The other names under which a branch may report each of these tests, by the renames file, in the same order. At
    /// most ten of a test, the newest ones.
    fn former_names(&mut self, tests: &[TestOrdinal]) -> Result<Vec<Vec<TestName>>, StoreError>;

    /// The names of all tests of the project. It is fast when repeated, and meant for lists of all tests.
    fn all_test_names(&mut self) -> Result<Arc<TestNames>, StoreError>;

    /// The owners file of the project, if it has one.
    fn owners_file(&mut self) -> Result<Option<OwnersFile>, StoreError>;

    /// The run with this id. The id of any of its shards also identifies it.
    fn failed_run(&mut self, id: RunId) -> Result<Option<FailedRun>, StoreError>;

    /// A run that [`Self::observations`] leaves out, because it does not count in verdicts or its pack is damaged, as the
    /// engine reads it. None if it was deleted.
    fn uncounted_run(&mut self, run: &FailedRun) -> Result<Option<RunObservations>, StoreError>;

    /// The names of these tests with their final results in a run, in the same order.
    fn final_statuses(
        &mut self,
        run: &FailedRun,
        tests: &[TestOrdinal],
    ) -> Result<Vec<(FinalStatus, TestName)>, StoreError>;

    /// The error signatures of the runs that started within `from..=to`, for these tests that failed in a run.
    fn window_errors(
        &mut self,
        run_number: i32,
        tests: &[TestOrdinal],
        from: Timestamp,
        to: Timestamp,
    ) -> Result<WindowErrors, StoreError>;

    /// The stored facts about these tests.
    fn stored_facts(
        &mut self,
        tests: &[TestOrdinal],
    ) -> Result<HashMap<TestOrdinal, StoredFacts>, StoreError>;

    /// The numbers of these tests with a visible result, in the same order.
    fn test_ordinals(&mut self, tests: &[TestSelector]) -> Result<Vec<TestLookup<TestOrdinal>>, StoreError>;

    /// The numbers of the error signatures with these fingerprints, as used in [`WindowErrors`].
    fn signature_numbers(&mut self, fingerprints: &[String]) -> Result<HashMap<String, u32>, StoreError>;

    /// The tests with occurrences of an error signature in runs that started within `from..=to`, with the signature's
    /// title; none without an occurrence.
    fn tests_with_signature(
        &mut self,
        fingerprint: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Option<SignatureHits>, StoreError>;

    /// The stored facts about a report that may or may not be stored: its run, its tests, its error signatures.
    fn recognise(
        &mut self,
        recording: &Recording,
        rules: RecordingRules,
        now: Timestamp,
    ) -> Result<RecognisedReport, StoreError>;

    /// The duration in milliseconds of each test that passed at its first attempt, for each of these runs (number and
    /// start), in the same order.
    fn green_durations(
        &mut self,
        runs: &[(i32, Timestamp)],
    ) -> Result<Vec<Vec<(TestOrdinal, u64)>>, StoreError>;

    /// The milliseconds in which a part of each of these runs (number and start) ran, in the same order; none if no
    /// report has them.
    fn run_durations(&mut self, runs: &[(i32, Timestamp)]) -> Result<Vec<Option<u64>>, StoreError>;

    /// The results of these tests in these runs, in the same order.
    fn final_results(&mut self, results: &[ResultKey]) -> Result<Vec<FinalResult>, StoreError>;
}

/// The result of several reads over one state of a project. The rules of [`Store::with_snapshot`] apply to `work`.
pub fn in_snapshot<T>(
    store: &(impl Store + ?Sized),
    project: &Project,
    mut work: impl FnMut(&mut dyn Snapshot) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut result = None;
    store.with_snapshot(project, &mut |snapshot| {
        result = Some(work(snapshot)?);
        Ok(())
    })?;
    result.ok_or_else(|| StoreError::Failed {
        doing: "reading a snapshot",
        source: "the store did not read".into(),
    })
}

/// A value computed from the runs that started within `from..=to`. `compute` returns it with its approximate size in
/// bytes. Requests over the same runs share it, so `compute` may use only these runs, their errors and the key.
///
/// # Errors
/// [`StoreError::Corrupt`] if the key was used for a value of another type.
pub fn shared<T: Send + Sync + 'static>(
    snapshot: &mut dyn Snapshot,
    key: SharedKey,
    (from, to): (Timestamp, Timestamp),
    mut compute: impl FnMut(&mut dyn Snapshot) -> Result<(T, usize), StoreError>,
) -> Result<Arc<T>, StoreError> {
    let (value, _) = snapshot.shared_value(key, from, to, &mut |snapshot| {
        let (value, bytes) = compute(snapshot)?;
        Ok((Arc::new(value), bytes))
    })?;
    value.downcast().map_err(|_| StoreError::Corrupt {
        what: "shared value",
        value: key.kind.to_owned(),
    })
}

/// The stored facts about a report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecognisedReport {
    /// Number and start of the report's run, if it is stored.
    pub run: Option<(i32, Timestamp)>,
    /// The context of the run once the report is stored.
    pub context: RunContext,
    /// The release branch of the run.
    pub release_branch: Option<Arc<str>>,
    /// The number of the next new run.
    pub next_run: i32,
    /// The ordinal of each test of the report, in its order; none for a test that never ran.
    pub tests: Vec<Option<TestOrdinal>>,
    /// The outcome of each test of the report once it is part of its run, in its order.
    pub outcomes: Vec<RecognisedOutcome>,
    /// What earlier attempts of the report's job left over.
    pub left_over: LeftOver,
    /// The numbers of the known error signatures, by fingerprint.
    pub signatures: HashMap<String, u32>,
    /// Whether a test failed, and most of the last runs of its suite on the stable branch have several reports.
    pub has_several_parts: bool,
}

/// The outcome of a test once a report is part of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecognisedOutcome {
    /// In the whole run: with earlier parts, and with other shards.
    pub in_run: TestOutcome,
    /// Of the executions in which the report has an attempt.
    pub own: TestOutcome,
}

/// The figures of a judgement, over the engine's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JudgedFigures {
    /// The tests by verdict, in the order of [`VerdictStatus::LISTED`](crate::verdict::VerdictStatus::LISTED).
    pub tests: [i64; 5],
    /// The runs.
    pub runs: i64,
    /// Those of them that failed.
    pub failed_runs: i64,
    /// Milliseconds of failed attempts of the flaky tests.
    pub flaky_lost_ms: i64,
}

/// The figures of a project's last judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFigures {
    /// The project.
    pub id: ProjectId,
    /// Its name.
    pub name: String,
    /// The figures.
    pub judged: JudgedFigures,
    /// Whether the flake budget is exceeded; false without one.
    pub is_budget_exceeded: bool,
}

/// The numbers of a store's connections, for its operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Connections {
    /// Busy.
    pub busy: u32,
    /// Open and idle.
    pub idle: u32,
    /// The limit.
    pub most: u32,
}

/// Identifies the result of a test in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultKey {
    /// The test.
    pub test: TestOrdinal,
    /// The run's number.
    pub run_number: i32,
    /// The run's start. It determines where the results are stored.
    pub run_started_at: Timestamp,
}

/// The status of a test in a run, with the start of its final attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinalResult {
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// The final attempt's start, else the run's.
    pub started_at: Timestamp,
}
