//! Tokens of CI jobs in the place of an ingest key.

use std::sync::Arc;

use assay_domain::{
    identity::{CiJob, TokenVerifier},
    ingest::{IngestKeys, StoredIngestKey},
    key::{self, KeyHash},
    timestamp::Timestamp,
};

use crate::{
    check::{CheckError, Grant, IngestGrant, PresentedKey, Refusal, bearer_token},
    directory::AdmissionShare,
};

/// How every JSON object begins in base64.
const BEGINNING: &[u8] = b"eyJ";

/// The check of tokens. Clones share it.
#[derive(Clone)]
pub struct Tokens {
    keys: Arc<dyn IngestKeys>,
    verifier: Arc<dyn TokenVerifier>,
    /// The address of the installation, which tokens must be for.
    audience: String,
}

/// A token in a request. Nothing of it is verified.
#[derive(Clone)]
pub struct PresentedToken {
    text: String,
    /// The issuer that it names.
    pub issuer: String,
    /// The repository that it names.
    repository: String,
}

impl Tokens {
    /// A check by these keys and this verifier.
    pub fn new(keys: Arc<dyn IngestKeys>, verifier: Arc<dyn TokenVerifier>, audience: &str) -> Self {
        Self {
            keys,
            verifier,
            audience: audience.trim_end_matches('/').to_owned(),
        }
    }

    /// Reads the value of an `Authorization` header without any look-up. None if it has no token.
    pub fn of_header(&self, header: Option<&[u8]>) -> Option<Result<PresentedToken, Refusal>> {
        let text = header.and_then(bearer_token)?;
        if !text.starts_with(BEGINNING) || !text.contains(&b'.') {
            return None;
        }
        let read = || {
            let text = std::str::from_utf8(text).ok()?;
            let claims = self.verifier.unverified(text)?;
            Some(PresentedToken {
                text: text.to_owned(),
                issuer: claims.text("iss")?,
                repository: CiJob::of(&claims)?.repository,
            })
        };
        Some(read().ok_or(Refusal::InvalidToken("it is not the token of a job of CI")))
    }

    /// The share in which the token is looked up: that of its repository if its signature is right, else that of unknown
    /// keys. So forged tokens do not delay genuine ones. Does not block.
    pub fn share(&self, token: &PresentedToken) -> AdmissionShare {
        if self.verifier.is_genuine(&token.text, &token.issuer) {
            AdmissionShare::of(&PresentedKey::of_hash(token.hash()))
        } else {
            AdmissionShare::UNKNOWN_KEYS
        }
    }

    /// Verifies a token and returns the grant of the key that it stands for. Blocks on the store.
    ///
    /// An issuer or a repository that no key names is refused after one look-up, and no connection is opened.
    pub fn check(&self, token: &PresentedToken, now: Timestamp) -> Result<IngestGrant, CheckError> {
        let keys = self.keys.trusted_keys(&token.issuer, &token.repository)?;
        if keys.is_empty() {
            return Err(Refusal::InvalidToken("no project trusts its issuer and repository").into());
        }
        let own = self.audience.as_str();
        let trusts = keys.iter().filter_map(|key| key.terms.trust.as_ref());
        let audiences: Vec<&str> = trusts
            .filter_map(|trust| trust.audience.as_deref())
            .chain([own])
            .collect();
        let claims = self
            .verifier
            .verify(&token.text, &token.issuer, &audiences, now)?;
        let job = CiJob::of(&claims).ok_or(Refusal::InvalidToken("it is not the token of a job of CI"))?;
        let covers = |key: &StoredIngestKey| {
            key.terms.trust.as_ref().is_some_and(|trust| {
                trust.covers(&job) && claims.has("aud", trust.audience.as_deref().unwrap_or(own))
            })
        };
        // Of several keys for one job the valid one with the most rights counts.
        let rights = |key: &StoredIngestKey| (key.revoked_at.is_some(), key.terms.pull_requests_only);
        let covering = keys.into_iter().filter(covers).min_by_key(rights);
        let mut key = covering.ok_or(Refusal::InvalidToken(
            "its ref, environment or audience is not one that the project trusts",
        ))?;
        key.sender = Some(job.sender);
        key.terms.pull_requests_only |= job.may_be_of_fork;
        Ok(Grant::of(key, now)?)
    }

    /// Fetches the keys of a token's issuer, unless that was tried a moment ago. Blocks. Call it only after
    /// [`Self::check`] asked for it.
    pub fn fetch_keys(&self, token: &PresentedToken, now: Timestamp) {
        self.verifier.fetch_keys(&token.issuer, now);
    }
}

impl PresentedToken {
    /// Issuer and repository as the identity of a share.
    fn hash(&self) -> KeyHash {
        key::hash(format!("{}\n{}", self.issuer, self.repository).as_bytes())
    }

    /// The issuer as the identity of a share.
    pub fn issuer_hash(&self) -> KeyHash {
        key::hash(self.issuer.as_bytes())
    }
}
