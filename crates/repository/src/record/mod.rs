//! The import transaction: stores a report as a part of its run, and updates everything derived.
//!
//! The project's row is locked first, so imports into one project are serial. Run numbers therefore have no gaps, two
//! parts of one run always see each other, and a verdict never overwrites a later one. The number of statements does
//! not depend on the number of tests.
//!
//! The project is judged after that transaction. Judging takes most of the time, and one judgement serves all reports
//! that were stored before it: see [`judgement`].

mod budget;
mod checkout;
mod contents;
mod decision;
mod fix;
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
    attempt::ErrorDetail,
    id::{ProjectId, RunId},
    part::PartRole,
    recording::{
        Effect, ImportReceipt, PartStanding, Recording, ReplacedResults, RunContext, SentReport,
        VerdictChanges,
    },
    release_branch::{BranchPattern, release_branch_of},
    rules::RecordingRules,
    run::{Counts, Outcome},
    store::{DueJudgement, RecordError, Recorder, StoreError, StoredRecording},
    timestamp::Timestamp,
    verdict::Judge,
};
use diesel::prelude::*;
use uuid::Uuid;

pub(crate) use contents::RunContents;
pub(crate) use decision::store_decision;
pub(crate) use fix::store_fix;
pub(crate) use intern::NewSignature;
pub(crate) use recognise::recognise;
pub(crate) use rows::store_pack;
pub(crate) use run::{DerivedRun, set_derived, store_derived};
pub(crate) use uncounted_run::uncounted_run;

use crate::{
    Database,
    db::{
        column::{At, branch_patterns, optional_word},
        partition,
        pool::WorkError,
    },
    read::{branch, daily_counts, joins, observation::Mark, part::StoredPart},
};
use contents::PartExecution;
use intern::{Numbers, RecordingOrdinals};
use judgement::PendingJudgement;
use run::{KnownRun, NewRun};
use target::Target;
use turn::LockedProject;
use verdict::{EdgeRecording, ImportChanges};
use work::{ImportStart, Work};

define_sql_function! {
    /// The time now, by the clock of Postgres.
    fn clock_timestamp() -> Timestamptz;
}

impl Recorder for Database {
    fn stores_stable_names(&self, project: ProjectId) -> Result<bool, RecordError> {
        let stores = self.query("reading how a project names its tests", |connection| {
            intern::stores_stable_names(connection, project.0)
        })?;
        Ok(stores)
    }

    fn sent_reports(
        &self,
        project: ProjectId,
        recording: &Recording,
    ) -> Result<Vec<SentReport>, RecordError> {
        let Some(page) = recording.context.run_url.as_deref() else {
            return Ok(Vec::new());
        };
        let stored = self.query("reading the reports of a CI run", |connection| {
            KnownRun::parts_of_page(connection, project.0, page, recording)
        })?;
        let sent = stored.into_iter().map(run::sent_report);
        Ok(sent.collect::<Result<_, _>>()?)
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
                self.compare_clocks(connection, now)?;
                Mark::find(connection, project.0)?
                    .ok_or_else(|| WorkError::Refused(RecordError::NoProject(project)))
            })?;
            Ok(mark)
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
                        partition::create_partition(self, start, now).map_err(RecordError::Store)
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
        let changes = judgement
            .judge(self, judge, EdgeRecording::unless_silent(due))
            .map_err(not_judged)?;
        self.count_outgrown(judgement);
        Ok(changes)
    }
}

impl Database {
    /// Checks that the time of an import is near the clock of Postgres.
    fn compare_clocks(
        &self,
        connection: &mut PgConnection,
        now: Timestamp,
    ) -> Result<(), WorkError<RecordError>> {
        let Some(within) = self.options.clocks_within else {
            return Ok(());
        };
        let At(clock) = diesel::select(clock_timestamp()).get_result(connection)?;
        let ahead_ms = now.since_ms(clock);
        match u128::from(ahead_ms.unsigned_abs()) <= within.as_millis() {
            true => Ok(()),
            false => Err(WorkError::Refused(RecordError::ClockDiffers {
                ahead_s: ahead_ms / 1_000,
            })),
        }
    }

