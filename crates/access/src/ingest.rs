//! Checks the ingest key of a request.
//!
//! [`PresentedIngestKey::of_header`] needs no look-up. [`IngestDirectory::check`] looks up the key and returns the
//! [`IngestGrant`] for storing a report. [`IngestGrant::budget_id`] is the id for the rate limit of uploads.

use std::sync::Arc;

use assay_domain::{
    id::{KeyId, ProjectId},
    intake::{IngestKeys, IngestTerms, StoredIngestKey},
    key::{KeyHash, KeyKind},
    rules::RecordingRules,
    store::StoreError,
    timestamp::Timestamp,
};

use crate::{
    check::bearer_token,
    directory::{AdmissionShare, Recent},
    key,
};

/// Default limit of uploads per minute and key.
pub const DEFAULT_UPLOAD_LIMIT: u32 = 600;

/// The hash of an ingest key in a request. The key is well-formed but not looked up yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PresentedIngestKey(KeyHash);

impl PresentedIngestKey {
    /// Reads the value of an `Authorization` header, without any look-up.
    ///
    /// Refuses with [`IngestRefusal::MissingKey`] (no header, another scheme, an empty token),
    /// [`IngestRefusal::WrongKeyType`] (a read key's prefix) or [`IngestRefusal::InvalidKey`] (not an ingest key's
    /// shape).
    pub fn of_header(header: Option<&[u8]>) -> Result<Self, IngestRefusal> {
        let token = header.and_then(bearer_token).ok_or(IngestRefusal::MissingKey)?;
        if token.starts_with(key::READ_PREFIX.as_bytes()) {
            return Err(IngestRefusal::WrongKeyType);
        }
        if !key::has_shape(KeyKind::Ingest, token) {
            return Err(IngestRefusal::InvalidKey);
        }
        Ok(Self(key::hash(token)))
    }
}

/// The rights of a checked ingest key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestGrant {
    /// The key's public id.
    pub key: KeyId,
    /// The project that the reports are stored in.
    pub project: ProjectId,
    /// That project's name.
    pub project_name: String,
    /// That project's stable branch.
    pub stable_branch: String,
    /// The key's permissions and expiry.
    pub terms: IngestTerms,
}

impl IngestGrant {
    /// The rights of a stored key at `now`, if any.
    fn of(stored: StoredIngestKey, now: Timestamp) -> Result<Self, IngestRefusal> {
        if stored.revoked_at.is_some() {
            return Err(IngestRefusal::KeyRevoked);
        }
        if stored.terms.expires_at.is_some_and(|at| at <= now) {
            return Err(IngestRefusal::KeyExpired);
        }
        Ok(Self {
            key: stored.id,
            project: stored.project,
            project_name: stored.project_name,
            stable_branch: stored.stable_branch,
            terms: stored.terms,
        })
    }

    /// The id under which the rate limit counts an upload. No `Authorization` header has this value, so that uploads
    /// and requests to the read API have separate budgets.
    pub fn budget_id(&self) -> Vec<u8> {
        [b"upload\n".as_slice(), self.key.0.as_bytes()].concat()
    }

    /// The rules for recordings of this key.
    pub const fn rules(&self) -> RecordingRules {
        RecordingRules::of_key(&self.terms)
    }
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IngestRefusal {
    /// No bearer token.
    #[error("no bearer key was sent")]
    MissingKey,
    /// A read key.
    #[error("a read key was sent")]
    WrongKeyType,
    /// Not an ingest key's shape, or unknown.
    #[error("the ingest key is not valid")]
    InvalidKey,
    /// Revoked, whether expired or not.
    #[error("the ingest key was revoked")]
    KeyRevoked,
    /// Past its expiry.
    #[error("the ingest key is past its expiry")]
    KeyExpired,
}

/// The reason why the check of an ingest key failed.
#[derive(Debug, thiserror::Error)]
pub enum IngestCheckError {
    /// The request is refused.
    #[error(transparent)]
    Refused(#[from] IngestRefusal),
    /// The look-up failed, so the key's validity is unknown.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Caches ingest keys for half a second, so that a revocation takes effect within a second.
pub struct IngestDirectory {
    store: Arc<dyn IngestKeys>,
    keys: Recent<KeyHash, StoredIngestKey>,
}

impl IngestDirectory {
    /// Creates a cache over `store`.
    pub fn new(store: Arc<dyn IngestKeys>) -> Self {
        Self {
            store,
            keys: Recent::new(),
        }
    }

    /// Looks up a key and returns its rights at `now`.
    ///
    /// Refuses, in this order, with [`IngestRefusal::InvalidKey`] (unknown), [`IngestRefusal::KeyRevoked`] or
    /// [`IngestRefusal::KeyExpired`]. Blocks on the store.
    pub fn check(&self, key: &PresentedIngestKey, now: Timestamp) -> Result<IngestGrant, IngestCheckError> {
        let hash = key.0;
        let stored = self.keys.get(hash, now, || self.store.ingest_key(&hash))?;
        Ok(IngestGrant::of(stored.ok_or(IngestRefusal::InvalidKey)?, now)?)
    }

    /// The admission share for the look-up of this key. Does not block.
    pub fn share(&self, key: &PresentedIngestKey) -> AdmissionShare {
        self.keys.share(key.0)
    }
}
