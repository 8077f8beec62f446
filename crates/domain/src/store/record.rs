//! The writes of an import.

use std::any::Any;

use super::StoreError;
use crate::{
    id::ProjectId,
    recording::{Imported, Recording, Sender, VerdictChanges},
    rules::{RecordingRules, RuleViolation},
    timestamp::Timestamp,
    verdict::Judge,
};

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
