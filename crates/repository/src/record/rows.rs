//! The rows of `result` and `attempt` that an import changes.

use std::collections::BTreeSet;

use assay_domain::{attempt::ErrorDetail, recording::RecordedAttempt, timestamp::Timestamp};
use diesel::{
    ExpressionMethods, Insertable, PgConnection, QueryResult, RunQueryDsl,
    prelude::ExecuteCopyFromDsl,
    sql_types::{Array, BigInt, Integer, SmallInt, Timestamptz, Uuid as SqlUuid},
};
use serde_json::Value;
use uuid::Uuid;

use super::{
    contents::{Brief, Execution, RunContents, Source},
    intern::Interned,
};
use crate::{
    column::{At, int, status_code, storable},
    observation::Ended,
    schema::{attempt, result},
};

#[derive(Insertable)]
#[diesel(table_name = result, treat_none_as_default_value = false)]
struct NewResult {
    project_id: Uuid,
    started_at: At,
    duration_ms: Option<i64>,
    run_number: i32,
    test: i32,
    start_offset_ms: Option<i32>,
    browser: i32,
    attempts: i32,
    slot: i16,
    status: i16,
}

#[derive(Insertable)]
#[diesel(table_name = attempt, treat_none_as_default_value = false)]
struct NewAttempt {
    project_id: Uuid,
    started_at: At,
    occurred_at: At,
    duration_ms: Option<i64>,
    run_number: i32,
    test: i32,
    browser: i32,
    signature: Option<i32>,
    place: i32,
    retry: i32,
    slot: i16,
    status: i16,
    timed: bool,
    message: Option<String>,
    errors: Option<Value>,
}

/// Attempts that are already stored and get another place among those of their test, column by column.
#[derive(Default)]
struct Moved {
    tests: Vec<i32>,
    slots: Vec<i16>,
    places: Vec<i32>,
    retries: Vec<i32>,
}

/// Where an import writes.
pub(super) struct Place<'a> {
    pub(super) project: Uuid,
    pub(super) run: i32,
    /// The slot of the shard that is imported.
    pub(super) slot: i16,
    /// The start of the run, this shard included.
    pub(super) started_at: Timestamp,
    pub(super) interned: &'a Interned,
}

