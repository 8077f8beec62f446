//! The port of the ingest listener: ingest keys and the record of uploads.
//!
//! Keys are looked up through a function of the database, so that the listener's role needs no right to read keys.

use assay_domain::{
    decision::{DecisionError, DecisionReceipt, GateDecision},
    fix::{FixError, NewFix},
    id::{KeyId, ProjectId},
    identity::Trust,
    ingest::{IngestKeys, IngestTerms, KeyDay, StoredIngestKey, Upload, UploadEntry},
    key::KeyHash,
    project::Project,
    rules::RecordingRules,
    store::StoreError,
    timestamp::Timestamp,
};
use diesel::{
    prelude::*,
    sql_query,
    sql_types::{Date, Uuid as SqlUuid},
};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    Database,
    admin::{key, project},
    db::{
        column::{At, int, long_count, storable},
        pool::{Read, converted},
        schema::{project_entry, upload, upload_day},
        sql_statement::SqlStatement,
    },
    read::upload::{COLUMNS, UploadRow, names_of_keys, project_upload},
    record,
};

/// Days after which the record of an upload is pruned.
const RECORD_DAYS: i64 = 90;
/// How many records one transaction deletes.
const BATCH: i64 = 20_000;
/// Most characters that are stored of a client's self-reported name.
const CLIENT_CHARS: usize = 200;
/// Most characters that are stored of a sender.
const SENDER_CHARS: usize = 500;

type KeyRow = (
    (Uuid, Uuid, String, String),
    (Option<String>, bool, bool, Option<At>),
    Option<At>,
);

impl IngestKeys for Database {
    fn ingest_key(&self, hash: &KeyHash) -> Result<Option<StoredIngestKey>, StoreError> {
        self.on_primary("reading a key", |connection| {
            // Diesel's query language has no functions that return rows.
            let row: Option<KeyRow> = SqlStatement::new("SELECT * FROM assay_ingest_key({hash})")
                .bind("hash", hash.0.as_slice())
                .get_result(connection)
                .optional()?;
            Ok(row.map(|row| stored_key(row, None)))
        })
    }

    fn trusted_keys(&self, issuer: &str, repository: &str) -> Result<Vec<StoredIngestKey>, StoreError> {
        let (issuer, repository) = (storable(issuer), storable(repository));
        self.on_primary("reading trusted keys", |connection| {
            let rows: Vec<(KeyRow, Value)> =
                SqlStatement::new("SELECT * FROM assay_ingest_trust({issuer}, {repository})")
                    .bind("issuer", issuer.as_str())
                    .bind("repository", repository.as_str())
                    .load(connection)?;
            converted(rows, |(row, trust)| {
                Ok(stored_key(row, Some(key::trusted(trust)?)))
            })
        })
    }

    fn project_of_key(&self, id: ProjectId, now: Timestamp) -> Result<Option<Project>, StoreError> {
        self.on_primary("reading the project of an ingest key", |connection| {
            project::of_ingest_key(connection, id, now)
        })
    }

    fn record_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        let id = self.new_id(upload.at);
        self.query_in_transaction("recording an upload", |connection| {
            insert(connection, id, upload)?;
            let day = OffsetDateTime::from(upload.at).date();
            sql_query("SELECT assay_note_ingest($1, $2)")
                .bind::<SqlUuid, _>(upload.key.0)
                .bind::<Date, _>(day)
                .execute(connection)
                .map(drop)
        })
    }

    fn record_decision(
        &self,
        project: ProjectId,
        decision: &GateDecision,
        rules: RecordingRules,
        now: Timestamp,
    ) -> Result<DecisionReceipt, DecisionError> {
        self.in_transaction("storing a decision", |connection| {
            record::store_decision(connection, project.0, decision, rules, now)
        })
    }

    fn record_fix(
        &self,
        project: ProjectId,
        fix: &NewFix,
        rules: RecordingRules,
        now: Timestamp,
    ) -> Result<(), FixError> {
        let id = self.new_id(now);
        self.in_transaction("storing a fix", |connection| {
            record::store_fix(connection, (project.0, id), fix, rules, now)
        })
    }
}

fn stored_key((key, terms, revoked_at): KeyRow, trust: Option<Trust>) -> StoredIngestKey {
    let (id, project, project_name, stable_branch) = key;
    let (name, backfill, pull_requests_only, expires_at) = terms;
    StoredIngestKey {
        id: KeyId(id),
        project: ProjectId(project),
        project_name,
        stable_branch,
        terms: IngestTerms {
            name,
            expires_at: expires_at.map(|at| at.0),
            backfill,
            pull_requests_only,
            trust,
        },
        revoked_at: revoked_at.map(|at| at.0),
        sender: None,
    }
}

