//! The reads of the API: `Store`, and `Snapshot` for answers that take several reads.

use std::{collections::HashMap, sync::Arc};

use super::StoreError;
use crate::{
    attempt::{AttemptStatus, TestAttempts},
    branch::Branches,
    cause::{FailedRun, FinalStatus, VerdictTag, WindowErrors},
    history::{HistoryRest, Occurrence, TestHistory},
    id::{KeyId, ProjectId, RunId},
    key::{KeyHash, StoredKey},
    observation::History,
    project::{Caller, Project, ProjectEntry},
    recording::Recording,
    rules::RecordingRules,
    run::{RunDetail, RunPage, RunPart, RunQuery, RunRest, TestEntry},
    settings::Settings,
    signature::{
        SignatureDays, SignatureDetail, SignatureHits, SignaturePage, SignatureQuery, TestSignature,
    },
    test::{TestLookup, TestName, TestOrdinal, TestSelector},
    timestamp::Timestamp,
    verdict::TestVerdict,
    window::Window,
};

/// The reads of the API. Every method below `project` takes the [`Project`] that only `project` returns.
pub trait Store: Send + Sync {
    /// Whether the store answers and has the schema that this program expects.
    fn ready(&self) -> Result<(), StoreError>;

    /// The connections as they are now, without waiting for one.
    fn connections(&self) -> Connections;

    /// The read key of this hash, whatever its state. Ingest keys are not found.
    fn key(&self, hash: &KeyHash) -> Result<Option<StoredKey>, StoreError>;

    /// Notes that a key was used on the day of `now`.
    fn key_used(&self, key: KeyId, now: Timestamp) -> Result<(), StoreError>;

    /// The caller's projects, oldest first.
    fn projects(&self, caller: &Caller) -> Result<Vec<ProjectEntry>, StoreError>;

    /// The caller's project of this id.
    fn project(&self, caller: &Caller, id: ProjectId, now: Timestamp) -> Result<Option<Project>, StoreError>;

    /// The project's configuration.
    fn settings(&self, project: &Project) -> Result<Settings, StoreError>;

    /// Every branch with a visible run, in case-insensitive alphabetical order; branches that differ only in case by
    /// code point. If there are too many, those with the newest runs.
    fn branches(&self, project: &Project) -> Result<Branches, StoreError>;

    /// One page of the runs list.
    fn runs(&self, project: &Project, query: &RunQuery) -> Result<RunPage, StoreError>;

    /// The logical run that this id, or the id of any of its shards, names.
    ///
    /// Of a very long run only the first tests are read; [`Self::run_part`] reads the others.
    fn run(&self, project: &Project, id: RunId) -> Result<Option<RunDetail>, StoreError>;

    /// The next tests of a run, in a separate transaction; none if the run changed since the first were read.
    fn run_part(
        &self,
        project: &Project,
        rest: &RunRest,
        part: &RunPart,
    ) -> Result<Option<Vec<TestEntry>>, StoreError>;

    /// The attempts of a test in a run; none where there is no such run. The candidates of an ambiguous name are
    /// the files that have it in this run.
    fn attempts(
        &self,
        project: &Project,
        run: RunId,
        test: &TestSelector,
    ) -> Result<Option<TestLookup<TestAttempts>>, StoreError>;

    /// How a test ended in the runs of a period. Of a very long history only the newest occurrences are read;
    /// [`Self::history_part`] reads the others.
    fn history(
        &self,
        project: &Project,
        test: &TestSelector,
        window: &Window,
    ) -> Result<TestLookup<TestHistory>, StoreError>;

    /// The next occurrences of a history, as they are stored now, and the rest.
    fn history_part(
        &self,
        project: &Project,
        rest: HistoryRest,
    ) -> Result<(Vec<Occurrence>, Option<HistoryRest>), StoreError>;

    /// A test's stored verdict.
    fn verdict(&self, project: &Project, test: &TestSelector) -> Result<TestLookup<TestVerdict>, StoreError>;

    /// An error signature over a period, or over everything visible where it did not occur in the period.
    fn signature(
        &self,
        project: &Project,
        fingerprint: &str,
        window: &Window,
    ) -> Result<Option<SignatureDetail>, StoreError>;

    /// One page of the signatures that occurred in a period.
    fn signatures(&self, project: &Project, query: &SignatureQuery) -> Result<SignaturePage, StoreError>;

