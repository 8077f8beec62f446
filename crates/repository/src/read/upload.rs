//! The record of uploads.

use std::collections::{BTreeSet, HashMap};

use assay_domain::{
    id::{KeyId, RunId},
    ingest::ProjectUpload,
    project::Project,
    store::StoreError,
};
use diesel::prelude::*;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, count, long_count, word},
        period::retention_bounds,
        pool::{Read, converted},
        schema::{api_key, run, upload},
    },
    read::decision,
};

/// Time, key, run, its number, effect, bytes, files, decision.
pub(crate) type UploadRow = (At, Uuid, Uuid, i32, String, i64, i32, Option<Value>);

/// The columns of [`UploadRow`], which the read API's login may read.
pub(crate) const COLUMNS: (
    upload::at,
    upload::key_id,
    upload::run_id,
    upload::run_number,
    upload::effect,
    upload::bytes,
    upload::files,
    upload::decision,
) = (
    upload::at,
    upload::key_id,
    upload::run_id,
    upload::run_number,
    upload::effect,
    upload::bytes,
    upload::files,
    upload::decision,
);

/// The newest uploads of visible runs, the newest first.
pub(crate) fn visible(
    connection: &mut PgConnection,
    project: &Project,
    limit: u32,
) -> Read<Vec<ProjectUpload>> {
    let (from, to) = retention_bounds(project);
    let of_run = run::project_id
        .eq(upload::project_id)
        .and(run::number.eq(upload::run_number));
    let rows: Vec<UploadRow> = upload::table
        .inner_join(run::table.on(of_run))
        .filter(upload::project_id.eq(project.id.0))
        .filter(run::project_id.eq(project.id.0))
        .filter(run::started_at.between(from, to))
        .order((upload::at.desc(), upload::id.desc()))
        .limit(i64::from(limit))
        .select(COLUMNS)
        .load(connection)?;
    let keys = names_of_keys(connection, rows.iter().map(|(_, key, ..)| *key).collect())?;
    converted(rows, |row| {
        let name = keys.get(&row.1).and_then(|(_, name)| name.clone());
        project_upload(row, name)
    })
}

/// An upload with the name of its key.
pub(crate) fn project_upload(
    (at, key, run, run_number, effect, bytes, files, decision): UploadRow,
    key_name: Option<String>,
) -> Result<ProjectUpload, StoreError> {
    Ok(ProjectUpload {
        at: at.0,
        key_id: KeyId(key),
        key_name,
        run_id: RunId(run),
        run_number,
        effect: word("effect of an upload", &effect)?,
        bytes: long_count(bytes)?,
        files: count(files)?,
        decision: decision.as_ref().map(decision::stored).transpose()?,
    })
}

/// The prefix and the name of each of these keys that exists.
pub(crate) fn names_of_keys(
    connection: &mut PgConnection,
    ids: BTreeSet<Uuid>,
) -> Read<HashMap<Uuid, (String, Option<String>)>> {
    let keys: Vec<(Uuid, String, Option<String>)> = api_key::table
        .filter(api_key::id.eq_any(ids))
        .select((api_key::id, api_key::prefix, api_key::name))
        .load(connection)?;
    let names = keys.into_iter().map(|(id, prefix, name)| (id, (prefix, name)));
    Ok(names.collect())
}
