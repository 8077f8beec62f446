//! The rows of `result_block` and `attempt` that an import changes.

use std::collections::BTreeSet;

use assay_domain::{
    attempt::{Attachment, AttemptOutput, ErrorDetail},
    execution::TestOutcome,
    recording::RecordedAttempt,
    timestamp::Timestamp,
};
use diesel::{
    prelude::*,
    sql_types::{Array, Bool, Integer, SmallInt, Timestamptz, Uuid as SqlUuid},
};
use serde_json::Value;
use uuid::Uuid;

use super::{
    contents::{AttemptFacts, Execution, PartExecution, Position, RunContents, Source, outcome},
    intern::RecordingOrdinals,
};
use crate::{
    db::{
        column::{At, int, status_code, storable},
        schema::{attempt, attempt_texts, result_block, run_pack},
    },
    read::{
        observation::StoredFinalResult,
        pack::Pack,
        part::text_bytes,
        result_block::{FARTHEST_START_MS, ResultBlock, StoredResult},
    },
};

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
    part: i16,
    status: i16,
    timed: bool,
    message: Option<String>,
    texts: Option<i32>,
    texts_place: Option<i32>,
    execution: i32,
    is_final: bool,
    skip_reason: Option<String>,
}

/// The errors of some attempts of a part.
#[derive(Insertable)]
#[diesel(table_name = attempt_texts, treat_none_as_default_value = false)]
struct NewTexts {
    project_id: Uuid,
    started_at: At,
    run_number: i32,
    part: i16,
    number: i32,
    errors: Vec<Value>,
    /// Null for an attempt without any.
    outputs: Option<Vec<Value>>,
}

impl NewTexts {
    /// Adds the texts of an attempt.
    fn add(&mut self, errors: Value, output: Option<Value>) {
        if output.is_some() || self.outputs.is_some() {
            let all = self.outputs.get_or_insert_default();
            all.resize(self.errors.len(), Value::Null);
            all.push(output.unwrap_or_default());
        }
        self.errors.push(errors);
    }
}

/// About how many bytes the errors of one row have, unless those of one attempt are larger. A reader of one attempt
/// unpacks all of them, and lz4 refers back by 64 kB at most.
const TEXTS_BYTES: usize = 64 << 10;

/// The rows of `attempt` and `attempt_texts` to write for some tests of a run.
#[derive(Default)]
struct Changes {
    attempts: Vec<NewAttempt>,
    texts: Vec<NewTexts>,
    /// The bytes of the errors in the last row of texts.
    last_texts_bytes: usize,
    /// Stored attempts that get another position among those of their test.
    moved: Vec<(Key, Position)>,
    /// Tests whose only remaining attempt is plain, so that their result replaces it, with the part of the attempt.
    dropped: Vec<(i32, i16)>,
}

/// Deletes the results and attempts of a run, whatever they have. Texts are deleted with their part.
pub(super) fn delete(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    started_at: At,
) -> QueryResult<()> {
    diesel::delete(result_block::table)
        .filter(result_block::project_id.eq(project))
        .filter(result_block::run_number.eq(run))
        .filter(result_block::started_at.eq(started_at))
        .execute(connection)?;
    diesel::delete(attempt::table)
        .filter(attempt::project_id.eq(project))
        .filter(attempt::run_number.eq(run))
        .filter(attempt::started_at.eq(started_at))
        .execute(connection)
        .map(drop)
}

/// The position of an attempt among those of its part.
#[derive(Clone, Copy)]
struct Key {
    test: i32,
    part: i16,
    place: i32,
}

/// The run and the partition to which rows are written.
pub(super) struct RowWriter<'a> {
    pub(super) project: Uuid,
    pub(super) run: i32,
    /// The start of the run, a part that is being imported included.
    pub(super) started_at: Timestamp,
    pub(super) interned: &'a RecordingOrdinals,
}

