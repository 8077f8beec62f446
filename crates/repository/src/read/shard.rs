//! Shards of a run.

use std::collections::HashMap;

use assay_domain::{
    attempt::{ErrorDetail, ShardTag},
    id::RunId,
    recording::Sender,
    run::{RunState, Shard},
    store::StoreError,
};
use diesel::{
    ExpressionMethods, PgConnection, QueryDsl, QueryResult, Queryable, RunQueryDsl, Selectable,
    SelectableHelper, define_sql_function,
    pg::{Pg, PgRowByRowLoadingMode},
    sql_types::Jsonb,
};
use serde::Deserialize as _;
use serde_json::Value;
use uuid::Uuid;

use crate::db::{
    column::{At, corrupt, count, optional_word, word},
    pool::Read,
    schema::shard,
    sql_statement::SqlStatement,
};

/// A shard, as stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = shard, check_for_backend(Pg))]
pub(crate) struct StoredShard {
    pub(crate) slot: i16,
    pub(crate) id: Uuid,
    pub(crate) index: Option<i32>,
    pub(crate) content: Vec<u8>,
    pub(crate) state: String,
    pub(crate) status: Option<String>,
    pub(crate) started_at: At,
    pub(crate) finished_at: Option<At>,
    pub(crate) expected: Option<i32>,
    pub(crate) report_errors: serde_json::Value,
    pub(crate) sender_job: Option<String>,
    pub(crate) sender_runner: Option<String>,
    pub(crate) import_id: Option<Uuid>,
}

impl StoredShard {
    /// The job that sent it.
    pub(crate) fn sender(&self) -> Sender {
        Sender {
            job: self.sender_job.clone(),
            runner: self.sender_runner.clone(),
        }
    }
}

/// The shards of a run, by index.
pub(crate) fn of_run(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
) -> QueryResult<Vec<StoredShard>> {
    shard::table
        .filter(shard::project_id.eq(project))
        .filter(shard::run_number.eq(run))
        .order((shard::index.asc(), shard::slot.asc()))
        .select(StoredShard::as_select())
        .load(connection)
}

/// A shard, as the run detail needs it.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = shard, check_for_backend(Pg))]
pub(crate) struct ShardSummary {
    slot: i16,
    id: Uuid,
    index: Option<i32>,
    state: String,
    status: Option<String>,
    /// How many errors its report has that belong to no test.
    #[diesel(select_expression = jsonb_array_length(shard::report_errors))]
    report_errors: i32,
}

define_sql_function! {
    fn jsonb_array_length(list: Jsonb) -> diesel::sql_types::Integer;
}

/// The shards of a run without their errors, by index.
pub(crate) fn summaries_of_run(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
) -> QueryResult<Vec<ShardSummary>> {
    shard::table
        .filter(shard::project_id.eq(project))
        .filter(shard::run_number.eq(run))
        .order((shard::index.asc(), shard::slot.asc()))
        .select(ShardSummary::as_select())
        .load(connection)
}

/// Most bytes of errors that belong to no test in the detail of a run.
const MOST_ERROR_BYTES: usize = 1 << 20;

/// The first errors of a run's reports that belong to no test, and how many more there are.
pub(crate) fn report_errors(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    shards: &[ShardSummary],
) -> Read<(Vec<ErrorDetail>, u32)> {
    let all: i64 = shards.iter().map(|shard| i64::from(shard.report_errors)).sum();
    let mut errors = Vec::new();
    if all > 0 {
        let rows = SqlStatement::<Jsonb>::new(
            "SELECT error.value FROM shard CROSS JOIN LATERAL jsonb_array_elements(shard.report_errors) \
             WITH ORDINALITY AS error (value, place) WHERE shard.project_id = ",
        )
        .bind(project)
        .sql(" AND shard.run_number = ")
        .bind(run)
        .sql(" ORDER BY shard.index, shard.slot, error.place")
        .load_iter::<Value, PgRowByRowLoadingMode>(connection)?;
        let mut bytes_left = Some(MOST_ERROR_BYTES);
        for row in rows {
            let value = row?;
            bytes_left = bytes_left.and_then(|bytes_left| bytes_left.checked_sub(text_bytes(&value)));
            if bytes_left.is_some() {
                let error = ErrorDetail::deserialize(&value);
                errors.push(error.map_err(|_| corrupt("error", &value.to_string()))?);
            }
        }
    }
    let shown_count = i64::try_from(errors.len()).unwrap_or(i64::MAX);
    Ok((errors, count(all.saturating_sub(shown_count))?))
}

/// How many bytes the texts of a JSON value have.
pub(crate) fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.values().map(text_bytes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// How many shards a run has at least: the number that they name, or the highest index, as shards are numbered from 1.
pub(crate) fn expected(declared: Option<i32>, indices: impl IntoIterator<Item = Option<i32>>) -> i32 {
    let highest = indices.into_iter().flatten().max();
    declared.max(highest).unwrap_or(0)
}

/// The numbers of received and of expected shards, if shards of a run are missing.
pub(crate) fn missing(
    shards: &[ShardSummary],
    declared: Option<i32>,
) -> Result<Option<(u32, u32)>, StoreError> {
    let expected = count(expected(declared, shards.iter().map(|shard| shard.index)))?;
    let received = u32::try_from(shards.len()).unwrap_or(u32::MAX);
    Ok((received < expected).then_some((received, expected)))
}

/// Whether one of these shards was interrupted or its report is cut off.
pub(crate) fn is_cut_short(shards: &[ShardSummary]) -> Result<bool, StoreError> {
    let states = shards
        .iter()
        .map(|shard| word::<RunState>("run state", &shard.state));
    Ok(states
        .collect::<Result<Vec<_>, _>>()?
        .contains(&RunState::Interrupted))
}

impl ShardSummary {
    /// The shard of the run detail; none for the only part of a run that is not sharded.
    pub(crate) fn to_shard(&self) -> Result<Option<Shard>, StoreError> {
        let Some(index) = self.index else { return Ok(None) };
        Ok(Some(Shard {
            run_id: RunId(self.id),
            index: count(index)?,
            run_state: word("run state", &self.state)?,
            status: optional_word("shard status", self.status.as_deref())?,
        }))
    }
}

/// The tags of a run's shards, by the slot that results name them with.
pub(crate) struct ShardTags(HashMap<i16, Option<ShardTag>>);

impl ShardTags {
    pub(crate) fn of(shards: &[ShardSummary]) -> Result<Self, StoreError> {
        let tag = |shard: &ShardSummary| {
            let index = shard.index.map(count).transpose()?;
            Ok((
                shard.slot,
                index.map(|index| ShardTag {
                    index,
                    run_id: RunId(shard.id),
                }),
            ))
        };
        shards
            .iter()
            .map(tag)
            .collect::<Result<_, StoreError>>()
            .map(Self)
    }

    pub(crate) fn get(&self, slot: i16) -> Result<Option<ShardTag>, StoreError> {
        self.0
            .get(&slot)
            .copied()
            .ok_or_else(|| corrupt("result of an unknown shard", &slot.to_string()))
    }
}
