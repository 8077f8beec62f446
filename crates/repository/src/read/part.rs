//! Parts of a run, and the shards that they make up.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_domain::{
    attempt::{ErrorDetail, ShardTag},
    id::RunId,
    part::JobAttempt,
    recording::Sender,
    run::{Outcome, RunState, Shard, ShardDurations},
    store::StoreError,
};
use diesel::{pg::Pg, prelude::*, sql_types::Jsonb};
use serde::Deserialize as _;
use serde_json::Value;
use uuid::Uuid;

use crate::db::{
    column::{At, corrupt, count, long_count, optional_word, word},
    pool::Read,
    schema::part,
    sql_statement::SqlStatement,
};

/// A part, as stored.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = part, check_for_backend(Pg), treat_none_as_default_value = false)]
pub(crate) struct StoredPart {
    pub(crate) number: i16,
    pub(crate) id: Uuid,
    pub(crate) shard_id: Uuid,
    pub(crate) index: Option<i32>,
    pub(crate) content: Vec<u8>,
    pub(crate) state: String,
    pub(crate) status: Option<String>,
    pub(crate) superseded: bool,
    pub(crate) started_at: At,
    pub(crate) finished_at: Option<At>,
    pub(crate) expected: Option<i32>,
    pub(crate) report_errors: Value,
    pub(crate) sender_job: Option<String>,
    pub(crate) sender_id: Option<String>,
    pub(crate) sender_runner: Option<String>,
    pub(crate) report_path: Option<String>,
    pub(crate) report_files: i32,
    pub(crate) job_attempt: i64,
    pub(crate) command_attempt: i32,
    pub(crate) import_id: Option<Uuid>,
}

impl StoredPart {
    /// The job that sent it.
    pub(crate) fn sender(&self) -> Result<Sender, StoreError> {
        Ok(Sender {
            job: self.sender_job.clone(),
            id: self.sender_id.clone(),
            runner: self.sender_runner.clone(),
            attempt: JobAttempt {
                of_job: long_count(self.job_attempt)?,
                of_command: count(self.command_attempt)?,
            },
            report_path: self.report_path.clone(),
            report_files: count(self.report_files)?,
        })
    }

    /// Whether the report has errors that belong to no test.
    pub(crate) fn has_errors(&self) -> bool {
        let errors = self.report_errors.as_array();
        errors.is_some_and(|errors| !errors.is_empty())
    }
}

/// The parts of a run, by shard and in order of arrival.
pub(crate) fn of_run(connection: &mut PgConnection, project: Uuid, run: i32) -> QueryResult<Vec<StoredPart>> {
    part::table
        .filter(part::project_id.eq(project))
        .filter(part::run_number.eq(run))
        .order((part::index.asc(), part::number.asc()))
        .select(StoredPart::as_select())
        .load(connection)
}

/// A part, as the run detail needs it.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = part, check_for_backend(Pg))]
pub(crate) struct PartSummary {
    number: i16,
    shard_id: Uuid,
    index: Option<i32>,
    state: String,
    status: Option<String>,
    superseded: bool,
    command_attempt: i32,
    started_at: At,
    finished_at: Option<At>,
    /// How many errors its report has that belong to no test.
    #[diesel(select_expression = jsonb_array_length(part::report_errors))]
    report_errors: i32,
}

define_sql_function! {
    fn jsonb_array_length(list: Jsonb) -> diesel::sql_types::Integer;
}

/// Most bytes of errors that belong to no test in the detail of a run.
const MOST_ERROR_BYTES: usize = 1 << 20;

