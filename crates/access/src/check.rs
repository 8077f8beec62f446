//! The check of a request's `Authorization` header.

use assay_domain::{
    id::KeyId,
    key::{KeyHash, KeyKind, StoredKey},
    project::Caller,
    store::StoreError,
    timestamp::Timestamp,
};

use crate::key;

/// Days before a key's expiry in which answers announce it.
const NOTICE_DAYS: i64 = 7;

/// The hash of a read key in a request. The key is well-formed but not looked up yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PresentedKey(KeyHash);

impl PresentedKey {
    /// Reads the value of an `Authorization` header, without any look-up.
    ///
    /// Returns [`Refusal::MissingKey`] (no header, another scheme, an empty token), [`Refusal::WrongKeyType`] (an
    /// ingest key's prefix) or [`Refusal::InvalidKey`] (not a read key's shape).
    pub fn of_header(header: Option<&[u8]>) -> Result<Self, Refusal> {
        Self::of_text(header.and_then(bearer_token).ok_or(Refusal::MissingKey)?)
    }

    /// Reads the text of a key, without any look-up.
    ///
    /// Refuses with [`Refusal::WrongKeyType`] (an ingest key's prefix) or [`Refusal::InvalidKey`] (not a read key's
    /// shape).
    pub fn of_text(token: &[u8]) -> Result<Self, Refusal> {
        let is_read = token.starts_with(key::READ_PREFIX.as_bytes());
        if !is_read && token.starts_with(key::INGEST_PREFIX.as_bytes()) {
            return Err(Refusal::WrongKeyType);
        }
        if !key::has_shape(KeyKind::Read, token) {
            return Err(Refusal::InvalidKey);
        }
        Ok(Self(key::hash(token)))
    }

    /// The key of a session. It was checked when the session began and is looked up again for every request.
    pub const fn of_hash(hash: KeyHash) -> Self {
        Self(hash)
    }

    /// The hash under which the store has the key.
    pub const fn hash(&self) -> KeyHash {
        self.0
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

/// The rights of a checked read key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The organization whose data the key reads.
    pub caller: Caller,
    /// The key's public id.
    pub key: KeyId,
    /// The expiry of the key.
    pub expires_at: Timestamp,
}

impl Grant {
    /// The rights of a stored key at `now`, if any.
    pub(crate) fn of(stored: &StoredKey, now: Timestamp) -> Result<Self, Refusal> {
        if stored.revoked_at.is_some() {
            return Err(Refusal::KeyRevoked);
        }
        if stored.expires_at <= now {
            return Err(Refusal::KeyExpired);
        }
        if !stored.plan.has_read_api() {
            return Err(Refusal::TierTooLow);
        }
        Ok(Self {
            caller: Caller {
                organization: stored.organization,
                plan: stored.plan,
            },
            key: stored.id,
            expires_at: stored.expires_at,
        })
    }

    /// The expiry, if it is near enough for an announcement: from seven days before.
    pub const fn expiry_notice(&self, now: Timestamp) -> Option<Timestamp> {
        if now.unix_ms() >= self.expires_at.plus_days(-NOTICE_DAYS).unix_ms() {
            Some(self.expires_at)
        } else {
            None
        }
    }
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No bearer token.
    #[error("no bearer key was sent")]
    MissingKey,
    /// An ingest key.
    #[error("an ingest key was sent")]
    WrongKeyType,
    /// Not a read key's shape, or unknown.
    #[error("the read key is not valid")]
    InvalidKey,
    /// Revoked, whether expired or not.
    #[error("the read key was revoked")]
    KeyRevoked,
    /// Past its expiry.
    #[error("the read key is past its expiry")]
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
    /// The look-up failed, so the key's validity is unknown.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests {
    use assay_domain::plan::Plan;
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

    fn refusal(header: &[u8]) -> Refusal {
        PresentedKey::of_header(Some(header)).unwrap_err()
    }

    #[test]
    fn a_malformed_read_key_is_refused_without_a_look_up() {
        assert_eq!(PresentedKey::of_header(None), Err(Refusal::MissingKey));
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
            let presented = PresentedKey::of_header(Some(header.as_bytes())).unwrap();
            assert_eq!(presented, PresentedKey(new.hash));
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
        let grant = Grant {
            caller: Caller {
                organization: assay_domain::id::OrganizationId(uuid::Uuid::nil()),
                plan: Plan::Standard,
            },
            key: KeyId(uuid::Uuid::nil()),
            expires_at: NOW.plus_days(7),
        };
        assert_eq!(grant.expiry_notice(NOW), Some(NOW.plus_days(7)));
        assert_eq!(grant.expiry_notice(NOW.plus_ms(-1)), None);
    }

    proptest! {
        #[test]
        fn any_header_is_answered(header in any::<Vec<u8>>()) {
            prop_assert!(PresentedKey::of_header(Some(&header)).is_err());
        }
    }
}
