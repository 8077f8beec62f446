//! The check of a key: what a request presents, what the store has, and what that allows.

use std::{ops::Deref, sync::Arc};

use assay_domain::{
    id::{KeyId, OrganizationId, ProjectId, SessionId},
    identity::TokenError,
    ingest::{IngestKeys, StoredIngestKey},
    key::{self, KeyHash, KeyKind, StoredKey},
    project::{Caller, Project},
    rules::RecordingRules,
    store::{ReadKeys, StoreError},
    timestamp::Timestamp,
};

use crate::{
    directory::Recent,
    session::{PersonAccess, Session},
};

/// Days before a read key's expiry in which answers announce it.
const NOTICE_DAYS: i64 = 7;

/// The hash of a key in a request. The key is well-formed but not looked up yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentedKey {
    hash: KeyHash,
    /// The session that has the key, or the rights of a person. The hash is then of the person and the rights.
    session: Option<Arc<Session>>,
}

impl PresentedKey {
    /// Reads the value of an `Authorization` header, without any look-up.
    ///
    /// Returns [`Refusal::MissingKey`] (no header, another scheme, an empty token), [`Refusal::WrongKeyType`] (the
    /// prefix of the other kind) or [`Refusal::InvalidKey`] (not the shape of a key of this kind).
    pub fn of_header(kind: KeyKind, header: Option<&[u8]>) -> Result<Self, Refusal> {
        Self::of_text(kind, header.and_then(bearer_token).ok_or(Refusal::MissingKey)?)
    }

    /// Reads the text of a key, without any look-up.
    ///
    /// Returns [`Refusal::WrongKeyType`] (the prefix of the other kind) or [`Refusal::InvalidKey`] (not the shape of a
    /// key of this kind).
    pub fn of_text(kind: KeyKind, token: &[u8]) -> Result<Self, Refusal> {
        if key::kind_by_prefix(token).is_some_and(|other| other != kind) {
            return Err(Refusal::WrongKeyType);
        }
        if !key::has_shape(kind, token) {
            return Err(Refusal::InvalidKey);
        }
        Ok(Self::of_hash(key::hash(token)))
    }

    /// A key of this hash.
    pub const fn of_hash(hash: KeyHash) -> Self {
        Self { hash, session: None }
    }

    /// The key or the person of a session. It was checked when the session began and is looked up again for every request.
    pub fn of_session(hash: KeyHash, session: Session) -> Self {
        let session = Some(Arc::new(session));
        Self { hash, session }
    }

    /// The hash of a person with these rights. No key has it.
    pub fn person_hash(subject: &str, access: &PersonAccess) -> KeyHash {
        let rights = format!("{}\n{:?}", access.organization, access.projects);
        key::hash(format!("person\n{rights}\n{subject}").as_bytes())
    }

    /// The session, if the request has one.
    pub(crate) fn session(&self) -> Option<SessionId> {
        self.session.as_ref().map(|session| session.id)
    }

    /// The hash under which the store has the key.
    pub const fn hash(&self) -> KeyHash {
        self.hash
    }

    /// The id of the key's budget of `requests`. No `Authorization` header has this value, so that each kind of request
    /// has a budget of its own.
    pub fn budget_id(&self, requests: &str) -> Vec<u8> {
        [requests.as_bytes(), b"\n", &self.hash.0].concat()
    }
}

/// The id under which the rate limit counts a request: the key in the `Authorization` header, else the whole value. All
/// spellings of a header share their key's budget.
pub fn budget_id(header: &[u8]) -> &[u8] {
    bearer_token(header).unwrap_or(header)
}

/// The token of a `Bearer` header, if it has one. Case does not matter in the scheme.
pub(crate) fn bearer_token(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at(header.iter().position(u8::is_ascii_whitespace)?);
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer") && !token.is_empty()).then_some(token)
}

/// A stored key of one kind: how it is looked up, and when it is valid.
pub trait AccessKey: Clone + Send + Sync + 'static {
    /// The kind.
    const KIND: KeyKind;
    /// The port that has such keys.
    type Store: ?Sized + Send + Sync;
    /// The cached projects of the owners of such keys.
    type Projects: Default + Send + Sync;

    /// The presented key in any state. Blocks.
    fn find(store: &Self::Store, key: &PresentedKey) -> Result<Option<Self>, StoreError>;

    /// Whether a session was ended. Blocks.
    fn has_ended(_: &Self::Store, _: SessionId) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Records the use of the key on the day of `now`. Blocks.
    fn record_use(&self, store: &Self::Store, now: Timestamp) -> Result<(), StoreError>;

    /// The key's public id.
    fn id(&self) -> KeyId;

    /// Returns, in this order, [`Refusal::KeyRevoked`], [`Refusal::KeyExpired`] or [`Refusal::TierTooLow`] if the key
    /// is not valid at `now`.
    fn validate(&self, now: Timestamp) -> Result<(), Refusal>;
}