fn insert(connection: &mut PgConnection, id: Uuid, new: &Upload) -> diesel::QueryResult<usize> {
    let excerpt = |text: &Option<String>, chars| {
        let text = text.as_deref()?;
        Some(storable(&text.chars().take(chars).collect::<String>()))
    };
    diesel::insert_into(upload::table)
        .values((
            upload::project_id.eq(new.project.0),
            upload::at.eq(At(new.at)),
            upload::id.eq(id),
            upload::key_id.eq(new.key.0),
            upload::run_id.eq(new.run_id.0),
            upload::bytes.eq(i64::try_from(new.bytes).unwrap_or(i64::MAX)),
            upload::run_number.eq(new.run_number),
            upload::files.eq(int(new.files)),
            upload::shard_id.eq(new.shard_id.0),
            upload::effect.eq(new.effect.as_str()),
            upload::client.eq(excerpt(&new.client, CLIENT_CHARS)),
            upload::sender.eq(excerpt(&new.sender, SENDER_CHARS)),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
}

/// The newest uploads of a project, the newest first.
pub(crate) fn list(connection: &mut PgConnection, project: ProjectId, limit: u32) -> Read<Vec<UploadEntry>> {
    let rows: Vec<(UploadRow, Option<String>, Option<String>)> = upload::table
        .filter(upload::project_id.eq(project.0))
        .order((upload::at.desc(), upload::id.desc()))
        .limit(i64::from(limit))
        .select((COLUMNS, upload::client, upload::sender))
        .load(connection)?;
    let keys = names_of_keys(connection, rows.iter().map(|((_, key, ..), ..)| *key).collect())?;
    let entry = |(row, client, sender): (UploadRow, _, _)| {
        let (key_prefix, key_name) = keys.get(&row.1).cloned().unzip();
        Ok(UploadEntry {
            upload: project_upload(row, key_name.flatten())?,
            key_prefix,
            client,
            sender,
        })
    };
    converted(rows, entry)
}

/// What each key stored into a project on the day of `now`.
pub(crate) fn stored_by_keys(
    connection: &mut PgConnection,
    project: ProjectId,
    now: Timestamp,
) -> Read<Vec<KeyDay>> {
    let rows: Vec<(Uuid, i64, i64)> = upload_day::table
        .filter(upload_day::project_id.eq(project.0))
        .filter(upload_day::day.eq(OffsetDateTime::from(now).date()))
        .order((upload_day::tests.desc(), upload_day::key_id))
        .select((upload_day::key_id, upload_day::tests, upload_day::bytes))
        .load(connection)?;
    let keys = names_of_keys(connection, rows.iter().map(|(key, ..)| *key).collect())?;
    let day = |(key, tests, bytes): (Uuid, i64, i64)| {
        let (key_prefix, key_name) = keys.get(&key).cloned().unzip();
        Ok(KeyDay {
            key_id: KeyId(key),
            key_prefix,
            key_name: key_name.flatten(),
            tests: long_count(tests)?,
            bytes: long_count(bytes)?,
        })
    };
    converted(rows, day)
}

/// Deletes the records of old uploads, or only counts them.
pub(crate) fn prune(database: &Database, now: Timestamp, dry_run: bool) -> Result<u64, StoreError> {
    let before = At(now.plus_days(-RECORD_DAYS));
    if dry_run {
        let old: i64 = database.query("counting uploads", |connection| {
            let old = upload::table.filter(upload::at.lt(before));
            old.count().get_result(connection)
        })?;
        return long_count(old);
    }
    let projects: Vec<Uuid> = database.query("reading projects", |connection| {
        project_entry::table.select(project_entry::id).load(connection)
    })?;
    let mut deleted = 0;
    for project in projects {
        database.query("pruning what keys stored", |connection| {
            let old = upload_day::table
                .filter(upload_day::project_id.eq(project))
                .filter(upload_day::day.lt(OffsetDateTime::from(before.0).date()));
            diesel::delete(old).execute(connection)
        })?;
        loop {
            let rows = database.query("pruning uploads", |connection| {
                delete_batch(connection, project, before)
            })?;
            deleted += u64::try_from(rows).unwrap_or(u64::MAX);
            if rows == 0 {
                break;
            }
        }
    }
    Ok(deleted)
}

/// Deletes the oldest records of a project that are due.
fn delete_batch(connection: &mut PgConnection, project: Uuid, before: At) -> diesel::QueryResult<usize> {
    let end: Option<At> = upload::table
        .filter(upload::project_id.eq(project))
        .filter(upload::at.lt(before))
        .order(upload::at)
        .offset(BATCH)
        .select(upload::at)
        .first(connection)
        .optional()?;
    let old_uploads = diesel::delete(upload::table).filter(upload::project_id.eq(project));
    match end {
        Some(end) => old_uploads.filter(upload::at.le(end)).execute(connection),
        None => old_uploads.filter(upload::at.lt(before)).execute(connection),
    }
}