    /// How often these signatures occurred day by day in a period, in the same order, on all branches or on one. An unknown
    /// fingerprint occurred never.
    fn signature_days(
        &self,
        project: &Project,
        fingerprints: &[&str],
        window: &Window,
        branch: Option<&str>,
    ) -> Result<Vec<SignatureDays>, StoreError>;

    /// The signatures that a test showed most in a period, at most 20.
    fn test_signatures(
        &self,
        project: &Project,
        test: &TestSelector,
        window: &Window,
    ) -> Result<TestLookup<Vec<TestSignature>>, StoreError>;

    /// Runs several reads over one state of the store. [`in_snapshot`] is the form with a result.
    ///
    /// `work` runs again where the connection turns out to be dead, so it must have no effect beyond its last result.
    fn with_snapshot(&self, project: &Project, work: &mut SnapshotWork<'_>) -> Result<(), StoreError>;
}

/// Work on a [`Snapshot`].
pub type SnapshotWork<'a> = dyn FnMut(&mut dyn Snapshot) -> Result<(), StoreError> + 'a;

/// One state of a project, for answers that take several reads. An error of a read must be returned as it is.
pub trait Snapshot {
    /// The engine's input: the runs that started within `from..=to`.
    fn observations(&mut self, from: Timestamp, to: Timestamp) -> Result<Arc<History>, StoreError>;

    /// The names of these tests, in the same order.
    fn test_names(&mut self, tests: &[TestOrdinal]) -> Result<Vec<TestName>, StoreError>;

    /// The logical run that this id, or the id of any of its shards, names.
    fn failed_run(&mut self, id: RunId) -> Result<Option<FailedRun>, StoreError>;

    /// How these tests ended in a run, in the same order.
    fn final_statuses(
        &mut self,
        run: &FailedRun,
        tests: &[TestOrdinal],
    ) -> Result<Vec<FinalStatus>, StoreError>;

    /// The error signatures of the runs that started within `from..=to`, for these tests that failed in a run.
    fn window_errors(
        &mut self,
        run_number: i32,
        tests: &[TestOrdinal],
        from: Timestamp,
        to: Timestamp,
    ) -> Result<WindowErrors, StoreError>;

    /// The stored verdicts on these tests in short, in the same order; none where none was stored yet.
    fn verdict_tags(&mut self, tests: &[TestOrdinal]) -> Result<Vec<Option<VerdictTag>>, StoreError>;

    /// The number of a test among those with a visible result.
    fn test_ordinal(&mut self, test: &TestSelector) -> Result<TestLookup<TestOrdinal>, StoreError>;

    /// The numbers of the error signatures with these fingerprints, as [`WindowErrors`] has them.
    fn signature_numbers(&mut self, fingerprints: &[String]) -> Result<HashMap<String, u32>, StoreError>;

    /// The tests that an error signature hit in runs that started within `from..=to`, with the signature's title; none where
    /// it hit no test.
    fn tests_with_signature(
        &mut self,
        fingerprint: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Option<SignatureHits>, StoreError>;

    /// What is known of a report that is not stored, or stored already: its run, its tests, its error signatures.
    fn recognise(
        &mut self,
        recording: &Recording,
        rules: RecordingRules,
    ) -> Result<RecognisedReport, StoreError>;

    /// How these tests ended in these runs, in the same order.
    fn final_results(&mut self, results: &[ResultKey]) -> Result<Vec<FinalResult>, StoreError>;
}

/// The result of several reads over one state of a project. `work` keeps to what [`Store::with_snapshot`] says.
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

/// What a project knows of a report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecognisedReport {
    /// Number and start of the logical run that the report belongs to, where it is stored.
    pub run: Option<(i32, Timestamp)>,
    /// The number that the next new run gets.
    pub next_run: i32,
    /// Each test of the report, in its order; none for a test that never ran.
    pub tests: Vec<Option<TestOrdinal>>,
    /// The numbers of the known error signatures, by fingerprint.
    pub signatures: HashMap<String, u32>,
    /// When tests of the report failed first, as far as results are kept. Tests that never failed are left out.
    pub first_failures: HashMap<TestOrdinal, Timestamp>,
}

/// A store's connections, for its operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Connections {
    /// At work.
    pub busy: u32,
    /// Open and free.
    pub idle: u32,
    /// How many there may be.
    pub most: u32,
}

/// Names the result of a test in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultKey {
    /// The test.
    pub test: TestOrdinal,
    /// The run's number.
    pub run_number: i32,
    /// The run's start, by which results are stored.
    pub run_started_at: Timestamp,
}

/// How a test ended in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinalResult {
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// The final attempt's start, else the run's.
    pub started_at: Timestamp,
}
