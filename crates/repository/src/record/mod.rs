//! The import transaction: stores one shard's report in its run, and updates everything derived.
//!
//! The project's row is locked first, so imports into one project are serial. Run numbers therefore have no gaps, two
//! shards of one run always see each other, and a verdict never overwrites a later one. The number of statements does
//! not depend on the number of tests.
//!
//! The project is judged after that transaction. Judging takes most of the time, and one judgement serves all reports
//! that were stored before it: see [`judgement`].

mod contents;
mod decision;
mod intern;
mod judgement;
mod recognise;
mod rows;
mod run;
mod turn;
mod uncounted_run;
pub(crate) mod verdict;

use std::{collections::BTreeSet, time::Instant};

use assay_domain::{
    id::{ProjectId, RunId},
    recording::{Effect, ImportReceipt, Recording, VerdictChanges},
    rules::RecordingRules,
    run::Outcome,
    store::{DueJudgement, RecordError, Recorder, StoreError, StoredRecording},
    timestamp::Timestamp,
    verdict::Judge,
};
use diesel::{PgConnection, QueryResult};
use uuid::Uuid;

pub(crate) use contents::RunContents;
pub(crate) use decision::store_decision;
pub(crate) use recognise::recognise;
pub(crate) use rows::store_pack;
pub(crate) use run::{Ending, shard_outcome};
pub(crate) use uncounted_run::uncounted_run;

use crate::{
    Database,
    db::{
        column::{At, optional_word},
        period,
        pool::WorkError,
    },
    read::{
        branch, daily_counts,
        observation::Mark,
        shard::{self, StoredShard},
    },
};
use contents::Execution;
use intern::{Numbers, RecordingOrdinals};
use judgement::PendingJudgement;
use run::{KnownRun, RunKey};
use turn::LockedProject;
use verdict::ImportChanges;

impl Recorder for Database {
    fn store_under(
        &self,
        project: ProjectId,
        recording: &Recording,
        rules: RecordingRules,
        now: Timestamp,
    ) -> Result<StoredRecording, RecordError> {
        let began = ImportStart::at(now);
        let before = self.with_reconnects(|| {
            let mark = self.on_primary("reading a project", |connection| {
                Ok::<_, WorkError<StoreError>>(Mark::find(connection, project.0)?)
            })?;
            mark.ok_or(RecordError::NoProject(project))
        })?;
        let import = Import {
            project: project.0,
            recording,
            rules,
            new_id: self.new_id(now),
            began,
            observed_before: before.observed,
        };
        // If the answer to a commit was lost, the second attempt finds its report stored.
        let mut first_attempt = None;
        loop {
            let outcome = self.in_turn("importing a report", project, |connection, locked| {
                let outcome = import.run(connection, locked, first_attempt.clone())?;
                if let Ok((imported, _)) = &outcome {
                    first_attempt = Some(imported.clone());
                }
                Ok(outcome)
            })?;
            match outcome {
                Ok((imported, judgement)) => {
                    return Ok(StoredRecording {
                        imported,
                        due: judgement.map(DueJudgement::new),
                    });
                }
                Err(NoPartition(start)) => {
                    self.with_reconnects(|| {
                        period::create_partition(self, start, now).map_err(RecordError::Store)
                    })?;
                }
            }
        }
    }

    fn judge_after(&self, due: &DueJudgement, judge: &dyn Judge) -> Result<VerdictChanges, RecordError> {
        let judgement: &PendingJudgement = due.details().ok_or_else(|| StoreError::Failed {
            doing: "judging a project",
            source: "the judgement is of another store".into(),
        })?;
        judgement.judge(self, judge).map_err(not_judged)
    }
}

/// The error for a report that is stored without its judgement.
fn not_judged(error: RecordError) -> RecordError {
    match error {
        RecordError::Store(error) => RecordError::NotJudged(error),
        other @ (RecordError::NoProject(_)
        | RecordError::ShardingDiffers { .. }
        | RecordError::SlotTaken { .. }
        | RecordError::NotAllowed(_)
        | RecordError::NotJudged(_)) => other,
    }
}

/// The beginning of an import.
#[derive(Debug, Clone, Copy)]
struct ImportStart {
    now: Timestamp,
    at: Instant,
}

impl ImportStart {
    /// The import begins now.
    fn at(now: Timestamp) -> Self {
        Self {
            now,
            at: Instant::now(),
        }
    }

    /// The time of the judgement: when the import began, or now if other imports stored reports meanwhile. Their runs
    /// may have started later.
    fn as_of(self, others_stored: bool) -> Timestamp {
        let waited_ms = i64::try_from(self.at.elapsed().as_millis()).unwrap_or(0);
        self.now.plus_ms(if others_stored { waited_ms } else { 0 })
    }
}

