//! Shards of a run.

use std::collections::HashMap;

use assay_domain::{
    attempt::{ErrorDetail, ShardTag},
    id::RunId,
    run::Shard,
    store::StoreError,
};
use diesel::{
    ExpressionMethods, PgConnection, QueryDsl, QueryResult, Queryable, RunQueryDsl, Selectable,
    SelectableHelper, pg::Pg,
};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    column::{At, corrupt, count, optional_word, word},
    schema::shard,
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

impl StoredShard {
    /// As the run detail shows it; none for the only part of a run that is not sharded.
    pub(crate) fn shown(&self) -> Result<Option<Shard>, StoreError> {
        let Some(index) = self.index else { return Ok(None) };
        Ok(Some(Shard {
            run_id: RunId(self.id),
            index: count(index)?,
            run_state: word("run state", &self.state)?,
            status: optional_word("shard status", self.status.as_deref())?,
        }))
    }

    /// The errors of its report that belong to no test.
    pub(crate) fn report_errors(&self) -> Result<Vec<ErrorDetail>, StoreError> {
        Vec::deserialize(&self.report_errors)
            .map_err(|_| corrupt("list of errors", &self.report_errors.to_string()))
    }
}

/// The tags of a run's shards, by the slot that results name them with.
pub(crate) struct ShardTags(HashMap<i16, Option<ShardTag>>);

impl ShardTags {
    pub(crate) fn of(shards: &[StoredShard]) -> Result<Self, StoreError> {
        let tag = |shard: &StoredShard| {
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