impl Place<'_> {
    /// Writes the rows of the tests that changed, and moves the others along with the run's start.
    pub(super) fn write(
        &self,
        connection: &mut PgConnection,
        contents: &RunContents<'_>,
        changed: &BTreeSet<i32>,
        former_start: Option<At>,
    ) -> QueryResult<()> {
        if let Some(former) = former_start {
            self.delete(connection, changed, former)?;
            if former.0 != self.started_at {
                self.shift(connection, former.0)?;
            }
        }
        let (mut results, mut attempts, mut moved) = (Vec::new(), Vec::new(), Moved::default());
        for test in changed {
            let executions = contents.executions(*test);
            results.extend(self.rows_of_test(*test, executions, &mut attempts, &mut moved));
        }
        if !results.is_empty() {
            diesel::copy_from(result::table)
                .from_insertable(results)
                .execute(connection)?;
        }
        if !attempts.is_empty() {
            diesel::copy_from(attempt::table)
                .from_insertable(attempts)
                .execute(connection)?;
        }
        self.move_attempts(connection, &moved)
    }

    fn delete(&self, connection: &mut PgConnection, changed: &BTreeSet<i32>, former: At) -> QueryResult<()> {
        let changed: Vec<i32> = changed.iter().copied().collect();
        // By hand, because the query language has no rows from arrays; a list of very many tests would be gone through
        // for each row.
        diesel::sql_query(
            "DELETE FROM result USING unnest($4) AS changed (test) \
             WHERE result.project_id = $1 AND result.run_number = $2 AND result.started_at = $3 \
                 AND result.test = changed.test",
        )
        .bind::<SqlUuid, _>(self.project)
        .bind::<Integer, _>(self.run)
        .bind::<Timestamptz, _>(former)
        .bind::<Array<Integer>, _>(changed)
        .execute(connection)?;
        diesel::delete(attempt::table)
            .filter(attempt::project_id.eq(self.project))
            .filter(attempt::run_number.eq(self.run))
            .filter(attempt::started_at.eq(former))
            .filter(attempt::slot.eq(self.slot))
            .execute(connection)?;
        Ok(())
    }

    /// Moves the rows of the run along with its start, from one partition to another where it must be. By hand, because the query language has no `CASE` over columns;
    /// an offset that would no longer fit becomes unknown.
    fn shift(&self, connection: &mut PgConnection, former: Timestamp) -> QueryResult<()> {
        diesel::sql_query(
            "UPDATE result SET started_at = $3, start_offset_ms = CASE \
                 WHEN start_offset_ms + $4 BETWEEN -2147483648 AND 2147483647 THEN start_offset_ms + $4 END \
             WHERE project_id = $1 AND run_number = $2 AND started_at = $5",
        )
        .bind::<SqlUuid, _>(self.project)
        .bind::<Integer, _>(self.run)
        .bind::<Timestamptz, _>(At(self.started_at))
        .bind::<BigInt, _>(former.since_ms(self.started_at))
        .bind::<Timestamptz, _>(At(former))
        .execute(connection)?;
        diesel::sql_query(
            "UPDATE attempt SET started_at = $3, occurred_at = CASE WHEN timed THEN occurred_at ELSE $3 END \
             WHERE project_id = $1 AND run_number = $2 AND started_at = $4",
        )
        .bind::<SqlUuid, _>(self.project)
        .bind::<Integer, _>(self.run)
        .bind::<Timestamptz, _>(At(self.started_at))
        .bind::<Timestamptz, _>(At(former))
        .execute(connection)?;
        Ok(())
    }

    /// The row of a test, none where no shard has it any more; its attempts that are yet to be stored, and those that
    /// are to be moved, are added to theirs.
    fn rows_of_test(
        &self,
        test: i32,
        executions: &[Execution<'_>],
        attempts: &mut Vec<NewAttempt>,
        moved: &mut Moved,
    ) -> Option<NewResult> {
        let last = executions.last()?;
        let final_attempt = last.attempts.last()?;
        let ended = ended(executions, self.started_at)?;
        let plain = matches!(executions, [only] if only.is_plain());
        let mut retry = 0;
        if !plain {
            for execution in executions {
                retry = self.rows_of_execution(test, execution, retry, attempts, moved);
            }
        }
        Some(NewResult {
            project_id: self.project,
            started_at: At(self.started_at),
            duration_ms: final_attempt.duration_ms,
            run_number: self.run,
            test,
            start_offset_ms: ended.offset_ms,
            browser: final_attempt.browser,
            attempts: retry,
            slot: last.slot,
            status: ended.status,
        })
    }

    /// Adds the rows of an execution, whose first attempt is the test's `retry`-th, and returns the next one's place.
    fn rows_of_execution(
        &self,
        test: i32,
        execution: &Execution<'_>,
        mut retry: i32,
        attempts: &mut Vec<NewAttempt>,
        moved: &mut Moved,
    ) -> i32 {
        for (place, brief) in execution.attempts.iter().enumerate() {
            let at = (test, execution.slot, int(place), retry);
            match &execution.source {
                Source::Result => attempts.push(self.attempt(at, brief, None)),
                Source::New(recorded) => {
                    attempts.push(self.attempt(at, brief, recorded.get(place).copied()));
                }
                Source::Rows(former) if former.get(place) != Some(&retry) => moved.push(at),
                Source::Rows(_) => {}
            }
            retry += 1;
        }
        retry
    }

    fn attempt(
        &self,
        (test, slot, place, retry): (i32, i16, i32, i32),
        brief: &Brief,
        recorded: Option<&RecordedAttempt>,
    ) -> NewAttempt {
        let errors = recorded
            .map(|recorded| recorded.attempt.errors.as_slice())
            .unwrap_or_default();
        let class = recorded.and_then(|recorded| recorded.class.as_ref());
        NewAttempt {
            project_id: self.project,
            started_at: At(self.started_at),
            occurred_at: At(brief.at.unwrap_or(self.started_at)),
            duration_ms: brief.duration_ms,
            run_number: self.run,
            test,
            browser: brief.browser,
            signature: class.and_then(|class| self.interned.signature(class)),
            place,
            retry,
            slot,
            status: status_code(brief.status),
            timed: brief.at.is_some(),
            message: errors
                .iter()
                .find_map(|error| error.message.as_deref())
                .map(storable),
            errors: (!errors.is_empty()).then(|| Value::Array(errors.iter().map(error_json).collect())),
        }
    }

    fn move_attempts(&self, connection: &mut PgConnection, moved: &Moved) -> QueryResult<()> {
        if moved.tests.is_empty() {
            return Ok(());
        }
        // By hand, because the query language has no update from arrays.
        diesel::sql_query(
            "UPDATE attempt SET retry = moved.retry \
             FROM unnest($3, $4, $5, $6) AS moved (test, slot, place, retry) \
             WHERE attempt.project_id = $1 AND attempt.run_number = $2 AND attempt.started_at = $7 \
                 AND attempt.test = moved.test \
                 AND attempt.slot = moved.slot AND attempt.place = moved.place",
        )
        .bind::<SqlUuid, _>(self.project)
        .bind::<Integer, _>(self.run)
        .bind::<Array<Integer>, _>(&moved.tests)
        .bind::<Array<SmallInt>, _>(&moved.slots)
        .bind::<Array<Integer>, _>(&moved.places)
        .bind::<Array<Integer>, _>(&moved.retries)
        .bind::<Timestamptz, _>(At(self.started_at))
        .execute(connection)
        .map(drop)
    }
}

/// How a test ended in a run that started at this time: as its final attempt did; nothing where no shard has it.
pub(super) fn ended(executions: &[Execution<'_>], run_started_at: Timestamp) -> Option<Ended> {
    let last = executions.last()?.attempts.last()?;
    Some(Ended {
        status: status_code(last.status),
        // A start weeks away from the run's is none that could be meant.
        offset_ms: last
            .at
            .and_then(|at| i32::try_from(at.since_ms(run_started_at)).ok()),
    })
}

impl Moved {
    fn push(&mut self, (test, slot, place, retry): (i32, i16, i32, i32)) {
        self.tests.push(test);
        self.slots.push(slot);
        self.places.push(place);
        self.retries.push(retry);
    }
}

/// An error as JSON that Postgres can hold.
pub(super) fn error_json(error: &ErrorDetail) -> Value {
    let text = |text: &Option<String>| text.as_deref().map(storable);
    let mut error = ErrorDetail {
        message: text(&error.message),
        stack: text(&error.stack),
        snippet: text(&error.snippet),
        location: error.location.clone(),
    };
    if let Some(location) = &mut error.location {
        location.file = storable(&location.file);
    }
    serde_json::json!(error)
}