impl RowWriter<'_> {
    /// Writes the rows of the changed tests without those of removed parts, and moves the others to the run's new start.
    /// Blocks of results that change are written again.
    pub(super) fn write(
        &self,
        connection: &mut PgConnection,
        contents: &RunContents<'_>,
        removed_parts: &[i16],
        changed: &BTreeSet<i32>,
        former_start: Option<At>,
    ) -> QueryResult<()> {
        if let Some(former) = former_start {
            self.delete_attempts(connection, removed_parts, former)?;
            if former.0 != self.started_at {
                self.shift_attempts(connection, former.0)?;
            }
        }
        let mut changes = Changes::default();
        for test in changed {
            self.rows_of_test(*test, contents.executions(*test), &mut changes);
        }
        self.store_attempts(connection, changes)?;
        let former = former_start.unwrap_or(At(self.started_at));
        self.store_blocks(connection, contents, former).map(drop)
    }

    /// Corrects the rows of a run that differ from its contents; returns whether there were any.
    pub(super) fn correct(
        &self,
        connection: &mut PgConnection,
        contents: &RunContents<'_>,
    ) -> QueryResult<bool> {
        let mut changes = Changes::default();
        for test in contents.ordinals() {
            self.rows_of_test(test, contents.executions(test), &mut changes);
        }
        let wrong_attempts = !changes.moved.is_empty() || !changes.dropped.is_empty();
        self.store_attempts(connection, changes)?;
        Ok(self.store_blocks(connection, contents, At(self.started_at))? || wrong_attempts)
    }

    /// Writes the blocks of results that differ from the stored ones, which are those of the run's former start. Returns
    /// whether there were any.
    fn store_blocks(
        &self,
        connection: &mut PgConnection,
        contents: &RunContents<'_>,
        former_start: At,
    ) -> QueryResult<bool> {
        let results: Vec<StoredResult> = contents
            .ordinals()
            .filter_map(|test| self.result(test, contents.executions(test)))
            .collect();
        let new = ResultBlock::of_results(self.project, self.run, At(self.started_at), &results);
        let stored = contents.stored_blocks();
        let outdated: Vec<i32> = stored
            .iter()
            .filter(|block| !new.contains(block))
            .map(|block| block.block)
            .collect();
        let changed: Vec<ResultBlock> = new.into_iter().filter(|block| !stored.contains(block)).collect();
        if !outdated.is_empty() {
            diesel::delete(result_block::table)
                .filter(result_block::project_id.eq(self.project))
                .filter(result_block::run_number.eq(self.run))
                .filter(result_block::started_at.eq(former_start))
                .filter(result_block::block.eq_any(&outdated))
                .execute(connection)?;
        }
        let is_changed = !changed.is_empty() || !outdated.is_empty();
        if !changed.is_empty() {
            diesel::copy_from(result_block::table)
                .from_insertable(changed)
                .execute(connection)?;
        }
        Ok(is_changed)
    }

    fn store_attempts(&self, connection: &mut PgConnection, changes: Changes) -> QueryResult<()> {
        if !changes.attempts.is_empty() {
            diesel::copy_from(attempt::table)
                .from_insertable(changes.attempts)
                .execute(connection)?;
        }
        if !changes.texts.is_empty() {
            diesel::copy_from(attempt_texts::table)
                .from_insertable(changes.texts)
                .execute(connection)?;
        }
        self.move_attempts(connection, &changes.moved)?;
        self.drop_attempts(connection, &changes.dropped)
    }

    /// Deletes the attempts of parts with their texts.
    fn delete_attempts(&self, connection: &mut PgConnection, parts: &[i16], start: At) -> QueryResult<()> {
        if parts.is_empty() {
            return Ok(());
        }
        diesel::delete(attempt::table)
            .filter(attempt::project_id.eq(self.project))
            .filter(attempt::run_number.eq(self.run))
            .filter(attempt::started_at.eq(start))
            .filter(attempt::part.eq_any(parts))
            .execute(connection)?;
        diesel::delete(attempt_texts::table)
            .filter(attempt_texts::project_id.eq(self.project))
            .filter(attempt_texts::run_number.eq(self.run))
            .filter(attempt_texts::started_at.eq(start))
            .filter(attempt_texts::part.eq_any(parts))
            .execute(connection)
            .map(drop)
    }

    /// Moves the attempts of the run to its new start, with their texts, to another partition if needed. Raw SQL, because diesel has no
    /// `CASE` over columns.
    fn shift_attempts(&self, connection: &mut PgConnection, former: Timestamp) -> QueryResult<()> {
        diesel::sql_query(
            "UPDATE attempt SET started_at = $3, occurred_at = CASE WHEN timed THEN occurred_at ELSE $3 END \
             WHERE project_id = $1 AND run_number = $2 AND started_at = $4",
        )
        .bind::<SqlUuid, _>(self.project)
        .bind::<Integer, _>(self.run)
        .bind::<Timestamptz, _>(At(self.started_at))
        .bind::<Timestamptz, _>(At(former))
        .execute(connection)?;
        diesel::update(attempt_texts::table)
            .filter(attempt_texts::project_id.eq(self.project))
            .filter(attempt_texts::run_number.eq(self.run))
            .filter(attempt_texts::started_at.eq(At(former)))
            .set(attempt_texts::started_at.eq(At(self.started_at)))
            .execute(connection)
            .map(drop)
    }

    /// The result of a test; none if no part has it any more.
    fn result(&self, test: i32, executions: &[Execution<'_>]) -> Option<StoredResult> {
        let outcome = outcome(executions)?;
        let (part, last) = final_attempt(executions, &outcome)?;
        let result = final_result(executions, self.started_at)?;
        Some(StoredResult {
            test,
            status: result.status,
            duration_ms: last.duration_ms,
            start_offset_ms: result.offset_ms,
            browser: last.browser,
            attempts: match plain(executions) {
                Some(_) => 0,
                None => int(outcome.attempts),
            },
            part,
        })
    }

    /// Adds the rows of a test's attempts.
    fn rows_of_test(&self, test: i32, executions: &[Execution<'_>], changes: &mut Changes) {
        let Some(outcome) = outcome(executions) else {
            return;
        };
        match plain(executions) {
            None => {
                for (number, execution) in (0..).zip(executions) {
                    self.rows_of_execution(test, number, execution, &outcome, changes);
                }
            }
            Some(plain) if matches!(plain.source, Source::Rows(_)) => {
                changes.dropped.push((test, plain.part));
            }
            Some(_) => {}
        }
    }

    /// Adds the rows of an execution, and the changed positions.
    fn rows_of_execution(
        &self,
        test: i32,
        number: usize,
        execution: &Execution<'_>,
        outcome: &TestOutcome,
        changes: &mut Changes,
    ) {
        let of_parts = execution.parts().flat_map(|part| {
            part.attempts
                .iter()
                .enumerate()
                .map(move |attempt| (part, attempt))
        });
        for (retry, (part, (index, facts))) in of_parts.enumerate() {
            let key = Key {
                test,
                part: part.part,
                place: part.first_place.saturating_add(int(index)),
            };
            let position = Position {
                execution: int(number),
                retry: int(retry),
                is_final: (number, retry) == (outcome.final_execution, outcome.final_retry),
            };
            match &part.source {
                Source::Result => self.add_attempt(key, position, facts, None, changes),
                Source::New(recorded) => {
                    self.add_attempt(key, position, facts, recorded.get(index).copied(), changes);
                }
                Source::Rows(former) if former.get(index) != Some(&position) => {
                    changes.moved.push((key, position));
                }
                Source::Rows(_) => {}
            }
        }
    }

    fn add_attempt(
        &self,
        key: Key,
        position: Position,
        facts: &AttemptFacts,
        recorded: Option<&RecordedAttempt>,
        changes: &mut Changes,
    ) {
        let errors = recorded
            .map(|recorded| recorded.attempt.errors.as_slice())
            .unwrap_or_default();
        let class = recorded.and_then(|recorded| recorded.class.as_ref());
        let output = recorded.and_then(|recorded| recorded.attempt.output.as_deref());
        let has_texts = !errors.is_empty() || output.is_some();
        let texts = has_texts.then(|| self.add_texts(key.part, errors, output, changes));
        let (texts, texts_place) = texts.unzip();
        changes.attempts.push(NewAttempt {
            project_id: self.project,
            started_at: At(self.started_at),
            occurred_at: At(facts.at.unwrap_or(self.started_at)),
            duration_ms: facts.duration_ms,
            run_number: self.run,
            test: key.test,
            browser: facts.browser,
            signature: class.and_then(|class| self.interned.signature(class)),
            place: key.place,
            retry: position.retry,
            part: key.part,
            status: status_code(facts.status),
            timed: facts.at.is_some(),
            message: errors
                .iter()
                .find_map(|error| error.message.as_deref())
                .map(storable),
            texts,
            texts_place,
            execution: position.execution,
            is_final: position.is_final,
            skip_reason: recorded
                .and_then(|recorded| recorded.attempt.skip_reason.as_deref())
                .map(storable),
        });
    }

    /// Adds the errors and the output of an attempt. Returns the number of their row and their place in it.
    fn add_texts(
        &self,
        part: i16,
        errors: &[ErrorDetail],
        output: Option<&AttemptOutput>,
        changes: &mut Changes,
    ) -> (i32, i32) {
        let errors = Value::Array(errors.iter().map(error_json).collect());
        let output = output.map(output_json);
        let bytes = text_bytes(&errors) + output.as_ref().map_or(0, text_bytes);
        changes.last_texts_bytes += bytes;
        let last = changes.texts.last().filter(|last| last.part == part);
        let next = last.map_or(0, |last| last.number.saturating_add(1));
        if last.is_none() || changes.last_texts_bytes > TEXTS_BYTES {
            changes.last_texts_bytes = bytes;
            changes.texts.push(NewTexts {
                project_id: self.project,
                started_at: At(self.started_at),
                run_number: self.run,
                part,
                number: next,
                errors: Vec::new(),
                outputs: None,
            });
        }
        let place = changes.texts.last_mut().map_or(0, |texts| {
            texts.add(errors, output);
            int(texts.errors.len())
        });
        (changes.texts.last().map_or(0, |texts| texts.number), place)
    }

    fn move_attempts(&self, connection: &mut PgConnection, moved: &[(Key, Position)]) -> QueryResult<()> {
        if moved.is_empty() {
            return Ok(());
        }
        let column = |of: fn(&(Key, Position)) -> i32| moved.iter().map(of).collect::<Vec<i32>>();
        let parts: Vec<i16> = moved.iter().map(|(key, _)| key.part).collect();
        let final_ones: Vec<bool> = moved.iter().map(|(_, position)| position.is_final).collect();
        // Raw SQL, because diesel has no update from arrays.
        diesel::sql_query(
            "UPDATE attempt SET execution = moved.execution, retry = moved.retry, is_final = moved.is_final \
             FROM unnest($3, $4, $5, $6, $7, $8) AS moved (test, part, place, execution, retry, is_final) \
             WHERE attempt.project_id = $1 AND attempt.run_number = $2 AND attempt.started_at = $9 \
                 AND attempt.test = moved.test \
                 AND attempt.part = moved.part AND attempt.place = moved.place",
        )
        .bind::<SqlUuid, _>(self.project)
        .bind::<Integer, _>(self.run)
        .bind::<Array<Integer>, _>(column(|(key, _)| key.test))
        .bind::<Array<SmallInt>, _>(parts)
        .bind::<Array<Integer>, _>(column(|(key, _)| key.place))
        .bind::<Array<Integer>, _>(column(|(_, position)| position.execution))
        .bind::<Array<Integer>, _>(column(|(_, position)| position.retry))
        .bind::<Array<Bool>, _>(final_ones)
        .bind::<Timestamptz, _>(At(self.started_at))
        .execute(connection)
        .map(drop)
    }

    fn drop_attempts(&self, connection: &mut PgConnection, dropped: &[(i32, i16)]) -> QueryResult<()> {
        if dropped.is_empty() {
            return Ok(());
        }
        let (tests, parts): (Vec<i32>, Vec<i16>) = dropped.iter().copied().unzip();
        // Raw SQL, because diesel has no rows from arrays.
        diesel::sql_query(
            "DELETE FROM attempt USING unnest($4, $5) AS dropped (test, part) \
             WHERE attempt.project_id = $1 AND attempt.run_number = $2 AND attempt.started_at = $3 \
                 AND attempt.test = dropped.test AND attempt.part = dropped.part",
        )
        .bind::<SqlUuid, _>(self.project)
        .bind::<Integer, _>(self.run)
        .bind::<Timestamptz, _>(At(self.started_at))
        .bind::<Array<Integer>, _>(tests)
        .bind::<Array<SmallInt>, _>(parts)
        .execute(connection)
        .map(drop)
    }
}

/// The only attempt of a test, if its result describes it completely.
fn plain<'e, 'a>(executions: &'e [Execution<'a>]) -> Option<&'e PartExecution<'a>> {
    match executions {
        [only] => only.plain(),
        _ => None,
    }
}

