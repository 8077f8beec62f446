//! Reports over HTTP: the ingest listener's queries about keys, and its records of uploads.

use crate::{
    decision::{DecisionError, DecisionReceipt, GateDecision, StoredDecision},
    fix::{FixError, NewFix},
    id::{KeyId, ProjectId, RunId},
    identity::Trust,
    key::KeyHash,
    project::Project,
    recording::Effect,
    rules::RecordingRules,
    store::StoreError,
    timestamp::Timestamp,
};

/// The port of the ingest listener beside [`Recorder`](crate::store::Recorder).
pub trait IngestKeys: Send + Sync {
    /// The ingest key of this hash in any state. It finds neither read keys nor keys of deleted projects.
    fn ingest_key(&self, hash: &KeyHash) -> Result<Option<StoredIngestKey>, StoreError>;

    /// The keys without a secret, in any state, for tokens of this issuer and repository, oldest first.
    fn trusted_keys(&self, issuer: &str, repository: &str) -> Result<Vec<StoredIngestKey>, StoreError>;

    /// The project of an ingest key at `now`, as its organization sees it; none if it was deleted.
    fn project_of_key(&self, project: ProjectId, now: Timestamp) -> Result<Option<Project>, StoreError>;

    /// Records an upload with its key, and the key's use on that day.
    fn record_upload(&self, upload: &Upload) -> Result<(), StoreError>;

    /// Stores a gate's decision with the newest upload that it is about, in the place of an earlier one. The same
    /// decision again changes nothing.
    fn record_decision(
        &self,
        project: ProjectId,
        decision: &GateDecision,
        rules: RecordingRules,
        now: Timestamp,
    ) -> Result<DecisionReceipt, DecisionError>;

    /// Stores a fix of a test. The oldest ones beyond [`MOST_FIXES`](crate::fix::MOST_FIXES) of the test are deleted.
    fn record_fix(
        &self,
        project: ProjectId,
        fix: &NewFix,
        rules: RecordingRules,
        now: Timestamp,
    ) -> Result<(), FixError>;
}

/// A stored ingest key with its project, from one look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredIngestKey {
    /// The key's public id.
    pub id: KeyId,
    /// The project of the key.
    pub project: ProjectId,
    /// That project's name.
    pub project_name: String,
    /// That project's stable branch.
    pub stable_branch: String,
    /// Its permissions and expiry.
    pub terms: IngestTerms,
    /// The time of its revocation, if any.
    pub revoked_at: Option<Timestamp>,
    /// The job that sent a token for this key, as the token says.
    pub sender: Option<String>,
}

/// The permissions and expiry of an ingest key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IngestTerms {
    /// The name of the key for people, at most 100 characters.
    pub name: Option<String>,
    /// Its expiry; none for a key that is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// Whether it may send runs that started long ago.
    pub backfill: bool,
    /// Whether it may send runs of pull requests only. Such a key may be public.
    pub pull_requests_only: bool,
    /// For a key without a secret: whose tokens stand for it.
    pub trust: Option<Trust>,
}

/// A report that an ingest key stored, or that was already stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The key.
    pub key: KeyId,
    /// Its project.
    pub project: ProjectId,
    /// The time of storing.
    pub at: Timestamp,
    /// The run's id.
    pub run_id: RunId,
    /// The run's number.
    pub run_number: i32,
    /// The shard's id.
    pub shard_id: RunId,
    /// The effect of the report.
    pub effect: Effect,
    /// The bytes of the request's body before unpacking.
    pub bytes: u64,
    /// The number of report files.
    pub files: u32,
    /// The client's own name. The store keeps its first 200 characters.
    pub client: Option<String>,
    /// The job that sent it, as its token says. The store keeps the first 500 characters.
    pub sender: Option<String>,
}

/// What an ingest key stored on a day.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyDay {
    /// The key's id.
    pub key_id: KeyId,
    /// The key's first twelve characters; none if the key was deleted.
    pub key_prefix: Option<String>,
    /// The name of the key for people.
    pub key_name: Option<String>,
    /// Tests; each attempt counts.
    pub tests: u64,
    /// Bytes of report files, after unpacking.
    pub bytes: u64,
}

/// An upload as those see it who may read its project.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectUpload {
    /// The time of storing.
    pub at: Timestamp,
    /// The id of its key.
    pub key_id: KeyId,
    /// The name that the operators gave the key; null without one, and if the key was deleted.
    pub key_name: Option<String>,
    /// The run's id.
    pub run_id: RunId,
    /// The run's number.
    pub run_number: i32,
    /// The effect of the report.
    pub effect: Effect,
    /// The bytes of the request's body before unpacking.
    pub bytes: u64,
    /// The number of report files.
    pub files: u32,
    /// The gate's decision on it.
    pub decision: Option<StoredDecision>,
}

/// An upload in the administrator's list.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UploadEntry {
    /// What every reader of the project sees.
    #[serde(flatten)]
    pub upload: ProjectUpload,
    /// The key's first twelve characters; none if the key was deleted.
    pub key_prefix: Option<String>,
    /// The client's own name.
    pub client: Option<String>,
    /// The job that sent it, as its token says; none for a key with a secret.
    pub sender: Option<String>,
}
