//! An import's turn: waits in rounds for the lock of the project's row.

use std::{
    thread,
    time::{Duration, Instant},
};

use assay_domain::{
    id::ProjectId,
    store::{RecordError, StoreError},
};
use diesel::{
    connection::SimpleConnection,
    prelude::*,
    result::{DatabaseErrorKind, Error as QueryError},
};

use super::{intern::Numbers, work::Work};
use crate::{
    Database, WaitingFor,
    db::{pool::WorkError, schema::project},
    read::observation::Mark,
};

/// The first pause before a reconnection. Each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// The row of a locked project.
#[derive(Queryable)]
pub(super) struct LockedProject {
    pub(super) stable_branch: String,
    pub(super) release_branches: Vec<String>,
    pub(super) numbers: Numbers,
    pub(super) mark: Mark,
    /// Whether it has a renames file.
    pub(super) has_renames: bool,
}

/// The reason why an import did not get its turn.
enum Interruption {
    /// Another import had the lock for the whole round.
    StillLocked,
    Failed(RecordError),
}

impl From<StoreError> for Interruption {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl Database {
    /// Runs `work` in a transaction that holds the project's lock. Reports after each round of waiting how long it has
    /// waited, and gives up after the time that one statement may take.
    pub(super) fn in_turn<T>(
        &self,
        doing: &'static str,
        project: ProjectId,
        mut work: impl FnMut(&mut PgConnection, LockedProject) -> Work<T>,
    ) -> Result<T, RecordError> {
        let mut attempt = || {
            let outcome = self.in_transaction(doing, |connection| {
                let locked = self.lock_for_a_round(connection, project)?;
                work(connection, locked).map_err(|error| match error {
                    WorkError::Query(error) => WorkError::Query(error),
                    WorkError::Refused(error) => WorkError::Refused(Interruption::Failed(error)),
                })
            });
            match outcome {
                Ok(finished) => Ok(Some(finished)),
                Err(Interruption::StillLocked) => Ok(None),
                Err(Interruption::Failed(error)) => Err(error),
            }
        };
        let began = Instant::now();
        loop {
            if let Some(finished) = self.with_reconnects(&mut attempt)? {
                return Ok(finished);
            }
            if began.elapsed() >= self.options.statement_timeout {
                return Err(RecordError::Store(StoreError::Failed {
                    doing: "waiting for another import into the project",
                    source: "the other import did not end in time".into(),
                }));
            }
            self.report_waiting(WaitingFor::OtherImport, began.elapsed());
        }
    }

    /// Runs work, and again with backoff while the database is unreachable, for at most `PoolOptions::reconnect_for`.
    pub(super) fn with_reconnects<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match attempt() {
                Err(RecordError::Store(StoreError::Unreachable(_)))
                    if began.elapsed() + pause <= self.options.reconnect_for =>
                {
                    self.report_waiting(WaitingFor::Database, began.elapsed());
                    thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                outcome => return outcome,
            }
        }
    }

    fn report_waiting(&self, waiting_for: WaitingFor, waited: Duration) {
        if let Some(listener) = &self.waiting {
            listener(waiting_for, waited);
        }
    }

    /// Locks the project, waiting no longer than a round.
    fn lock_for_a_round(
        &self,
        connection: &mut PgConnection,
        project: ProjectId,
    ) -> Result<LockedProject, WorkError<Interruption>> {
        let round = self.options.lock_round;
        let ms = round.as_millis().max(1);
        // No `set_config`: a distributed database passes only this statement on to the node that has the row.
        connection.batch_execute(&format!("SET LOCAL lock_timeout = {ms}"))?;
        let began = Instant::now();
        let locked = match locked(connection, project) {
            // Diesel has no name for this error, and its text is in the language of the server.
            Err(QueryError::DatabaseError(DatabaseErrorKind::Unknown, _)) if began.elapsed() >= round => {
                return Err(WorkError::Refused(Interruption::StillLocked));
            }
            outcome => outcome?,
        };
        connection.batch_execute("SET LOCAL lock_timeout TO DEFAULT")?;
        let missing = || Interruption::Failed(RecordError::NoProject(project));
        locked.ok_or_else(|| WorkError::Refused(missing()))
    }
}

/// Locks the project; `None` if it does not exist.
fn locked(connection: &mut PgConnection, of: ProjectId) -> QueryResult<Option<LockedProject>> {
    project::table
        .filter(project::id.eq(of.0))
        .filter(project::deleted_at.is_null())
        .for_no_key_update()
        .select((
            project::stable_branch,
            project::release_branches,
            (
                project::runs,
                project::tests,
                project::signatures,
                project::browsers,
            ),
            (project::observed, project::judged, project::evaluated_at),
            project::renames_text.is_not_null(),
        ))
        .first(connection)
        .optional()
}
