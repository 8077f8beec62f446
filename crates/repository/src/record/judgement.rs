//! The judgement after an import: the last import judges.
//!
//! If another import stored a report meanwhile, an import leaves the judgement to that one. Waiting imports get the
//! project's lock in the order of their arrival, so of forty only the last one judges. It reads and judges without the
//! lock, and takes the lock again to store the changes.
//!
//! `project.judged` is the value of `project.observed` at the last judgement. If an import is killed before it judges,
//! the two differ, so its repetition or the next import judges.

use assay_domain::{
    id::ProjectId,
    recording::VerdictChanges,
    store::RecordError,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Judge},
};
use diesel::PgConnection;
use uuid::Uuid;

use super::{
    turn::LockedProject,
    work::{ImportStart, Work},
};
use crate::{
    Database,
    db::{
        column::At,
        pool::{Read, in_one_state},
    },
    read::observation::{self, Mark},
    record::verdict::{self, EdgeRecording, ImportChanges, ProjectJudgement},
};

/// The time for which imports that follow each other may postpone a judgement, in milliseconds.
const LONGEST_POSTPONEMENT_MS: i64 = 60_000;
/// The number of judgements without the lock that other imports may invalidate. The next one holds the lock.
const UNLOCKED_ATTEMPTS: u32 = 3;

/// The next step of an import, after it checked whether another import followed.
enum NextStep {
    /// Another import judges, or the judgement is done.
    Finished(VerdictChanges),
    /// This import is the last one and judges this state.
    Judge(Mark),
}

/// The judgement that is due after an import.
#[derive(Debug)]
pub(super) struct PendingJudgement {
    pub(super) project: Uuid,
    pub(super) began: ImportStart,
    /// The time as of which the project is judged, if this import is the last one.
    pub(super) as_of: Timestamp,
    /// The value of `project.observed` after the report was stored.
    pub(super) observed: Uuid,
    /// The changes of the report, which the judgement needs if this import is the last one.
    pub(super) import_changes: ImportChanges,
    /// The start of the run, if its report made the project outgrow the statistics of Postgres.
    pub(super) outgrown: Option<At>,
}

impl PendingJudgement {
    /// Judges the project, unless another import follows. Returns what changed.
    pub(super) fn judge(
        &self,
        database: &Database,
        judge: &dyn Judge,
        edges: EdgeRecording,
    ) -> Result<VerdictChanges, RecordError> {
        let mut invalidations = 0;
        loop {
            let may_hold_lock = invalidations >= UNLOCKED_ATTEMPTS;
            let next_step = database.in_turn(
                "judging a project",
                ProjectId(self.project),
                |connection, locked| self.next_step(connection, &locked, judge, (may_hold_lock, edges)),
            )?;
            let mark = match next_step {
                NextStep::Finished(changes) => return Ok(changes),
                NextStep::Judge(mark) => mark,
            };
            if let Some(changes) = self.judge_without_lock(database, judge, mark, edges)? {
                return Ok(changes);
            }
            invalidations += 1;
        }
    }

    /// Checks whether this import is the last one. Another one judges only if the project was never judged or if
    /// judgements were postponed for too long, and it judges under the lock. The last one judges under the lock by
    /// `may_hold_lock`, which is set if its judgements without the lock were invalidated several times.
    fn next_step(
        &self,
        connection: &mut PgConnection,
        locked: &LockedProject,
        judge: &dyn Judge,
        (may_hold_lock, edges): (bool, EdgeRecording),
    ) -> Work<NextStep> {
        let mark = locked.mark;
        if mark.is_judged() {
            return Ok(NextStep::Finished(VerdictChanges::default()));
        }
        let is_last = mark.observed == self.observed;
        if is_last && !may_hold_lock {
            return Ok(NextStep::Judge(mark));
        }
        let as_of = self.began.as_of(true);
        if !is_last && mark.judged.is_some() && !is_overdue(&mark, as_of) {
            return Ok(NextStep::Finished(VerdictChanges::default()));
        }
        let update = verdict::judge(
            connection,
            self.project,
            judge,
            as_of,
            &ImportChanges::everything(),
            edges,
        )?;
        Ok(NextStep::Finished(update.changes(connection, self.project)?))
    }

    /// Judges the project in the state of `mark`, and stores the verdicts. `None` if the state has changed meanwhile.
    fn judge_without_lock(
        &self,
        database: &Database,
        judge: &dyn Judge,
        mark: Mark,
        edges: EdgeRecording,
    ) -> Result<Option<VerdictChanges>, RecordError> {
        let (project, as_of) = (self.project, self.as_of);
        let from = as_of.plus_days(-ENGINE_WINDOW_DAYS);
        let history = in_state(database, "reading runs", project, mark, |connection| {
            observation::load(connection, project, from, as_of)
        })?;
        let Some(history) = history else { return Ok(None) };
        let mut judged = Some(ProjectJudgement::of(history, judge, as_of)?);
        let update = in_state(database, "reading verdicts", project, mark, |connection| {
            // After a lost connection the comparison is used up, so the second attempt counts as invalidated.
            let judged = judged.take();
            judged
                .map(|judged| judged.compare(connection, project, &self.import_changes))
                .transpose()
        })?;
        let Some(update) = update.flatten() else {
            return Ok(None);
        };
        database.in_turn(
            "storing verdicts",
            ProjectId(self.project),
            |connection, locked| {
                if locked.mark != mark {
                    return Ok(None);
                }
                update.store(connection, project, edges)?;
                Ok(Some(update.changes(connection, project)?))
            },
        )
    }
}

/// Reads in one transaction, if the project is in the state of `mark`; else `None`.
fn in_state<T>(
    database: &Database,
    doing: &'static str,
    project: Uuid,
    mark: Mark,
    mut read: impl FnMut(&mut PgConnection) -> Read<T>,
) -> Result<Option<T>, RecordError> {
    let mut work = |connection: &mut PgConnection| match Mark::find(connection, project)? {
        Some(current) if current == mark => read(connection).map(Some),
        Some(_) | None => Ok(None),
    };
    database.with_reconnects(|| {
        let read = database.on_primary(doing, |connection| in_one_state(connection, &mut work));
        read.map_err(RecordError::Store)
    })
}

/// Whether judgements were postponed for too long.
fn is_overdue(mark: &Mark, now: Timestamp) -> bool {
    mark.evaluated_at
        .is_none_or(|at| now.since_ms(at.0) > LONGEST_POSTPONEMENT_MS)
}