/// The result of a test in a run that started at this time; none if no part has it.
pub(super) fn final_result(
    executions: &[Execution<'_>],
    run_started_at: Timestamp,
) -> Option<StoredFinalResult> {
    let (_, last) = final_attempt(executions, &outcome(executions)?)?;
    Some(StoredFinalResult {
        status: status_code(last.status),
        // A start days away from the run's is an error of the report.
        offset_ms: (last.at)
            .and_then(|at| i32::try_from(at.since_ms(run_started_at)).ok())
            .filter(|offset| (-FARTHEST_START_MS..=FARTHEST_START_MS).contains(offset)),
    })
}

/// The final attempt with this outcome, and its part.
fn final_attempt<'e>(
    executions: &'e [Execution<'_>],
    outcome: &TestOutcome,
) -> Option<(i16, &'e AttemptFacts)> {
    executions
        .get(outcome.final_execution)?
        .attempts()
        .nth(outcome.final_retry)
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

/// The output of an attempt as JSON that Postgres can hold.
fn output_json(output: &AttemptOutput) -> Value {
    let text = |text: &Option<String>| text.as_deref().map(storable);
    let attachment = |attachment: &Attachment| Attachment {
        name: storable(&attachment.name),
        kind: text(&attachment.kind),
        path: text(&attachment.path),
        url: text(&attachment.url),
    };
    serde_json::json!(AttemptOutput {
        attachments: output.attachments.iter().map(attachment).collect(),
        console: text(&output.console),
        timeout_ms: output.timeout_ms,
    })
}

/// Stores a run's pack, in the place of its former one if there is any.
pub(crate) fn store_pack(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    started_at: At,
    pack: &Pack,
) -> QueryResult<usize> {
    let bytes = pack.encode();
    diesel::insert_into(run_pack::table)
        .values((
            run_pack::project_id.eq(project),
            run_pack::run_number.eq(run),
            run_pack::started_at.eq(started_at),
            run_pack::pack.eq(&bytes),
        ))
        .on_conflict((run_pack::project_id, run_pack::run_number))
        .do_update()
        .set((run_pack::started_at.eq(started_at), run_pack::pack.eq(&bytes)))
        .execute(connection)
}
