//! Stores the decision of a gate with an upload.

use std::collections::HashSet;

use assay_domain::{
    decision::{DecisionError, DecisionReceipt, ExcusedTest, GateDecision, StoredDecision},
    id::RunId,
    recording::Effect,
    rules::RecordingRules,
    store::StoreError,
    timestamp::Timestamp,
};
use diesel::prelude::*;
use serde_json::Value;
use uuid::Uuid;

use super::{intern::shown_tests, run::first_part_at};
use crate::{
    db::{
        column::{At, storable},
        pool::WorkError,
        schema::{part, run, upload},
    },
    read::{decision, result_block},
};

type Work<T> = Result<T, WorkError<DecisionError>>;

/// Number, id, whether it counts in verdicts, start.
type TargetRun = (i32, Uuid, bool, At);

/// Stores a decision with the newest upload of its run or shard.
pub(crate) fn store_decision(
    connection: &mut PgConnection,
    project: Uuid,
    decision: &GateDecision,
    rules: RecordingRules,
    now: Timestamp,
) -> Work<DecisionReceipt> {
    let refused = |error: DecisionError| WorkError::Refused(error);
    let run = target_run(connection, project, decision)?.ok_or_else(|| refused(DecisionError::NoRun))?;
    let (run_number, id, counts_in_verdicts, started_at) = run;
    rules
        .check_decision(counts_in_verdicts)
        .and_then(|()| rules.check_open(run_number, first_part_at(id), now))
        .map_err(|violation| refused(violation.into()))?;
    let mut uploads = upload::table
        .filter(upload::project_id.eq(project))
        .filter(upload::run_number.eq(run_number))
        .order((upload::at.desc(), upload::id.desc()))
        .select((upload::at, upload::id, upload::decision))
        .into_boxed();
    if let Some(RunId(shard)) = decision.shard_id {
        uploads = uploads.filter(upload::shard_id.eq(shard));
    }
    let newest: Option<(At, Uuid, Option<Value>)> = uploads.first(connection).optional()?;
    let (at, upload_id, former) = newest.ok_or_else(|| refused(DecisionError::NoUpload { run_number }))?;
    check_tests(connection, project, (run_number, started_at), &decision.excused)?;

    let new = StoredDecision {
        decided_at: now,
        whole_run: decision.shard_id.is_none(),
        outcome: decision.outcome,
        failed: decision.failed,
        excused: decision.excused.iter().map(storable_test).collect(),
    };
    let former = former.as_ref().map(decision::stored).transpose()?;
    let receipt = |effect| DecisionReceipt {
        run_id: RunId(id),
        run_number,
        effect,
    };
    let effect = match former {
        Some(former) if former.is_same_as(&new) => return Ok(receipt(Effect::Unchanged)),
        Some(_) => Effect::Replaced,
        None => Effect::Added,
    };
    let value = serde_json::to_value(&new).map_err(|error| StoreError::Failed {
        doing: "storing a decision",
        source: error.into(),
    })?;
    diesel::update(upload::table)
        .filter(upload::project_id.eq(project))
        .filter(upload::at.eq(at))
        .filter(upload::id.eq(upload_id))
        .set(upload::decision.eq(value))
        .execute(connection)?;
    Ok(receipt(effect))
}

/// The run that a decision names; none if there is none, or if it has no such shard.
fn target_run(
    connection: &mut PgConnection,
    project: Uuid,
    decision: &GateDecision,
) -> Work<Option<TargetRun>> {
    let ids: Vec<Uuid> = [Some(decision.run_id), decision.shard_id]
        .into_iter()
        .flatten()
        .map(|RunId(id)| id)
        .collect();
    let numbers: Vec<(Uuid, i32)> = part::table
        .filter(part::project_id.eq(project))
        .filter(part::id.eq_any(&ids))
        .select((part::id, part::run_number))
        .load(connection)?;
    let number_of = |id: &Uuid| {
        let row = numbers.iter().find(|(part, _)| part == id);
        row.map(|(_, number)| *number)
    };
    let Some(number) = ids.first().and_then(number_of) else {
        return Ok(None);
    };
    if ids.iter().any(|id| number_of(id) != Some(number)) {
        return Ok(None);
    }
    let run = run::table
        .filter(run::project_id.eq(project))
        .filter(run::number.eq(number))
        .select((run::number, run::id, run::counts_in_verdicts, run::started_at))
        .first(connection)
        .optional()?;
    Ok(run)
}

/// Checks that the run has a result of each excused test.
fn check_tests(
    connection: &mut PgConnection,
    project: Uuid,
    (run_number, started_at): (i32, At),
    excused: &[ExcusedTest],
) -> Work<()> {
    let tests: Vec<(String, Option<String>)> = excused
        .iter()
        .map(|test| (storable(&test.test_name), test.file_path.as_deref().map(storable)))
        .collect();
    let ordinals = shown_tests(connection, project, &tests)?;
    let ran: HashSet<i32> = result_block::results_of_run(connection, project, run_number, started_at, None)
        .map_err(WorkError::widened)?
        .into_iter()
        .map(|result| result.test)
        .collect();
    let did_run = |ordinal: &Option<i32>| ordinal.is_some_and(|ordinal| ran.contains(&ordinal));
    match ordinals
        .iter()
        .zip(excused)
        .find(|(ordinal, _)| !did_run(ordinal))
    {
        None => Ok(()),
        Some((_, test)) => Err(WorkError::Refused(DecisionError::NoTest {
            run_number,
            test_name: test.test_name.chars().take(200).collect(),
        })),
    }
}

/// An excused test with texts that Postgres stores.
fn storable_test(test: &ExcusedTest) -> ExcusedTest {
    ExcusedTest {
        test_name: storable(&test.test_name),
        file_path: test.file_path.as_deref().map(storable),
        cause: test.cause,
        mine: test.mine,
        reason: storable(&test.reason),
    }
}
