//! The decisions of gates on the reports of a run.

use std::collections::HashSet;

use assay_domain::{
    decision::{RunDecision, StoredDecision},
    id::RunId,
    project::Project,
    recording::Effect,
    store::StoreError,
};
use diesel::prelude::*;
use serde::Deserialize as _;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    db::{
        column::{corrupt, count, word},
        pool::Read,
        schema::{part, upload},
    },
    read::run_detail::FoundRun,
};

/// Most uploads of a run that are read, the newest first.
const MOST_UPLOADS: i64 = 2_000;

/// Shard, its number, effect, decision.
type Row = (Option<Uuid>, Option<i32>, String, Option<Value>);

/// The decisions on the stored reports of the run with this id, newest first. The id of any of its shards also
/// identifies it.
pub(crate) fn of_run(connection: &mut PgConnection, project: &Project, id: RunId) -> Read<Vec<RunDecision>> {
    let Some(FoundRun { run, .. }) = FoundRun::find(connection, project, id)? else {
        return Ok(Vec::new());
    };
    let project = project.id.0;
    let of_upload = part::project_id
        .eq(project)
        .and(part::run_number.eq(run.number))
        .and(upload::shard_id.eq(part::id.nullable()));
    let rows: Vec<Row> = upload::table
        .left_join(part::table.on(of_upload))
        .filter(upload::project_id.eq(project))
        .filter(upload::run_number.eq(run.number))
        .order((upload::at.desc(), upload::id.desc()))
        .limit(MOST_UPLOADS)
        .select((
            upload::shard_id,
            part::index.nullable(),
            upload::effect,
            upload::decision,
        ))
        .load(connection)?;
    let mut decisions = Vec::new();
    // The shards whose older decisions do not hold any more; none stands for the whole run.
    let mut superseded: HashSet<Option<Uuid>> = HashSet::new();
    for (shard, index, effect, decision) in rows {
        if let Some(decision) = decision {
            let decision = stored(&decision)?;
            let is_newest = superseded.insert(shard.filter(|_| !decision.whole_run));
            if is_newest {
                let index = index.filter(|_| !decision.whole_run);
                decisions.push(RunDecision {
                    shard: index.map(count).transpose()?,
                    decision,
                });
            }
        }
        // This upload changed its shard, so earlier decisions were about other results.
        if word::<Effect>("effect of an upload", &effect)? != Effect::Unchanged {
            superseded.extend([shard, None]);
        }
    }
    Ok(decisions)
}

/// A decision of the database.
pub(crate) fn stored(value: &Value) -> Result<StoredDecision, StoreError> {
    StoredDecision::deserialize(value).map_err(|_| corrupt("decision of a gate", &value.to_string()))
}
