//! The port of the ingest listener: ingest keys and the record of uploads.
//!
//! Keys are looked up through a function of the database, so that the listener's role needs no right to read keys.

use assay_domain::{
    decision::{DecisionError, DecisionReceipt, GateDecision},
    fix::{FixError, NewFix},
    id::{KeyId, ProjectId},
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
    sql_types::{Bool, Bytea, Date, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    Database,
    admin::{key, project},
    db::{
        column::{At, int, long_count, storable},
        pool::{Read, WorkError, converted},
        schema::{project_entry, upload, upload_day},
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

#[derive(QueryableByName)]
struct KeyRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    project_id: Uuid,
    #[diesel(sql_type = Text)]
    project_name: String,
    #[diesel(sql_type = Text)]
    stable_branch: String,
    #[diesel(sql_type = Nullable<Text>)]
    name: Option<String>,
    #[diesel(sql_type = Bool)]
    backfill: bool,
    #[diesel(sql_type = Bool)]
    pull_requests_only: bool,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    expires_at: Option<At>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    revoked_at: Option<At>,
}

/// A key without a secret.
#[derive(QueryableByName)]
struct TrustedKeyRow {
    #[diesel(embed)]
    key: KeyRow,
    #[diesel(sql_type = Jsonb)]
    trust: Value,
}

impl IngestKeys for Database {
    fn ingest_key(&self, hash: &KeyHash) -> Result<Option<StoredIngestKey>, StoreError> {
        self.on_primary("reading a key", |connection| {
            // Diesel's query language has no functions that return rows.
            let row: Option<KeyRow> = sql_query("SELECT * FROM assay_ingest_key($1)")
                .bind::<Bytea, _>(hash.0.as_slice())
                .get_result(connection)
                .optional()?;
            Ok::<_, WorkError<StoreError>>(row.map(StoredIngestKey::from))
        })
    }

    fn trusted_keys(&self, issuer: &str, repository: &str) -> Result<Vec<StoredIngestKey>, StoreError> {
        self.on_primary("reading trusted keys", |connection| {
            let rows: Vec<TrustedKeyRow> = sql_query("SELECT * FROM assay_ingest_trust($1, $2)")
                .bind::<Text, _>(storable(issuer))
                .bind::<Text, _>(storable(repository))
                .load(connection)?;
            let key = |row: TrustedKeyRow| {
                let mut key = StoredIngestKey::from(row.key);
                key.terms.trust = Some(key::trusted(row.trust)?);
                Ok(key)
            };
            Ok::<_, WorkError<StoreError>>(rows.into_iter().map(key).collect::<Result<_, StoreError>>()?)
        })
    }

    fn project_of_key(&self, id: ProjectId, now: Timestamp) -> Result<Option<Project>, StoreError> {
        self.on_primary("reading the project of an ingest key", |connection| {
            project::of_ingest_key(connection, id, now)
        })
    }

    fn record_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        let id = self.new_id(upload.at);
        self.in_transaction("recording an upload", |connection| {
            insert(connection, id, upload)?;
            let day = OffsetDateTime::from(upload.at).date();
            sql_query("SELECT assay_note_ingest($1, $2)")
                .bind::<SqlUuid, _>(upload.key.0)
                .bind::<Date, _>(day)
                .execute(connection)?;
            Ok::<_, WorkError<StoreError>>(())
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

impl From<KeyRow> for StoredIngestKey {
    fn from(row: KeyRow) -> Self {
        Self {
            id: KeyId(row.id),
            project: ProjectId(row.project_id),
            project_name: row.project_name,
            stable_branch: row.stable_branch,
            terms: IngestTerms {
                name: row.name,
                expires_at: row.expires_at.map(|at| at.0),
                backfill: row.backfill,
                pull_requests_only: row.pull_requests_only,
                trust: None,
            },
            revoked_at: row.revoked_at.map(|at| at.0),
            sender: None,
        }
    }
}

/// Stores the record of an upload; the same one again changes nothing.
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
        return database.on_primary("counting uploads", |connection| {
            let old: i64 = upload::table
                .filter(upload::at.lt(before))
                .count()
                .get_result(connection)?;
            Ok::<_, WorkError<StoreError>>(long_count(old)?)
        });
    }
    let projects: Vec<Uuid> = database.on_primary("reading projects", |connection| {
        Ok::<_, WorkError<StoreError>>(project_entry::table.select(project_entry::id).load(connection)?)
    })?;
    let mut deleted = 0;
    for project in projects {
        database.on_primary("pruning what keys stored", |connection| {
            let old = upload_day::table
                .filter(upload_day::project_id.eq(project))
                .filter(upload_day::day.lt(OffsetDateTime::from(before.0).date()));
            Ok::<_, WorkError<StoreError>>(diesel::delete(old).execute(connection)?)
        })?;
        loop {
            let rows = database.on_primary("pruning uploads", |connection| {
                Ok::<_, WorkError<StoreError>>(delete_batch(connection, project, before)?)
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
