//! The ports of the store: reading, recording and administration.
//!
//! The traits are synchronous. A caller in an asynchronous program makes one hop to a blocking thread. A missing row
//! is an `Option` or a [`TestLookup`]. A [`StoreError`] always means that the store failed.

use std::{any::Any, collections::HashMap, sync::Arc};

use crate::{
    attempt::{AttemptStatus, TestAttempts},
    branch::Branches,
    cause::{FailedRun, FinalStatus, VerdictTag, WindowErrors},
    history::{HistoryRest, Occurrence, TestHistory},
    id::{KeyId, OrganizationId, ProjectId, RunId},
    intake::{IngestTerms, UploadEntry},
    key::{KeyEntry, KeyHash, NewKey, StoredKey},
    observation::History,
    plan::Plan,
    project::{Caller, Organization, Project, ProjectEntry},
    recording::{Imported, Recording, Sender, VerdictChanges},
    rules::{RecordingRules, RuleViolation},
    run::{RunDetail, RunPage, RunPart, RunQuery, RunRest, TestEntry},
    settings::{ChatEvent, Settings},
    signature::{Classifier, SignatureDays, SignatureDetail, SignaturePage, SignatureQuery, TestSignature},
    test::{TestLookup, TestName, TestOrdinal, TestSelector},
    timestamp::Timestamp,
    verdict::{Judge, TestVerdict},
    window::Window,
};

/// The store failed. The cause is logged and never sent to a client.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It could not be reached in time: no connection, or none free.
    #[error("the database is unreachable")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It answered with an error.
    #[error("the database failed while {doing}")]
    Failed {
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database has a value that no version of Assay writes.
    #[error("the database holds a {what} that cannot be read: {value:?}")]
    Corrupt {
        /// The kind of value.
        what: &'static str,
        /// Its value, bounded.
        value: String,
    },
}

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