/// One import.
struct Import<'a> {
    project: Uuid,
    recording: &'a Recording,
    rules: RecordingRules,
    /// The id of the import, of a new shard, and the new value of `project.observed`.
    new_id: Uuid,
    began: ImportStart,
    /// The value of `project.observed` before the import waited for its turn.
    observed_before: Uuid,
}

type Work<T> = Result<T, WorkError<RecordError>>;

/// The receipt of a stored report, and the judgement that is due.
type ReceiptAndJudgement = (ImportReceipt, Option<PendingJudgement>);

/// Nothing is stored, because there are no partitions for a run with this start.
struct NoPartition(At);

impl Import<'_> {
    /// Stores the report.
    fn run(
        &self,
        connection: &mut PgConnection,
        locked: LockedProject,
        first_attempt: Option<ImportReceipt>,
    ) -> Work<Result<ReceiptAndJudgement, NoPartition>> {
        let LockedProject {
            stable_branch,
            mut numbers,
            mark,
        } = locked;
        let judgement = |observed, import_changes| PendingJudgement {
            project: self.project,
            began: self.began,
            as_of: self.began.as_of(mark.observed != self.observed_before),
            observed,
            import_changes,
        };
        let stored_run = KnownRun::find(connection, self.project, self.run_key())?;
        let shards = match &stored_run {
            Some(stored_run) => shard::of_run(connection, self.project, stored_run.number)?,
            None => Vec::new(),
        };
        if let Some(stored_run) = &stored_run {
            self.check_sharding(stored_run)?;
        }
        let index = self
            .recording
            .shard
            .map(|shard| crate::db::column::int(shard.index));
        let former = shards.iter().find(|shard| shard.index == index);
        if let (Some(stored_run), Some(former)) = (&stored_run, former)
            && former.content == self.recording.content
        {
            let imported = match first_attempt {
                Some(imported) if former.import_id == Some(self.new_id) => imported,
                Some(_) | None => unchanged(stored_run, former)?,
            };
            let due = !mark.is_judged();
            let judgement = due.then(|| judgement(mark.observed, ImportChanges::everything()));
            return Ok(Ok((imported, judgement)));
        }
        self.check_rules(stored_run.as_ref(), &stable_branch)?;
        if let (Some(stored_run), Some(former)) = (&stored_run, former) {
            self.check_sender(stored_run, former)?;
        }
        let shard = self.shard(former, &shards)?;
        let others: Vec<StoredShard> = shards
            .into_iter()
            .filter(|other| other.slot != shard.slot)
            .collect();
        // The rows are read in the partition of the run's old start, and written to that of the new one.
        let starts = [&shard].into_iter().chain(&others).map(|shard| shard.started_at);
        let starts = starts
            .min()
            .into_iter()
            .chain(stored_run.as_ref().map(|stored_run| stored_run.started_at));
        for start in starts {
            if !period::hold_partition(connection, start)? {
                return Ok(Err(NoPartition(start)));
            }
        }
        let interned = RecordingOrdinals::load(connection, self.project, self.recording, &mut numbers)?;
        let (imported, import_changes) =
            self.store(connection, stored_run, shard, others, &interned, &mut numbers)?;
        numbers.store(connection, self.project, self.new_id)?;
        // If an import was killed before it judged, the verdicts that it changed are unknown.
        let import_changes = match mark.is_judged() {
            true => import_changes,
            false => ImportChanges::everything(),
        };
        Ok(Ok((imported, Some(judgement(self.new_id, import_changes)))))
    }

    /// Identifies the run. Runs that do not count in verdicts have separate keys. An ingest key for such runs alone can
    /// thus neither change another run nor take its key.
    fn run_key(&self) -> RunKey<'_> {
        RunKey {
            text: &self.recording.run_key,
            counts_in_verdicts: self.rules.counts_in_verdicts(),
        }
    }

    fn check_rules(&self, stored_run: Option<&KnownRun>, stable_branch: &str) -> Work<()> {
        let now = self.began.now;
        let refused = |violation| WorkError::Refused(RecordError::NotAllowed(violation));
        if let Some(stored_run) = stored_run {
            self.rules
                .check_open(stored_run.number, stored_run.first_shard_at(), now)
                .map_err(refused)?;
        }
        self.rules
            .check(self.recording, stable_branch, now)
            .map_err(refused)
    }

    fn check_sharding(&self, stored_run: &KnownRun) -> Work<()> {
        if stored_run.sharded == self.recording.shard.is_some() {
            return Ok(());
        }
        Err(WorkError::Refused(RecordError::ShardingDiffers {
            run_number: stored_run.number,
            stored_sharded: stored_run.sharded,
        }))
    }

    /// Rejects replacing a shard that another job sent.
    fn check_sender(&self, stored_run: &KnownRun, former: &StoredShard) -> Work<()> {
        let (stored, sender) = (former.sender(), &self.recording.sender);
        if !sender.is_other_than(&stored) {
            return Ok(());
        }
        Err(WorkError::Refused(RecordError::SlotTaken {
            run_number: stored_run.number,
            shard: self.recording.shard.map(|shard| shard.index),
            stored,
            sender: sender.clone(),
        }))
    }

    fn store(
        &self,
        connection: &mut PgConnection,
        stored_run: Option<KnownRun>,
        shard: StoredShard,
        others: Vec<StoredShard>,
        interned: &RecordingOrdinals,
        numbers: &mut Numbers,
    ) -> Work<(ImportReceipt, ImportChanges)> {
        let mut contents = match &stored_run {
            Some(stored_run) => {
                RunContents::load(connection, self.project, stored_run.number, stored_run.started_at)?
            }
            None => RunContents::default(),
        };
        let executions = Execution::of_recording(self.recording, interned, shard.slot);
        let changed = contents.replace(shard.slot, executions);
        contents.order(
            others
                .iter()
                .chain([&shard])
                .map(|shard| (shard.slot, shard.index)),
        );
        let number = stored_run
            .as_ref()
            .map_or_else(|| numbers.next_run(), |stored_run| stored_run.number);
        let mut branches: Vec<String> = stored_run
            .iter()
            .filter_map(KnownRun::branch)
            .map(str::to_owned)
            .collect();
        let former_start = stored_run.as_ref().map(|stored_run| stored_run.started_at);
        let all: Vec<&StoredShard> = others.iter().chain([&shard]).collect();
        let context = run::context(stored_run.as_ref(), self.recording)?;
        let run = run::NewRun::of(
            self,
            number,
            stored_run.as_ref(),
            &context,
            &all,
            contents.counts(),
        )?;
        run.store(connection)?;
        if let Some(branch) = run.branch()
            && !branches.iter().any(|former| former == branch)
        {
            branches.push(branch.to_owned());
        }
        branch::refresh(connection, self.project, &branches)?;
        let days: BTreeSet<At> = former_start
            .into_iter()
            .chain([run.started_at])
            .map(daily_counts::day_of)
            .collect();
        daily_counts::refresh(connection, self.project, &Vec::from_iter(days))?;
        run::store_shard(connection, self.project, number, &shard)?;
        let writer = rows::RowWriter {
            project: self.project,
            run: number,
            started_at: run.started_at.0,
            interned,
        };
        writer.write(connection, &contents, shard.slot, &changed, former_start)?;
        if self.rules.counts_in_verdicts() {
            rows::store_pack(connection, self.project, number, run.started_at, &contents.pack())?;
        }
        let final_result = |test| {
            Some((
                test,
                rows::final_result(contents.executions(test), run.started_at.0)?,
            ))
        };
        let import_changes = ImportChanges {
            run: Some(number),
            final_results: contents.ordinals().filter_map(final_result).collect(),
            tests: changed.into_iter().chain(contents.ordinals()).collect(),
            ..ImportChanges::default()
        };
        let imported = ImportReceipt {
            run_id: RunId(run.id),
            run_number: number,
            shard_id: RunId(shard.id),
            status: run.outcome,
            counts: contents.counts(),
            context,
            effect: if shard.id == self.new_id {
                Effect::Added
            } else {
                Effect::Replaced
            },
            verdicts_changed: VerdictChanges::default(),
        };
        Ok((imported, import_changes))
    }

    /// The shard to store: in the slot of the one that it replaces, or in a new one.
    fn shard(&self, former: Option<&StoredShard>, all: &[StoredShard]) -> Work<StoredShard> {
        let recording = self.recording;
        let (slot, id) = match former {
            Some(former) => (former.slot, former.id),
            None => (run::next_slot(all)?, self.new_id),
        };
        Ok(run::new_shard(recording, slot, id, self.new_id))
    }
}

/// Corrects the derived rows of `result` and `attempt`; returns whether any were wrong.
pub(crate) fn correct(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    started_at: At,
    contents: &RunContents<'_>,
) -> QueryResult<bool> {
    let writer = rows::RowWriter {
        project,
        run,
        started_at: started_at.0,
        interned: &RecordingOrdinals::default(),
    };
    writer.correct(connection, contents)
}

/// The result of an import whose content was already stored.
fn unchanged(stored_run: &KnownRun, shard: &StoredShard) -> Work<ImportReceipt> {
    let status: Option<Outcome> = optional_word("run status", stored_run.status.as_deref())?;
    Ok(ImportReceipt {
        run_id: RunId(stored_run.id),
        run_number: stored_run.number,
        shard_id: RunId(shard.id),
        status,
        counts: stored_run.counts.counts()?,
        context: stored_run.context.clone().stored()?,
        effect: Effect::Unchanged,
        verdicts_changed: VerdictChanges::default(),
    })
}