    /// Counts the rows of each project again if a report made its project outgrow the statistics of Postgres.
    fn count_outgrown(&self, judgement: &PendingJudgement) {
        if let Some(run_start) = judgement.outgrown
            && let Err(error) = partition::count_projects(self, run_start)
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
        | RecordError::ClockDiffers { .. }
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
            release_branches,
            mut numbers,
            mark,
            has_renames,
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
        let damaged = match &target.run {
            Some(run) if self.is_unreadable(connection, &target, run)? => Some((run.number, run.started_at)),
            Some(_) | None => None,
        };
        if let (Some(run), Some(same), None) = (&target.run, target.same_part(self.recording)?, damaged) {
            let imported = match first_attempt {
                Some(imported) if same.import_id == Some(self.new_id) => imported,
                Some(_) | None => unchanged(run, same)?,
            };
            let due = !mark.is_judged();
            let judgement = due.then(|| judgement(mark.observed, ImportChanges::everything(), None));
            return Ok(Ok((imported, judgement)));
        }
        let release_branches = branch_patterns(&release_branches)?;
        let lines = (&*stable_branch, &*release_branches);
        self.check_rules(target.run.as_ref(), lines)?;
        target.check(self.recording)?;
        if let Err(missing) = self.hold_partitions(connection, &target)? {
            return Ok(Err(missing));
        }
        budget::count(
            connection,
            self.project,
            self.recording,
            self.rules,
            self.began.now,
        )?;
        let interned = RecordingOrdinals::load(connection, self.project, self.recording, &mut numbers)?;
        if let Some((number, started_at)) = damaged {
            rows::delete(connection, self.project, number, started_at)?;
        }
        let (mut imported, import_changes) =
            self.store(connection, target, &interned, lines, &mut numbers)?;
        let renames_changed = checkout::store(
            connection,
            self.project,
            self.recording,
            self.rules,
            &stable_branch,
        )?;
        if checkout::is_trusted(self.recording, self.rules, &stable_branch) {
            let stored_by = (self.began.now, self.new_id);
            imported.standing.unknown_claims =
                fix::store_claims(connection, self.project, self.recording, stored_by)?;
        }
        if renames_changed || (has_renames && numbers.have_more_tests(&numbers_before)) {
            joins::refresh(connection, self.project)?;
        }
        numbers.store(connection, self.project, self.new_id)?;
        // If an import was killed before it judged, the verdicts that it changed are unknown. With renames, a test that it
        // reported may count as another one.
        let import_changes = match mark.is_judged() && !has_renames && !renames_changed {
            true => import_changes,
            false => ImportChanges::everything(),
        };
        let outgrown = numbers
            .have_outgrown(&numbers_before)
            .then_some(At(self.recording.started_at));
        let judgement = judgement(self.new_id, import_changes, outgrown);
        Ok(Ok((imported, Some(judgement))))
    }