/// Why a recording was not stored.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is no such project.
    #[error("no project has the id {0}; `assay project list` shows them")]
    NoProject(ProjectId),
    /// The run is already stored with shards, or without.
    #[error(
        "the run {run_key:?} was already imported {}; {}",
        if *.stored_sharded { "in shards" } else { "without shards" },
        if *.stored_sharded { "say which shard this is with --shard" } else { "omit --shard, or give another --run-key" }
    )]
    ShardingDiffers {
        /// The run's key.
        run_key: String,
        /// Whether the stored run has shards.
        stored_sharded: bool,
    },
    /// Another job's report is stored where this one belongs.
    #[error(
        "slot taken: {} already holds a different report, of {stored}; this one is of {sender}. \
         If the jobs run different tests, give each a --suite of its own; if they run parts of one suite, give each a --shard of its own",
        .shard.map_or_else(|| format!("run {run_number}"), |shard| format!("shard {shard} of run {run_number}"))
    )]
    SlotTaken {
        /// The run's number.
        run_number: i32,
        /// The shard's index; none for a run without shards.
        shard: Option<u32>,
        /// The sender of the stored shard.
        stored: Sender,
        /// The sender of this one.
        sender: Sender,
    },
    /// The way into the store does not accept it.
    #[error(transparent)]
    NotAllowed(#[from] RuleViolation),
    /// The report is stored, and the verdicts could not be brought up to date. The same report again, or the next import,
    /// does it.
    #[error("the report is stored, and its verdicts are not up to date yet: {0}")]
    NotJudged(#[source] StoreError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A recording that is stored.
#[derive(Debug)]
pub struct StoredRecording {
    /// What was stored. No verdicts were judged yet.
    pub imported: Imported,
    /// The judgement that is due, if any.
    pub due: Option<DueJudgement>,
}

/// A judgement that is due after a recording was stored. Only the store that made it knows what is in it.
#[derive(Debug)]
pub struct DueJudgement(Box<dyn Any + Send + Sync>);

impl DueJudgement {
    /// A judgement with what the store must know to make it.
    pub fn new(details: impl Any + Send + Sync) -> Self {
        Self(Box::new(details))
    }

    /// What the store put in.
    pub fn details<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

/// The writes of an import.
pub trait Recorder: Send + Sync {
    /// Stores a recording and brings everything derived up to date but the verdicts, in one transaction: whole or not at all.
    ///
    /// A shard that is already stored is replaced, unless another job sent it; the same content again changes nothing.
    /// The same content again is accepted also where the rules would refuse a change.
    fn store_under(
        &self,
        project: ProjectId,
        recording: &Recording,
        rules: RecordingRules,
        now: Timestamp,
    ) -> Result<StoredRecording, RecordError>;

    /// Stores the verdicts of the whole project, unless another recording was stored meanwhile: the last one judges. Returns
    /// what changed; nothing where another one judges.
    fn judge_after(&self, due: &DueJudgement, judge: &dyn Judge) -> Result<VerdictChanges, RecordError>;

    /// Stores a recording, then judges. Verdicts may follow a moment after this returned, where another one judges.
    fn record_under(
        &self,
        project: ProjectId,
        recording: &Recording,
        rules: RecordingRules,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Result<Imported, RecordError> {
        let StoredRecording { imported, due } = self.store_under(project, recording, rules, now)?;
        let verdicts_changed = match due {
            Some(due) => self.judge_after(&due, judge)?,
            None => VerdictChanges::default(),
        };
        Ok(Imported {
            verdicts_changed,
            ..imported
        })
    }

    /// The same without any rules.
    fn record(
        &self,
        project: ProjectId,
        recording: &Recording,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Result<Imported, RecordError> {
        self.record_under(project, recording, RecordingRules::Unrestricted, judge, now)
    }
}

/// The operations of an administrator.
pub trait Administration: Send + Sync {
    /// Makes an organization with a name that no other has.
    fn create_organization(&self, name: &str, plan: Plan, now: Timestamp) -> Result<Organization, NameError>;

    /// Gives an organization a name that no other has.
    fn rename_organization(&self, organization: OrganizationId, name: &str) -> Result<(), NameError>;

    /// Deletes an organization with its projects and keys; none if there is no such organization. `told` is called
    /// with the number of rows deleted so far.
    ///
    /// Readers and importers no longer find it once this has begun. A deletion that was killed is finished by the next
    /// call.
    fn delete_organization(
        &self,
        organization: OrganizationId,
        now: Timestamp,
        told: &mut dyn FnMut(u64),
    ) -> Result<Option<DeletionReport>, StoreError>;

    /// Every organization, oldest first.
    fn organizations(&self) -> Result<Vec<Organization>, StoreError>;

    /// Changes a plan; false where there is no such organization.
    fn set_plan(&self, organization: OrganizationId, plan: Plan) -> Result<bool, StoreError>;

    /// Creates a project in an existing organization, with a name that no other project of it has.
    fn create_project(
        &self,
        organization: OrganizationId,
        name: &str,
        stable_branch: &str,
        now: Timestamp,
    ) -> Result<ProjectEntry, NameError>;

    /// Gives a project a name that no other project of its organization has.
    fn rename_project(&self, project: ProjectId, name: &str) -> Result<(), NameError>;

    /// Moves a project with its ingest keys to an organization in which no project has its name.
    fn move_project(&self, project: ProjectId, organization: OrganizationId) -> Result<(), NameError>;

    /// Deletes a project with all its data, like [`Self::delete_organization`].
    fn delete_project(
        &self,
        project: ProjectId,
        now: Timestamp,
        told: &mut dyn FnMut(u64),
    ) -> Result<Option<DeletionReport>, StoreError>;

    /// The store's own clock.
    fn clock(&self) -> Result<Timestamp, StoreError>;

    /// What is left of deletions that were killed. [`Self::prune`] deletes it.
    fn unfinished_deletions(&self) -> Result<UnfinishedDeletions, StoreError>;

    /// How many runs of a project are stored.
    fn stored_runs(&self, project: ProjectId) -> Result<u64, StoreError>;

    /// The projects of an organization, oldest first.
    fn projects_of(&self, organization: OrganizationId) -> Result<Vec<ProjectEntry>, StoreError>;

    /// Every project's id with its name, oldest first.
    fn all_projects(&self) -> Result<Vec<ProjectEntry>, StoreError>;

    /// Changes a project's configuration; false if there is no such project. A changed stable branch also updates the
    /// stored verdicts, as of `now`.
    fn set_project(
        &self,
        project: ProjectId,
        change: &ProjectChange,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Stores a new read key of an organization; false where there is no such organization. Storing the same key again
    /// changes nothing.
    fn create_read_key(
        &self,
        organization: OrganizationId,
        key: &NewKey,
        expires_at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Stores a new ingest key of a project; false where there is no such project. Storing the same key again changes
    /// nothing.
    fn create_ingest_key(
        &self,
        project: ProjectId,
        key: &NewKey,
        terms: &IngestTerms,
    ) -> Result<bool, StoreError>;

    /// The newest uploads into a project that are recorded, at most `limit`, the newest first.
    fn uploads(&self, project: ProjectId, limit: u32) -> Result<Vec<UploadEntry>, StoreError>;

    /// Replaces a valid key by a new one of the same kind, owner, terms and lifetime. The replaced key works until
    /// `until` at most. Replacing a key by the same key again changes nothing.
    fn rotate_key(&self, key: KeyId, new: &NewKey, until: Timestamp) -> Result<KeyRotation, StoreError>;

    /// The keys of an organization and its projects, oldest first.
    fn keys(&self, organization: OrganizationId) -> Result<Vec<KeyEntry>, StoreError>;

    /// Revokes a key; false where there is no such key. A revoked key keeps its first date.
    fn revoke_key(&self, key: KeyId, now: Timestamp) -> Result<bool, StoreError>;

    /// Deletes a key that is revoked, or expired as of `now`.
    fn delete_key(&self, key: KeyId, now: Timestamp) -> Result<KeyDeletion, StoreError>;

    /// Groups a project's stored errors again, in one transaction; none if there is no such project.
    ///
    /// A fingerprint without occurrences becomes an alias of the one that most of its occurrences got.
    fn refingerprint(
        &self,
        project: ProjectId,
        classifier: &dyn Classifier,
    ) -> Result<Option<Refingerprinted>, StoreError>;

    /// Deletes what is past each organization's retention as of `now` and records of old uploads, or only counts them. `told` hears of each step.
    /// Finishes deletions that were killed.
    ///
    /// Each step is its own transaction. The next call continues an interrupted one.
    fn prune(
        &self,
        now: Timestamp,
        dry_run: bool,
        told: &mut dyn FnMut(PruneStep<'_>),
    ) -> Result<PruneReport, StoreError>;
}

/// Why something did not get a name, or another owner.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// Another one has the name.
    #[error(
        "there is already {what} named {name:?}, with the id {id}; give another name, or rename that one"
    )]
    Taken {
        /// The kind of thing that has the name, with its article.
        what: &'static str,
        /// The name.
        name: String,
        /// The id of the one that has the name.
        id: String,
    },
    /// The thing to be named, or its owner, does not exist.
    #[error("there is no such {0}; it may have been deleted meanwhile")]
    Missing(&'static str),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The rows that a deletion deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionReport {
    /// Projects.
    pub projects: u64,
    /// Logical runs.
    pub runs: u64,
    /// Results of tests in them.
    pub results: u64,
    /// Rows of all tables.
    #[serde(skip)]
    pub rows: u64,
}

impl DeletionReport {
    /// Adds the rows of another deletion.
    pub const fn add(&mut self, other: Self) {
        self.projects += other.projects;
        self.runs += other.runs;
        self.results += other.results;
        self.rows += other.rows;
    }
}

/// Hidden organizations and projects that are still partly stored, because their deletion was killed. Oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnfinishedDeletions {
    /// Organizations.
    pub organizations: Vec<Organization>,
    /// Projects, those of these organizations included.
    pub projects: Vec<ProjectEntry>,
}

/// The result of deleting a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyDeletion {
    /// It was deleted.
    Deleted,
    /// It still works, so it stays.
    StillValid,
    /// There is no such key.
    Missing,
}

/// What became of a key that was to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRotation {
    /// A new key has its place.
    Rotated {
        /// When the replaced key ceases to work.
        former_expires_at: Timestamp,
        /// When the new key ceases to work; none for a key that works until it is revoked.
        expires_at: Option<Timestamp>,
    },
    /// It is revoked or expired, so nothing has its place.
    NotValid,
    /// There is no such key.
    Missing,
}

/// A change of a project's configuration; a field that is none stays unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectChange {
    /// The new stable branch.
    pub stable_branch: Option<String>,
    /// The new chat integration: its events, or none to remove it.
    pub chat: Option<Option<Vec<ChatEvent>>>,
    /// Whether pull requests get a comment.
    pub pr_comments: Option<bool>,
}

/// How far pruning has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneStep<'a> {
    /// Runs of a project were deleted.
    Runs {
        /// The project's name.
        project: &'a str,
        /// Runs deleted so far.
        done: u64,
        /// Runs that are to go.
        of: u64,
    },
    /// Whole periods were dropped with their results.
    Periods {
        /// Periods dropped so far.
        done: u64,
        /// Periods that are to go.
        of: u64,
    },
}

/// The result of pruning.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneReport {
    /// The projects of which something was deleted, or would be.
    pub projects: Vec<Pruned>,
    /// Logical runs that were stored before.
    pub runs_stored: u64,
    /// Periods that were dropped whole, or would be: their runs are past every plan's retention.
    pub periods: u64,
    /// Periods that were in use all the time and are left for the next call. Their results are not visible.
    pub periods_left: u64,
    /// Organizations and projects whose killed deletion was finished, or would be.
    pub deletions_finished: u64,
    /// Records of uploads that are older than 90 days.
    pub uploads: u64,
}

/// The rows of one project that pruning deleted, or would delete.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pruned {
    /// The project.
    pub project_id: ProjectId,
    /// Its name.
    pub project: String,
    /// Logical runs.
    pub runs: u64,
    /// Results of tests in them.
    pub results: u64,
}

/// The result of grouping a project's errors again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refingerprinted {
    /// Failed attempts looked at.
    pub attempts: u64,
    /// Those that got another fingerprint.
    pub changed: u64,
    /// Signatures before.
    pub signatures_before: u64,
    /// Signatures after.
    pub signatures_after: u64,
    /// Former fingerprints that now answer for another signature.
    pub renamed: u64,
}
