//! The check of an ingest key that a request presents.
//!
//! [`PresentedIngestKey::of_header`] needs no look-up; [`IngestDirectory::check`] looks the key up and yields the
//! [`IngestGrant`] that a report is stored on behalf of. Uploads are limited by [`IngestGrant::budget_id`].

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

/// How many uploads a minute one key may send unless configured otherwise.
pub const DEFAULT_UPLOAD_LIMIT: u32 = 600;

/// The hash of an ingest key that a request presented: of the right shape, not yet looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PresentedIngestKey(KeyHash);

impl PresentedIngestKey {
    /// Reads the value of an `Authorization` header, without any look-up.
    ///
    /// Refuses with [`IngestRefusal::MissingKey`] (no header, another scheme, an empty token),
    /// [`IngestRefusal::WrongKeyType`] (a read key's prefix) or [`IngestRefusal::InvalidKey`] (not an ingest key's shape).
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

/// What a checked ingest key grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestGrant {
    /// The key's public id.
    pub key: KeyId,
    /// The project that reports are stored in.
    pub project: ProjectId,
    /// That project's name.
    pub project_name: String,
    /// That project's stable branch.
    pub stable_branch: String,
    /// What the key may send, and until when.
    pub terms: IngestTerms,
}

impl IngestGrant {
    /// What a stored key grants at `now`, if anything.
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

    /// What the rate limit counts an upload by. No `Authorization` header has this value, so that requests to the read API do
    /// not share the budget.
    pub fn budget_id(&self) -> Vec<u8> {
        [b"upload\n".as_slice(), self.key.0.as_bytes()].concat()
    }

    /// Which recordings the key may send.
    pub const fn rules(&self) -> RecordingRules {
        RecordingRules::of_key(&self.terms)
    }
}

/// Why a request is not served.
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

/// Why the check of an ingest key granted nothing.
#[derive(Debug, thiserror::Error)]
pub enum IngestCheckError {
    /// The request is refused.
    #[error(transparent)]
    Refused(#[from] IngestRefusal),
    /// The key could not be looked up, which says nothing of the key.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Ingest keys, as they were read at most half a second ago: a revocation counts within a second.
pub struct IngestDirectory {
    store: Arc<dyn IngestKeys>,
    keys: Recent<KeyHash, StoredIngestKey>,
}

impl IngestDirectory {
    /// The ingest keys of `store`.
    pub fn new(store: Arc<dyn IngestKeys>) -> Self {
        Self {
            store,
            keys: Recent::new(),
        }
    }

    /// Looks a key up and grants what it grants at `now`.
    ///
    /// Refuses, in this order, with [`IngestRefusal::InvalidKey`] (unknown), [`IngestRefusal::KeyRevoked`] or
    /// [`IngestRefusal::KeyExpired`]. Blocks on the store.
    pub fn check(&self, key: &PresentedIngestKey, now: Timestamp) -> Result<IngestGrant, IngestCheckError> {
        let hash = key.0;
        let stored = self.keys.get(hash, now, || self.store.ingest_key(&hash))?;
        Ok(IngestGrant::of(stored.ok_or(IngestRefusal::InvalidKey)?, now)?)
    }

    /// Whose share of threads and queue the look-up of this key takes. Does not block.
    pub fn share(&self, key: &PresentedIngestKey) -> AdmissionShare {
        self.keys.share(key.0)
    }
}