impl AccessKey for StoredKey {
    const KIND: KeyKind = KeyKind::Read;
    type Store = dyn ReadKeys;
    /// The organization is part of the cache key, so that an entry of one organization is never returned to another.
    type Projects = Recent<(OrganizationId, ProjectId), Project>;

    fn find(store: &Self::Store, key: &PresentedKey) -> Result<Option<Self>, StoreError> {
        let Some(person) = key.session.as_ref().and_then(|session| session.person.as_ref()) else {
            return store.key(&key.hash);
        };
        let plan = store.plan(person.organization)?;
        Ok(plan.map(|plan| Self {
            id: key.hash.person_id(),
            is_person: true,
            organization: person.organization,
            plan,
            only: person.projects.as_deref().map(Arc::from),
            // The session of the person ends, and not the right.
            expires_at: Timestamp::from_unix_ms(i64::MAX),
            revoked_at: None,
        }))
    }

    fn has_ended(store: &Self::Store, session: SessionId) -> Result<bool, StoreError> {
        store.is_session_ended(session)
    }

    fn record_use(&self, store: &Self::Store, now: Timestamp) -> Result<(), StoreError> {
        match self.is_person {
            true => Ok(()),
            false => store.key_used(self.id, now),
        }
    }

    fn id(&self) -> KeyId {
        self.id
    }

    fn validate(&self, now: Timestamp) -> Result<(), Refusal> {
        if self.revoked_at.is_some() {
            return Err(Refusal::KeyRevoked);
        }
        if self.expires_at <= now {
            return Err(Refusal::KeyExpired);
        }
        if !self.plan.has_read_api() {
            return Err(Refusal::TierTooLow);
        }
        Ok(())
    }
}

impl AccessKey for StoredIngestKey {
    const KIND: KeyKind = KeyKind::Ingest;
    type Store = dyn IngestKeys;
    type Projects = ();

    fn find(store: &Self::Store, key: &PresentedKey) -> Result<Option<Self>, StoreError> {
        store.ingest_key(&key.hash)
    }

    /// The record of an upload includes the key's use.
    fn record_use(&self, _: &Self::Store, _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    fn id(&self) -> KeyId {
        self.id
    }

    fn validate(&self, now: Timestamp) -> Result<(), Refusal> {
        if self.revoked_at.is_some() {
            return Err(Refusal::KeyRevoked);
        }
        if self.terms.expires_at.is_some_and(|at| at <= now) {
            return Err(Refusal::KeyExpired);
        }
        Ok(())
    }
}

/// A key that was valid at the time of the request. Only a check returns one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant<K>(K);

/// The grant of a read key.
pub type ReadGrant = Grant<StoredKey>;
/// The grant of an ingest key.
pub type IngestGrant = Grant<StoredIngestKey>;

impl<K: AccessKey> Grant<K> {
    /// The grant of a stored key at `now`, if it is valid.
    pub(crate) fn of(stored: K, now: Timestamp) -> Result<Self, Refusal> {
        stored.validate(now).map(|()| Self(stored))
    }
}

impl<K> Deref for Grant<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.0
    }
}

impl ReadGrant {
    /// The organization whose data the key reads.
    pub fn caller(&self) -> Caller {
        Caller {
            organization: self.0.organization,
            plan: self.0.plan,
            only: self.0.only.clone(),
        }
    }

    /// The expiry, if it is near enough for an announcement: from seven days before.
    pub const fn expiry_notice(&self, now: Timestamp) -> Option<Timestamp> {
        if now.unix_ms() >= self.0.expires_at.plus_days(-NOTICE_DAYS).unix_ms() {
            Some(self.0.expires_at)
        } else {
            None
        }
    }
}

impl IngestGrant {
    /// The rules for recordings of this key.
    pub const fn rules(&self) -> RecordingRules {
        RecordingRules::of_key(&self.0.terms)
    }
}

/// The reason why a key is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No bearer token.
    #[error("no bearer key was sent")]
    MissingKey,
    /// A key of the other kind.
    #[error("a key of the other kind was sent")]
    WrongKeyType,
    /// Not the shape of a key, or unknown.
    #[error("the key is not valid")]
    InvalidKey,
    /// A token that stands for no key, for this reason.
    #[error("the token is not valid: {0}")]
    InvalidToken(&'static str),
    /// A session that was signed out, or whose time is over.
    #[error("the session has ended")]
    SessionEnded,
    /// Revoked, whether expired or not.
    #[error("the key was revoked")]
    KeyRevoked,
    /// Past its expiry.
    #[error("the key is past its expiry")]
    KeyExpired,
    /// The organization's plan does not include the read API.
    #[error("the organization's plan does not include the read API")]
    TierTooLow,
}

