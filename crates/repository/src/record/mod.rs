//! The import transaction: stores a report as a part of its run, and updates everything derived.
//!
//! The project's row is locked first, so imports into one project are serial. Run numbers therefore have no gaps, two
//! parts of one run always see each other, and a verdict never overwrites a later one. The number of statements does
//! not depend on the number of tests.
//!
//! The project is judged after that transaction. Judging takes most of the time, and one judgement serves all reports
//! that were stored before it: see [`judgement`].

mod budget;
mod contents;
mod decision;
mod intern;
mod judgement;
mod recognise;
mod rows;
mod run;
mod target;
mod turn;
mod uncounted_run;
pub(crate) mod verdict;
mod work;

use std::collections::BTreeSet;

use assay_domain::{
    id::{ProjectId, RunId},
    recording::{Effect, ImportReceipt, PartStanding, Recording, ReplacedResults, VerdictChanges},
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
pub(crate) use run::{DerivedRun, set_derived, store_derived};
pub(crate) use uncounted_run::uncounted_run;

use crate::{
    Database,
    db::{
        column::{At, optional_word},
        period,
        pool::WorkError,
    },
    read::{branch, daily_counts, observation::Mark, part::StoredPart},
};
use contents::PartExecution;
use intern::{Numbers, RecordingOrdinals};
use judgement::PendingJudgement;
use run::KnownRun;
use target::Target;
use turn::LockedProject;
use verdict::ImportChanges;
use work::{ImportStart, Work};

impl Recorder for Database {
    fn stores_stable_names(&self, project: ProjectId) -> Result<bool, RecordError> {
        self.on_primary("reading how a project names its tests", |connection| {
            Ok(intern::stores_stable_names(connection, project.0)?)
        })
    }

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
        // The judgement reads what was stored, and stores verdicts.
        self.count_outgrown(judgement);
        let changes = judgement.judge(self, judge).map_err(not_judged)?;
        self.count_outgrown(judgement);
        Ok(changes)
    }
}

impl Database {
    /// Counts the rows of each project again if a report made its project outgrow the statistics of Postgres.
    fn count_outgrown(&self, judgement: &PendingJudgement) {
        if let Some(run_start) = judgement.outgrown
            && let Err(error) = period::count_projects(self, run_start)
        {
            // Autovacuum counts sooner or later.
            log::warn!("the rows of projects were not counted, so large runs may be slow to read: {error}");
        }
    }
}

/// The error for a report that is stored without its judgement.
fn not_judged(error: RecordError) -> RecordError {
    match error {
        RecordError::Store(error) => RecordError::NotJudged(error),
        other @ (RecordError::NoProject(_)
        | RecordError::ShardingDiffers { .. }
        | RecordError::RevisionDiffers { .. }
        | RecordError::NotAllowed(_)
        | RecordError::NotJudged(_)) => other,
    }
}

