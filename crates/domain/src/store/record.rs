//! The writes of an import.

use std::any::Any;

use super::StoreError;
use crate::{
    id::ProjectId,
    recording::{ImportReceipt, Recording, SentReport, VerdictChanges},
    rules::{RecordingRules, RuleViolation},
    timestamp::Timestamp,
    verdict::Judge,
};

/// The reason why a recording was not stored.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is no such project.
    #[error("no project has the id {0}; `assay-admin project list` shows them")]
    NoProject(ProjectId),
    /// The run is already stored in the other form: with or without shards.
    #[error(
        "run {run_number} already holds reports {}; {}",
        if *.stored_sharded { "of shards" } else { "without a shard" },
        if *.stored_sharded { "name this shard with --shard" } else { "omit --shard, or give another --run-key" }
    )]
    ShardingDiffers {
        /// The run's number.
        run_number: i32,
        /// Whether the stored run has shards.
        stored_sharded: bool,
    },
    /// The run is of another revision.
    #[error(
        "run {run_number} tested the revision {stored}, and this report tested {reported}, under the same run key {run_key:?}; \
         give each build a --run-key of its own, or correct --commit"
    )]
    RevisionDiffers {
        /// The run's number.
        run_number: i32,
        /// The run key of both.
        run_key: String,
        /// The revision of the run.
        stored: String,
        /// The revision of the report.
        reported: String,
    },
    /// The clock of this machine and that of the store differ, so the report would be stored at a wrong time.
    #[error(
        "the server's clock is {} s {} its database's, so nothing was stored; its operator sets both by NTP \
         (`assay-admin doctor` compares them), then send the report again",
        .ahead_s.unsigned_abs(),
        if *.ahead_s > 0 { "ahead of" } else { "behind" }
    )]
    ClockDiffers {
        /// By how many seconds this machine's clock is ahead.
        ahead_s: i64,
    },
    /// The rules of the key do not accept it.
    #[error(transparent)]
    NotAllowed(#[from] RuleViolation),
    /// The report is stored, but updating the verdicts failed. The same report again, or the next import, updates them.
    #[error("the report is stored, and its verdicts are not up to date yet: {0}")]
    NotJudged(#[source] StoreError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A stored recording.
#[derive(Debug)]
pub struct StoredRecording {
    /// The result of storing. It has no verdicts yet.
    pub imported: ImportReceipt,
    /// The judgement that is due, if any.
    pub due: Option<DueJudgement>,
}

/// A judgement that is due after a recording was stored. Only the store that created it reads its content.
#[derive(Debug)]
pub struct DueJudgement {
    details: Box<dyn Any + Send + Sync>,
    /// Whether no message is sent about what it changes, as after the import of old runs.
    pub is_silent: bool,
}

impl DueJudgement {
    /// A judgement with the store's own data for it.
    pub fn new(details: impl Any + Send + Sync) -> Self {
        Self {
            details: Box::new(details),
            is_silent: false,
        }
    }

    /// The store's data.
    pub fn details<T: Any>(&self) -> Option<&T> {
        self.details.downcast_ref()
    }
}

/// The writes of an import.
pub trait Recorder: Send + Sync {
    /// Whether the project stores names without the parts that change from run to run. True for an absent project.
    fn stores_stable_names(&self, project: ProjectId) -> Result<bool, RecordError>;

    /// The stored reports of a recording's CI run, by its page, as far as their runs started within a day of it.
    fn sent_reports(&self, project: ProjectId, recording: &Recording)
    -> Result<Vec<SentReport>, RecordError>;

    /// Stores a recording and updates all derived data except verdicts, in one transaction.
    ///
    /// The recording becomes a part of its run. It replaces what is stored for its run and shard only if it says so. The
    /// same content again from the same sender changes nothing, and is accepted even if the rules would refuse a change.
    fn store_under(
        &self,
        project: ProjectId,
        recording: &Recording,
        rules: RecordingRules,
        now: Timestamp,
    ) -> Result<StoredRecording, RecordError>;

    /// Judges the whole project and stores its verdicts. If another recording was stored in the meantime, only the last
    /// recording judges, unless the judgement is overdue or the project's first. Returns the changed verdicts; empty if
    /// another recording judges.
    fn judge_after(&self, due: &DueJudgement, judge: &dyn Judge) -> Result<VerdictChanges, RecordError>;

    /// Stores a recording, then judges. If another recording judges, its verdicts may be stored after this returns.
    fn record_under(
        &self,
        project: ProjectId,
        recording: &Recording,
        rules: RecordingRules,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Result<ImportReceipt, RecordError> {
        let StoredRecording { imported, due } = self.store_under(project, recording, rules, now)?;
        let verdicts_changed = match due {
            Some(due) => self.judge_after(&due, judge)?,
            None => VerdictChanges::default(),
        };
        Ok(ImportReceipt {
            verdicts_changed,
            ..imported
        })
    }

    /// Stores a recording without any rules, then judges.
    fn record(
        &self,
        project: ProjectId,
        recording: &Recording,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Result<ImportReceipt, RecordError> {
        self.record_under(project, recording, RecordingRules::Unrestricted, judge, now)
    }
}
