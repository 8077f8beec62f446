//! Keys: their text, and what is stored of it. The store has only a key's hash, never its text.

mod lifetime;
mod text;

use std::sync::Arc;

use serde::Serialize;

use crate::{
    id::{KeyId, OrganizationId, ProjectId},
    plan::Plan,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

pub use lifetime::{Lifetime, NotALifetime};
pub use text::{
    INGEST_PREFIX, READ_PREFIX, RECOGNISED_CHARS, SecretKey, has_shape, hash, is_in, kind_by_prefix, mint,
};

vocabulary!(
    /// The kind of a key.
    KeyKind {
        /// Reads all data of its organization.
        Read = "read",
        /// Sends reports to one project. The read API refuses it.
        Ingest = "ingest",
    }
);

/// The SHA-256 of a key's text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl KeyHash {
    /// The id of a person, from the beginning of their hash.
    pub fn person_id(&self) -> KeyId {
        let half = self.0.first_chunk::<16>().copied().unwrap_or_default();
        KeyId(uuid::Uuid::from_bytes(half))
    }
}

impl std::fmt::Debug for KeyHash {
    /// Hides the value: a reader of a log could confirm a guess with the hash.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHash(..)")
    }
}

/// A stored read key with its organization's plan, from one look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// The key's public id.
    pub id: KeyId,
    /// Whether it stands for a person who signed in without a key. Its id is then of that person.
    pub is_person: bool,
    /// The organization that it reads.
    pub organization: OrganizationId,
    /// The organization's current plan.
    pub plan: Plan,
    /// The only projects that a person may read; none for all.
    pub only: Option<Arc<[ProjectId]>>,
    /// Its expiry.
    pub expires_at: Timestamp,
    /// The time of its revocation, if any.
    pub revoked_at: Option<Timestamp>,
}

/// A new key to store.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The key's public id.
    pub id: KeyId,
    /// The SHA-256 of its text.
    pub hash: KeyHash,
    /// Its first twelve characters, to recognize it.
    pub prefix: String,
    /// Its creation time.
    pub created_at: Timestamp,
}

/// A key in the administrator's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyEntry {
    /// The key's public id, the argument of `assay-admin key revoke`.
    pub id: KeyId,
    /// Its kind.
    pub kind: KeyKind,
    /// Its first twelve characters.
    pub prefix: String,
    /// The project of an ingest key.
    pub project_id: Option<ProjectId>,
    /// Its creation time.
    pub created_at: Timestamp,
    /// The name of an ingest key.
    pub name: Option<String>,
    /// Whether an ingest key may send runs that started long ago.
    pub backfill: bool,
    /// Whether an ingest key may send runs of pull requests only.
    pub pull_requests_only: bool,
    /// Its expiry; none for a key that is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// The time of its revocation, if any.
    pub revoked_at: Option<Timestamp>,
    /// For an ingest key without a secret: whose tokens stand for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<crate::identity::Trust>,
    /// The day of its latest use, as `2026-11-20`.
    pub last_used_on: Option<String>,
}