/// One import.
struct Import<'a> {
    project: Uuid,
    recording: &'a Recording,
    rules: RecordingRules,
    /// The id of the import, of a new part, and the new value of `project.observed`.
    new_id: Uuid,
    began: ImportStart,
    /// The value of `project.observed` before the import waited for its turn.
    observed_before: Uuid,
}

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
        let numbers_before = numbers;
        let judgement = |observed, import_changes, outgrown| PendingJudgement {
            project: self.project,
            began: self.began,
            as_of: self.began.as_of(mark.observed != self.observed_before),
            observed,
            import_changes,
            outgrown,
        };
        let target = Target::find(
            connection,
            self.project,
            self.recording,
            self.rules,
            self.began.now,
        )?;
        if let (Some(run), Some(same)) = (&target.run, target.same_part(self.recording)?) {
            let imported = match first_attempt {
                Some(imported) if same.import_id == Some(self.new_id) => imported,
                Some(_) | None => unchanged(run, same)?,
            };
            let due = !mark.is_judged();
            let judgement = due.then(|| judgement(mark.observed, ImportChanges::everything(), None));
            return Ok(Ok((imported, judgement)));
        }
        self.check_rules(target.run.as_ref(), &stable_branch)?;
        target.check(self.recording)?;
        // The rows are read in the partition of the run's old start, and written to that of the new one.
        let starts = target.others(self.recording).map(|part| part.started_at);
        let starts = starts
            .chain([At(self.recording.started_at)])
            .min()
            .into_iter()
            .chain(target.run.as_ref().map(|run| run.started_at));
        for start in starts {
            if !period::hold_partition(connection, start)? {
                return Ok(Err(NoPartition(start)));
            }
        }
        budget::count(
            connection,
            self.project,
            self.recording,
            self.rules,
            self.began.now,
        )?;
        let interned = RecordingOrdinals::load(connection, self.project, self.recording, &mut numbers)?;
        let (imported, import_changes) = self.store(connection, target, &interned, &mut numbers)?;
        numbers.store(connection, self.project, self.new_id)?;
        // If an import was killed before it judged, the verdicts that it changed are unknown.
        let import_changes = match mark.is_judged() {
            true => import_changes,
            false => ImportChanges::everything(),
        };
        let outgrown = numbers
            .have_outgrown(&numbers_before)
            .then_some(At(self.recording.started_at));
        let judgement = judgement(self.new_id, import_changes, outgrown);
        Ok(Ok((imported, Some(judgement))))
    }

    fn check_rules(&self, stored_run: Option<&KnownRun>, stable_branch: &str) -> Work<()> {
        let now = self.began.now;
        let refused = |violation| WorkError::Refused(RecordError::NotAllowed(violation));
        if let Some(stored_run) = stored_run {
            self.rules
                .check_open(stored_run.number, stored_run.first_part_at(), now)
                .map_err(refused)?;
        }
        self.rules
            .check(self.recording, stable_branch, now)
            .map_err(refused)
    }

    fn store(
        &self,
        connection: &mut PgConnection,
        target: Target<'_>,
        interned: &RecordingOrdinals,
        numbers: &mut Numbers,
    ) -> Work<(ImportReceipt, ImportChanges)> {
        let Target {
            key,
            run: stored_run,
            mut parts,
        } = target;
        let recording = self.recording;
        let mut contents = match &stored_run {
            Some(stored_run) => {
                RunContents::load(connection, self.project, stored_run.number, stored_run.started_at)?
            }
            None => RunContents::default(),
        };
        let slot: Vec<(i16, Uuid, Uuid)> = target::of_slot(&parts, recording)
            .map(|part| (part.number, part.id, part.shard_id))
            .collect();
        let part_number = run::next_part(&parts)?;
        let mut changed = BTreeSet::new();
        let (mut removed, mut replaced) = (Vec::new(), None);
        if recording.replaces && !slot.is_empty() {
            contents.merge(&parts)?;
            removed = slot.iter().map(|(number, ..)| *number).collect();
            let (tests, failed) = contents.count_of(&removed);
            replaced = Some(ReplacedResults { tests, failed });
            changed.extend(contents.remove(&removed));
            parts.retain(|part| !removed.contains(&part.number));
        }
        let ids = match slot.first() {
            // The first part of a shard has the shard's id.
            Some((_, _, shard)) if replaced.is_some() => (*shard, *shard),
            Some((_, _, shard)) => (self.new_id, *shard),
            None => (self.new_id, self.new_id),
        };
        parts.push(run::new_part(recording, part_number, ids, self.new_id));
        let tests = recording.tests.iter().zip(interned.tests.iter().copied());
        let executions = PartExecution::of_tests(tests, interned, part_number);
        changed.extend(executions.keys());
        contents.add(executions);
        let roles = contents.merge(&parts)?;
        changed.extend(contents.repeated_in(&parts, target::index(recording)));
        let derived_parts: Vec<i16> = run::set_derived(&mut parts, &contents, &roles)?;

        let number = stored_run
            .as_ref()
            .map_or_else(|| numbers.next_run(), |stored_run| stored_run.number);
        let mut branches: Vec<String> = stored_run
            .iter()
            .filter_map(KnownRun::branch)
            .map(str::to_owned)
            .collect();
        let former_start = stored_run.as_ref().map(|stored_run| stored_run.started_at);
        let context = run::context(stored_run.as_ref(), recording)?;
        let run = run::NewRun::of(
            self,
            key,
            number,
            stored_run.as_ref(),
            &context,
            &parts,
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
        run::delete_parts(connection, self.project, number, &removed)?;
        let (new, others): (Vec<&StoredPart>, Vec<&StoredPart>) =
            parts.iter().partition(|part| part.number == part_number);
        for part in new {
            run::store_part(connection, self.project, number, part)?;
        }
        let changed_parts: Vec<&StoredPart> = others
            .into_iter()
            .filter(|part| derived_parts.contains(&part.number))
            .collect();
        run::store_derived(connection, self.project, number, &changed_parts)?;
        let writer = rows::RowWriter {
            project: self.project,
            run: number,
            started_at: run.started_at.0,
            interned,
        };
        writer.write(connection, &contents, &removed, &changed, former_start)?;
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
        let role = roles.get(&part_number).cloned().unwrap_or_default();
        let imported = ImportReceipt {
            run_id: RunId(run.id),
            run_number: number,
            shard_id: RunId(ids.1),
            status: run.derived.outcome()?,
            counts: contents.counts(),
            context,
            effect: match replaced {
                Some(_) => Effect::Replaced,
                None => Effect::Added,
            },
            standing: PartStanding {
                continues: role.continues,
                beside: run::senders_at(&parts, target::index(recording), &role.beside)?,
                replaced,
            },
            verdicts_changed: VerdictChanges::default(),
        };
        Ok((imported, import_changes))
    }
}

/// Corrects the derived rows of `result_block` and `attempt`; returns whether any were wrong.
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
fn unchanged(stored_run: &KnownRun, part: &StoredPart) -> Work<ImportReceipt> {
    let status: Option<Outcome> = optional_word("run status", stored_run.status.as_deref())?;
    Ok(ImportReceipt {
        run_id: RunId(stored_run.id),
        run_number: stored_run.number,
        shard_id: RunId(part.shard_id),
        status,
        counts: stored_run.counts.counts()?,
        context: stored_run.context.clone().stored()?,
        effect: Effect::Unchanged,
        standing: PartStanding::default(),
        verdicts_changed: VerdictChanges::default(),
    })
}