    /// Whether the report replaces everything that a run has, and that cannot be read. So a damaged run is repaired.
    fn is_unreadable(
        &self,
        connection: &mut PgConnection,
        target: &Target<'_>,
        run: &KnownRun,
    ) -> Work<bool> {
        if !self.recording.replaces || target.others(self.recording).next().is_some() {
            return Ok(false);
        }
        match RunContents::load(connection, self.project, run.number, run.started_at) {
            Ok(contents) => Ok(contents.names_unknown_tests(connection, self.project)?),
            Err(WorkError::Refused(StoreError::Corrupt { .. })) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Protects the partition of the run's old start, where rows are read, and that of the new one, where they are written.
    fn hold_partitions(
        &self,
        connection: &mut PgConnection,
        target: &Target<'_>,
    ) -> Work<Result<(), NoPartition>> {
        let starts = target.others(self.recording).map(|part| part.started_at);
        let new = starts.chain([At(self.recording.started_at)]).min();
        let old = target.run.as_ref().map(|run| run.started_at);
        for start in new.into_iter().chain(old) {
            if !partition::hold_partition(connection, start)? {
                return Ok(Err(NoPartition(start)));
            }
        }
        Ok(Ok(()))
    }

    fn check_rules(
        &self,
        stored_run: Option<&KnownRun>,
        (stable_branch, release_branches): (&str, &[BranchPattern]),
    ) -> Work<()> {
        let now = self.began.now;
        let refused = |violation| WorkError::Refused(RecordError::NotAllowed(violation));
        if let Some(stored_run) = stored_run {
            self.rules
                .check_open(stored_run.number, stored_run.first_part_at(), now)
                .map_err(refused)?;
        }
        let own = self.recording.context.branch.as_deref();
        let stable_branch = release_branch_of(release_branches, own, None).unwrap_or(stable_branch);
        self.rules
            .check(self.recording, stable_branch, now)
            .map_err(refused)
    }

    fn store(
        &self,
        connection: &mut PgConnection,
        target: Target<'_>,
        interned: &RecordingOrdinals,
        lines: (&str, &[BranchPattern]),
        numbers: &mut Numbers,
    ) -> Work<(ImportReceipt, ImportChanges)> {
        let passes = intern::known_of(connection, self.project, &self.recording.possible_passes())?;
        let reported = interned.tests.iter().chain(&passes).copied().collect();
        let left_failed = target.left_failed(connection, self.project, self.recording, &reported)?;
        let Target {
            key,
            run: former,
            parts,
            ..
        } = target;
        let former = former.as_ref();
        let left_failed = left_failed.map(|(_, error)| error);
        let added = self.add(connection, (former, left_failed), parts, interned, &passes)?;
        let named = match former {
            Some(former) => (former.id, former.number),
            None => (self.new_id, numbers.next_run()),
        };
        let context = run::context(former, self.recording, lines)?;
        let counts = added.contents.counts();
        let run = NewRun::of(self, key, named, &context, &added.parts, counts)?;
        self.store_run(connection, former, &run)?;
        added.store_parts(connection, &run)?;
        let writer = rows::RowWriter {
            project: self.project,
            run: run.number,
            started_at: run.started_at.0,
            interned,
        };
        let former_start = former.map(|former| former.started_at);
        writer.write(
            connection,
            &added.contents,
            &added.removed,
            &added.changed,
            former_start,
        )?;
        if self.rules.counts_in_verdicts() {
            rows::store_pack(
                connection,
                self.project,
                run.number,
                run.started_at,
                &added.contents.pack(),
            )?;
        }
        let receipt = self.receipt(&run, context, counts, &added)?;
        Ok((receipt, added.import_changes(&run)))
    }

    /// Adds the report to the parts and to the contents of its run.
    fn add(
        &self,
        connection: &mut PgConnection,
        (former, left_failed): (Option<&KnownRun>, Option<ErrorDetail>),
        mut parts: Vec<StoredPart>,
        interned: &RecordingOrdinals,
        passes: &[i32],
    ) -> Work<AddedPart<'_>> {
        let recording = self.recording;
        let mut contents = match former {
            Some(run) => RunContents::load(connection, self.project, run.number, run.started_at)?,
            None => RunContents::default(),
        };
        let slot: Vec<i16> = target::of_slot(&parts, recording)
            .map(|part| part.number)
            .collect();
        // The first part of a shard has the shard's id.
        let shard_id = target::of_slot(&parts, recording)
            .map(|part| part.shard_id)
            .next();
        let number = run::next_part(&parts)?;
        let mut changed = BTreeSet::new();
        let (mut removed, mut replaced) = (Vec::new(), None);
        if recording.replaces && !slot.is_empty() {
            contents.merge(&parts)?;
            let (tests, failed) = contents.count_of(&slot);
            replaced = Some(ReplacedResults { tests, failed });
            changed.extend(contents.remove(&slot));
            parts.retain(|part| !slot.contains(&part.number));
            removed = slot;
        }
        let id = shard_id.filter(|_| replaced.is_some()).unwrap_or(self.new_id);
        let shard_id = shard_id.unwrap_or(self.new_id);
        parts.push(run::new_part(recording, number, (id, shard_id), self.new_id));
        let tests = recording.tests.iter().zip(interned.tests.iter().copied());
        let mut executions = PartExecution::of_tests(tests, interned, number);
        executions.extend(contents.new_passes(passes, interned.tests.iter().copied().map(Some), number));
        changed.extend(executions.keys());
        contents.add(executions);
        let mut roles = contents.merge(&parts)?;
        if let (Some(error), Some(part)) = (left_failed, parts.last_mut()) {
            part.report_errors = run::errors_json(&[error]);
        }
        changed.extend(contents.repeated());
        let derived = run::set_derived(&mut parts, &contents, &roles)?;
        Ok(AddedPart {
            number,
            shard_id,
            role: roles.remove(&number).unwrap_or_default(),
            replaced,
            parts,
            derived,
            removed,
            contents,
            changed,
        })
    }

    /// Stores the run, and refreshes its former and its new branch and day.
    fn store_run(
        &self,
        connection: &mut PgConnection,
        former: Option<&KnownRun>,
        run: &NewRun,
    ) -> QueryResult<()> {
        run.store(connection)?;
        let branches: BTreeSet<String> = former
            .and_then(KnownRun::branch)
            .into_iter()
            .chain(run.branch())
            .map(str::to_owned)
            .collect();
        branch::refresh(connection, self.project, &Vec::from_iter(branches))?;
        let starts = former.map(|former| former.started_at).into_iter();
        let days: BTreeSet<At> = starts.chain([run.started_at]).map(daily_counts::day_of).collect();
        daily_counts::refresh(connection, self.project, &Vec::from_iter(days)).map(drop)
    }

    fn receipt(
        &self,
        run: &NewRun,
        context: RunContext,
        counts: Counts,
        added: &AddedPart<'_>,
    ) -> Result<ImportReceipt, StoreError> {
        let AddedPart { role, replaced, .. } = added;
        Ok(ImportReceipt {
            run_id: RunId(run.id),
            run_number: run.number,
            shard_id: RunId(added.shard_id),
            status: run.derived.outcome()?,
            counts,
            context,
            effect: match replaced {
                Some(_) => Effect::Replaced,
                None => Effect::Added,
            },
            standing: PartStanding {
                continues: role.continues,
                beside: run::senders_at(&added.parts, &role.beside)?,
                replaced: *replaced,
                unknown_claims: Vec::new(),
            },
            verdicts_changed: VerdictChanges::default(),
        })
    }
}

/// A run's parts and contents, with the report that is being stored.
struct AddedPart<'a> {
    number: i16,
    shard_id: Uuid,
    role: PartRole,
    replaced: Option<ReplacedResults>,
    /// All parts of the run.
    parts: Vec<StoredPart>,
    /// The parts whose derived values changed.
    derived: Vec<i16>,
    /// The parts that the report replaces.
    removed: Vec<i16>,
    contents: RunContents<'a>,
    /// The tests whose executions may have changed.
    changed: BTreeSet<i32>,
}

impl AddedPart<'_> {
    fn store_parts(&self, connection: &mut PgConnection, run: &NewRun) -> QueryResult<()> {
        let (project, number) = (run.project_id, run.number);
        run::delete_parts(connection, project, number, &self.removed)?;
        let (new, others): (Vec<_>, Vec<_>) = self.parts.iter().partition(|part| part.number == self.number);
        for part in new {
            run::store_part(connection, project, number, part)?;
        }
        let is_derived = |part: &&StoredPart| self.derived.contains(&part.number);
        let changed: Vec<_> = others.into_iter().filter(is_derived).collect();
        run::store_derived(connection, project, number, &changed)
    }

    fn import_changes(&self, run: &NewRun) -> ImportChanges {
        let contents = &self.contents;
        let final_result = |test| {
            let result = rows::final_result(contents.executions(test), run.started_at.0)?;
            Some((test, result))
        };
        ImportChanges {
            run: Some(run.number),
            final_results: contents.ordinals().filter_map(final_result).collect(),
            tests: self.changed.iter().copied().chain(contents.ordinals()).collect(),
            ..ImportChanges::default()
        }
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
