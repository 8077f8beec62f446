//! Reports over HTTP: what the ingest listener asks of the store about keys, and what it records of each upload.

use crate::{
    id::{KeyId, ProjectId, RunId},
    key::KeyHash,
    project::Project,
    recording::Effect,
    store::StoreError,
    timestamp::Timestamp,
};

/// The port of the ingest listener beside [`Recorder`](crate::store::Recorder).
pub trait IngestKeys: Send + Sync {
    /// The ingest key of this hash, whatever its state. Read keys are not found, nor are keys of deleted projects.
    fn ingest_key(&self, hash: &KeyHash) -> Result<Option<StoredIngestKey>, StoreError>;

    /// The project of an ingest key as its organization sees it at `now`; none where it was deleted.
    fn project_of_key(&self, project: ProjectId, now: Timestamp) -> Result<Option<Project>, StoreError>;

    /// Records which key stored what, and that the key was used on that day.
    fn record_upload(&self, upload: &Upload) -> Result<(), StoreError>;
}

/// A stored ingest key with its project, as one look-up finds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredIngestKey {
    /// The key's public id.
    pub id: KeyId,
    /// The project that it sends to.
    pub project: ProjectId,
    /// That project's name.
    pub project_name: String,
    /// That project's stable branch.
    pub stable_branch: String,
    /// What it may send, and until when.
    pub terms: IngestTerms,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

/// What an ingest key may send, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IngestTerms {
    /// What people call the key, at most 100 characters.
    pub name: Option<String>,
    /// When it ceases to work; none for a key that works until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// Whether it may send runs that started long ago.
    pub backfill: bool,
    /// Whether it may send runs of pull requests only. Such a key may be public.
    pub pull_requests_only: bool,
}

/// A report that an ingest key stored, or that was already stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The key.
    pub key: KeyId,
    /// Its project.
    pub project: ProjectId,
    /// When the report was stored.
    pub at: Timestamp,
    /// The logical run's id.
    pub run_id: RunId,
    /// The run's number.
    pub run_number: i32,
    /// What the report changed.
    pub effect: Effect,
    /// How many bytes the request's body had on the wire.
    pub bytes: u64,
    /// How many report files it had.
    pub files: u32,
    /// What the client calls itself. The store keeps the first 200 characters.
    pub client: Option<String>,
}

/// An upload in the administrator's list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UploadEntry {
    /// When the report was stored.
    pub at: Timestamp,
    /// The key's id.
    pub key_id: KeyId,
    /// The key's first twelve characters; none where the key was deleted.
    pub key_prefix: Option<String>,
    /// What people call the key.
    pub key_name: Option<String>,
    /// The logical run's id.
    pub run_id: RunId,
    /// The run's number.
    pub run_number: i32,
    /// What the report changed.
    pub effect: Effect,
    /// How many bytes the request's body had on the wire.
    pub bytes: u64,
    /// How many report files it had.
    pub files: u32,
    /// What the client called itself.
    pub client: Option<String>,
}
