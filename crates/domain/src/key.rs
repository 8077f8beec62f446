//! Stored keys. The store has a key's hash, never its text.

use serde::Serialize;

use crate::{
    id::{KeyId, OrganizationId},
    plan::Plan,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary!(
    /// What a key is for.
    KeyKind {
        /// Reads everything of its organization.
        Read = "read",
        /// Sends reports to one project; refused by the read API.
        Ingest = "ingest",
    }
);

/// The SHA-256 of a key's text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl std::fmt::Debug for KeyHash {
    /// Hides the value: a hash in a log would let its reader confirm a guess.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHash(..)")
    }
}

/// A stored read key with its organization's plan, from one look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredKey {
    /// The key's public id.
    pub id: KeyId,
    /// The organization that it reads.
    pub organization: OrganizationId,
    /// That organization's present plan.
    pub plan: Plan,
    /// When it ceases to work.
    pub expires_at: Timestamp,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

/// A new key to store.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The key's public id.
    pub id: KeyId,
    /// The SHA-256 of its text.
    pub hash: KeyHash,
    /// Its first twelve characters, for recognition.
    pub prefix: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A key in the administrator's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyEntry {
    /// The key's public id, which `assay key revoke` takes.
    pub id: KeyId,
    /// What it is for.
    pub kind: KeyKind,
    /// Its first twelve characters.
    pub prefix: String,
    /// The project that an ingest key sends to.
    pub project_id: Option<crate::id::ProjectId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The name of an ingest key.
    pub name: Option<String>,
    /// Whether an ingest key may send runs that started long ago.
    pub backfill: bool,
    /// Whether an ingest key may send runs of pull requests only.
    pub pull_requests_only: bool,
    /// When it ceases to work; none for a key that works until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
    /// The day of its latest use, as `2026-11-20`.
    pub last_used_on: Option<String>,
}