/// The reason why the check of a key failed.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The request is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The keys of a token's issuer have to be fetched, or its issuer does not answer.
    #[error(transparent)]
    Token(TokenError),
    /// The look-up failed, so the key's validity is unknown.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<TokenError> for CheckError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Wrong(why) => Self::Refused(Refusal::InvalidToken(why)),
            other @ (TokenError::KeysNeeded | TokenError::Unavailable) => Self::Token(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_domain::plan::Plan;
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

    fn refusal(header: &[u8]) -> Refusal {
        PresentedKey::of_header(KeyKind::Read, Some(header)).unwrap_err()
    }

    #[test]
    fn a_malformed_read_key_is_refused_without_a_look_up() {
        assert_eq!(
            PresentedKey::of_header(KeyKind::Read, None),
            Err(Refusal::MissingKey)
        );
        let (ingest, _) = key::mint(KeyKind::Ingest, NOW);
        let (read, _) = key::mint(KeyKind::Read, NOW);
        let read = read.reveal();
        for (header, expected) in [
            (String::new(), Refusal::MissingKey),
            ("Bearer".to_owned(), Refusal::MissingKey),
            ("Bearer ".to_owned(), Refusal::MissingKey),
            ("Bearer  \t ".to_owned(), Refusal::MissingKey),
            (format!("Basic {read}"), Refusal::MissingKey),
            (format!("Bearer{read}"), Refusal::MissingKey),
            (read.to_owned(), Refusal::MissingKey),
            (format!("Bearer {}", ingest.reveal()), Refusal::WrongKeyType),
            ("Bearer svc_".to_owned(), Refusal::WrongKeyType),
            ("Bearer svc_ro".to_owned(), Refusal::WrongKeyType),
            ("Bearer svc_ro_".to_owned(), Refusal::InvalidKey),
            (format!("Bearer {read}x"), Refusal::InvalidKey),
            (format!("Bearer {read}, Bearer {read}"), Refusal::InvalidKey),
            (format!("Bearer {}", read.to_uppercase()), Refusal::InvalidKey),
            ("Bearer other".to_owned(), Refusal::InvalidKey),
        ] {
            assert_eq!(refusal(header.as_bytes()), expected, "{header:?}");
        }
        assert_eq!(refusal(b"Bearer \xff\xfe"), Refusal::InvalidKey);
    }

    #[test]
    fn the_scheme_may_be_in_any_case() {
        let (read, new) = key::mint(KeyKind::Read, NOW);
        for scheme in ["Bearer", "bearer", "BEARER", "bEaReR  "] {
            let header = format!("{scheme} {}", read.reveal());
            let presented = PresentedKey::of_header(KeyKind::Read, Some(header.as_bytes())).unwrap();
            assert_eq!(presented, PresentedKey::of_hash(new.hash));
        }
    }

    #[test]
    fn all_spellings_of_a_header_share_one_budget() {
        for header in ["Bearer k", "bearer k", "BEARER   k", "Bearer\t k \t", "Bearer k "] {
            assert_eq!(budget_id(header.as_bytes()), b"k", "{header:?}");
        }
        for header in ["Basic k", "Bearer", "Bearer ", "Bearerk", ""] {
            assert_eq!(budget_id(header.as_bytes()), header.as_bytes());
        }
        assert_ne!(budget_id(b"Bearer k"), budget_id(b"Bearer K"));
    }

    #[test]
    fn the_notice_begins_seven_days_before_the_expiry() {
        let stored = StoredKey {
            id: KeyId(uuid::Uuid::nil()),
            is_person: false,
            only: None,
            organization: OrganizationId(uuid::Uuid::nil()),
            plan: Plan::Standard,
            expires_at: NOW.plus_days(7),
            revoked_at: None,
        };
        let grant = Grant::of(stored, NOW).unwrap();
        assert_eq!(grant.expiry_notice(NOW), Some(NOW.plus_days(7)));
        assert_eq!(grant.expiry_notice(NOW.plus_ms(-1)), None);
    }

    proptest! {
        #[test]
        fn any_header_is_answered(header in any::<Vec<u8>>()) {
            prop_assert!(PresentedKey::of_header(KeyKind::Read, Some(&header)).is_err());
        }
    }
}