/// The first errors of a run's reports that belong to no test, and how many more there are. Those of superseded parts
/// are over.
pub(crate) fn report_errors(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    parts: &[PartSummary],
) -> Read<(Vec<ErrorDetail>, u32)> {
    let current = parts.iter().filter(|part| !part.superseded);
    let all: i64 = current.map(|part| i64::from(part.report_errors)).sum();
    let mut errors = Vec::new();
    if all > 0 {
        let rows = SqlStatement::<Value>::new(
            "SELECT error.value FROM part CROSS JOIN LATERAL jsonb_array_elements(part.report_errors) \
         WITH ORDINALITY AS error (value, place) WHERE part.project_id = {project} \
         AND part.run_number = {run} AND NOT part.superseded \
         ORDER BY part.index, part.started_at, part.content, part.number, error.place",
        )
        .bind("project", project)
        .bind("run", run)
        .load_iter(connection)?;
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

/// How many shards have reported, if these are the shards of a run's parts.
pub(crate) fn received(indexes: impl IntoIterator<Item = Option<i32>>) -> usize {
    indexes.into_iter().collect::<BTreeSet<_>>().len()
}

/// How many shards a run has at least: the number that they name, or the highest index, as shards are numbered from 1.
pub(crate) fn expected(declared: Option<i32>, indexes: impl IntoIterator<Item = Option<i32>>) -> i32 {
    let highest = indexes.into_iter().flatten().max();
    declared.max(highest).unwrap_or(0)
}

/// The numbers of received and of expected shards, if shards of a run are missing.
pub(crate) fn missing(
    parts: &[PartSummary],
    declared: Option<i32>,
) -> Result<Option<(u32, u32)>, StoreError> {
    let expected = count(expected(declared, parts.iter().map(|part| part.index)))?;
    let received = u32::try_from(received(parts.iter().map(|part| part.index))).unwrap_or(u32::MAX);
    Ok((received < expected).then_some((received, expected)))
}

/// Whether one of these parts was interrupted or its report is cut off, and no later attempt ran its tests again.
pub(crate) fn is_cut_short(parts: &[PartSummary]) -> Result<bool, StoreError> {
    let states = parts.iter().map(PartSummary::current_state);
    Ok(states
        .collect::<Result<Vec<_>, _>>()?
        .contains(&RunState::Interrupted))
}

impl PartSummary {
    /// The state that still counts.
    fn current_state(&self) -> Result<RunState, StoreError> {
        match self.superseded {
            true => Ok(RunState::Completed),
            false => word("run state", &self.state),
        }
    }
}

/// How long the shards of a run took, without parts of which all tests ran again. Of the attempts of a command the first
/// counts, because the others run only what failed. None where the end of one of these parts is unknown.
pub(crate) fn shard_durations(parts: &[PartSummary]) -> Option<ShardDurations> {
    let mut shards: BTreeMap<i32, BTreeMap<i32, Vec<&PartSummary>>> = BTreeMap::new();
    for part in parts.iter().filter(|part| !part.superseded) {
        if let Some(index) = part.index {
            let attempts = shards.entry(index).or_default();
            attempts.entry(part.command_attempt).or_default().push(part);
        }
    }
    let duration = |part: &&PartSummary| {
        let ms = part.finished_at?.0.since_ms(part.started_at.0);
        Some(u64::try_from(ms).unwrap_or(0))
    };
    let firsts = shards.values().filter_map(|attempts| attempts.values().next());
    let shards: Option<Vec<u64>> = firsts.map(|parts| parts.iter().map(duration).sum()).collect();
    ShardDurations::of(&shards?)
}

/// The shards of the run detail, by index; empty if the run has none.
pub(crate) fn shards(parts: &[PartSummary]) -> Result<Vec<Shard>, StoreError> {
    let mut shards: BTreeMap<i32, Shard> = BTreeMap::new();
    for part in parts {
        let Some(index) = part.index else { continue };
        let (state, status) = (
            part.current_state()?,
            optional_word::<Outcome>("part status", part.status.as_deref())?,
        );
        let new = Shard {
            run_id: RunId(part.shard_id),
            index: count(index)?,
            run_state: state,
            status,
        };
        shards
            .entry(index)
            .and_modify(|shard| {
                if state == RunState::Interrupted {
                    shard.run_state = state;
                }
                shard.status = worse(shard.status, status);
            })
            .or_insert(new);
    }
    Ok(shards.into_values().collect())
}

/// The outcome of both: failed if one failed, else unknown if one is.
pub(crate) fn worse(one: Option<Outcome>, other: Option<Outcome>) -> Option<Outcome> {
    match (one, other) {
        (Some(Outcome::Failed), _) | (_, Some(Outcome::Failed)) => Some(Outcome::Failed),
        (None, _) | (_, None) => None,
        (Some(Outcome::Passed), Some(Outcome::Passed)) => Some(Outcome::Passed),
    }
}

/// The tags of a run's shards, by the part that results name.
pub(crate) struct ShardTags(HashMap<i16, Option<ShardTag>>);

impl ShardTags {
    pub(crate) fn of(parts: &[PartSummary]) -> Result<Self, StoreError> {
        let tag = |part: &PartSummary| {
            let index = part.index.map(count).transpose()?;
            Ok((
                part.number,
                index.map(|index| ShardTag {
                    index,
                    run_id: RunId(part.shard_id),
                }),
            ))
        };
        parts.iter().map(tag).collect::<Result<_, StoreError>>().map(Self)
    }

    pub(crate) fn get(&self, part: i16) -> Result<Option<ShardTag>, StoreError> {
        self.0
            .get(&part)
            .copied()
            .ok_or_else(|| corrupt("result of an unknown part", &part.to_string()))
    }
}
