//! The session: an encrypted cookie that contains the hash of a read key, the times of signing in and of its last use, and
//! a random number.
//!
//! The server stores no open sessions and never stores the key's text. It looks up the hash for every page, so that
//! revoking a key ends its sessions. It stores the number of a session that was signed out, so that no copy of the cookie
//! opens a page.

use std::sync::Arc;

use assay_domain::{id::SessionId, key::KeyHash, timestamp::Timestamp};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    digest::{SHA256, digest},
    error::Unspecified,
    rand::{SecureRandom, SystemRandom},
};
use uuid::Uuid;

/// A session ends after this long without a page.
const IDLE_MS: i64 = 12 * 3_600_000;
/// A session ends this long after signing in, also in use.
const LONGEST_MS: i64 = 7 * 24 * 3_600_000;
/// The age at which a page renews the time in a cookie.
const RENEWED_AFTER_MS: i64 = 10 * 60_000;
/// Associated data: a value sealed for one purpose must not open for another.
const PURPOSE: &[u8] = b"assay session";
const HASH_BYTES: usize = 32;
const TIME_BYTES: usize = 8;
const ID_BYTES: usize = 16;

/// Seals and opens sessions.
#[derive(Clone)]
pub struct Sessions {
    key: Arc<LessSafeKey>,
    random: SystemRandom,
    cookie: &'static str,
    is_secure: bool,
}

/// The system has no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system has no random numbers")]
pub struct NoRandomness;

impl From<Unspecified> for NoRandomness {
    fn from(_: Unspecified) -> Self {
        Self
    }
}

/// The content of a cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Session {
    pub(crate) key: KeyHash,
    pub(crate) id: SessionId,
    signed_in_at: Timestamp,
    used_at: Timestamp,
}

impl Sessions {
    /// Creates sessions under a secret of any length. Processes with the same secret share their sessions. `is_secure`
    /// states whether browsers reach the pages over TLS.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(secret: Option<&str>, is_secure: bool) -> Result<Self, NoRandomness> {
        let random = SystemRandom::new();
        let mut bytes = [0; HASH_BYTES];
        match secret {
            Some(secret) => bytes.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref()),
            None => random.fill(&mut bytes)?,
        }
        Ok(Self {
            key: Arc::new(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes)?)),
            random,
            // A browser accepts a cookie with this prefix only over TLS, and sends it only to this host.
            cookie: if is_secure { "__Host-assay" } else { "assay" },
            is_secure,
        })
    }

    /// Whether browsers reach the pages over TLS.
    pub(crate) const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The value of the `Set-Cookie` header for a session that begins at `now`.
    pub(crate) fn cookie(&self, key: KeyHash, now: Timestamp) -> Result<String, NoRandomness> {
        let mut id = [0; ID_BYTES];
        self.random.fill(&mut id)?;
        self.sealed(Session {
            key,
            id: SessionId(Uuid::from_bytes(id)),
            signed_in_at: now,
            used_at: now,
        })
    }

    /// The value of the `Set-Cookie` header for a session in use at `now`.
    pub(crate) fn renewed(&self, session: Session, now: Timestamp) -> Result<String, NoRandomness> {
        self.sealed(Session {
            used_at: now,
            ..session
        })
    }

    fn sealed(&self, session: Session) -> Result<String, NoRandomness> {
        let times = [session.signed_in_at, session.used_at].map(|at| at.unix_ms().to_be_bytes());
        let mut sealed = [&session.key.0[..], &times[0], &times[1], session.id.0.as_bytes()].concat();
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce)?;
        self.key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(PURPOSE),
            &mut sealed,
        )?;
        let value = URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat());
        Ok(self.set_cookie(&value, IDLE_MS / 1_000))
    }

    /// The value of the `Set-Cookie` header that ends a session.
    pub(crate) fn expired_cookie(&self) -> String {
        self.set_cookie("", 0)
    }

    fn set_cookie(&self, value: &str, seconds: i64) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!(
            "{}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}",
            self.cookie
        )
    }

    /// The session in a `Cookie` header. None if the cookie is missing or not genuine, or if the session ended before
    /// `now`. Of several cookies of the name the first genuine one counts: another host of the domain may set one, too.
    pub(crate) fn of_header(&self, header: &str, now: Timestamp) -> Option<Session> {
        let pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs.filter(|(name, _)| *name == self.cookie);
        values.find_map(|(_, value)| self.opened(value, now))
    }

    fn opened(&self, value: &str, now: Timestamp) -> Option<Session> {
        let mut bytes = URL_SAFE_NO_PAD.decode(value).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.key.open_in_place(nonce, Aad::from(PURPOSE), sealed).ok()?;
        let (hash, times) = opened.split_first_chunk::<HASH_BYTES>()?;
        let (signed_in_at, rest) = times.split_first_chunk::<TIME_BYTES>()?;
        let (used_at, id) = rest.split_first_chunk::<TIME_BYTES>()?;
        let time = |bytes: [u8; TIME_BYTES]| Timestamp::from_unix_ms(i64::from_be_bytes(bytes));
        let session = Session {
            key: KeyHash(*hash),
            id: SessionId(Uuid::from_slice(id).ok()?),
            signed_in_at: time(*signed_in_at),
            used_at: time(*used_at),
        };
        let is_open =
            now.since_ms(session.used_at) < IDLE_MS && now.since_ms(session.signed_in_at) < LONGEST_MS;
        is_open.then_some(session)
    }
}

impl Session {
    /// When no cookie of this session opens a page any more.
    pub(crate) const fn expires_at(&self) -> Timestamp {
        self.signed_in_at.plus_ms(LONGEST_MS)
    }

    /// Whether a page at `now` sends a renewed cookie, so that a session in use does not end.
    pub(crate) const fn needs_renewal(&self, now: Timestamp) -> bool {
        now.since_ms(self.used_at) > RENEWED_AFTER_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);
    const KEY: KeyHash = KeyHash([7; 32]);

    fn cookie_pair(set_cookie: &str) -> String {
        set_cookie.split(';').next().unwrap().to_owned()
    }

    #[test]
    fn a_session_is_opened_under_its_secret_alone() {
        let sessions = Sessions::new(Some("a"), false).unwrap();
        let cookie = cookie_pair(&sessions.cookie(KEY, NOW).unwrap());
        let opened = sessions.of_header(&format!("x=y; {cookie}"), NOW).unwrap();
        assert_eq!(opened.key, KEY);
        let same = Sessions::new(Some("a"), false).unwrap();
        assert!(same.of_header(&cookie, NOW).is_some());
        let (name, _) = cookie.split_once('=').unwrap();
        assert!(
            same.of_header(&format!("{name}=planted; {cookie}"), NOW)
                .is_some(),
            "beside a foreign one"
        );
        for other in [
            Sessions::new(Some("b"), false).unwrap(),
            Sessions::new(None, false).unwrap(),
        ] {
            assert_eq!(other.of_header(&cookie, NOW), None);
        }
    }

    #[test]
    fn a_changed_cookie_opens_no_session() {
        let sessions = Sessions::new(Some("a"), false).unwrap();
        let cookie = cookie_pair(&sessions.cookie(KEY, NOW).unwrap());
        for place in "assay=".len()..cookie.len() {
            let mut changed = cookie.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last character of unpadded base64 has unused bits. A cookie that sets one of them is rejected.
            assert_eq!(sessions.of_header(&changed, NOW), None, "{place}");
        }
        for text in ["", "assay", "assay=", "assay=AAAA", "other=1"] {
            assert_eq!(sessions.of_header(text, NOW), None);
        }
    }

    #[test]
    fn a_session_ends_after_twelve_idle_hours_and_is_renewed_in_use() {
        let sessions = Sessions::new(None, true).unwrap();
        let set = sessions.cookie(KEY, NOW).unwrap();
        assert!(
            set.starts_with("__Host-assay=") && set.ends_with("; Secure"),
            "{set}"
        );
        let cookie = cookie_pair(&set);
        let opened = |ms| sessions.of_header(&cookie, NOW.plus_ms(ms));
        assert!(
            opened(IDLE_MS - 1)
                .unwrap()
                .needs_renewal(NOW.plus_ms(IDLE_MS - 1))
        );
        assert_eq!(opened(IDLE_MS), None);
        // Renewing does not extend a session beyond its longest age.
        let mut session = sessions.of_header(&cookie, NOW).unwrap();
        for hours in (0..7 * 24).step_by(6) {
            let now = NOW.plus_ms(hours * 3_600_000);
            let cookie = cookie_pair(&sessions.renewed(session, now).unwrap());
            session = sessions.of_header(&cookie, now).unwrap();
        }
        let cookie = cookie_pair(&sessions.renewed(session, NOW.plus_ms(LONGEST_MS - 1)).unwrap());
        assert!(sessions.of_header(&cookie, NOW.plus_ms(LONGEST_MS - 1)).is_some());
        assert_eq!(sessions.of_header(&cookie, NOW.plus_ms(LONGEST_MS)), None);
        assert!(!opened(1_000).unwrap().needs_renewal(NOW.plus_ms(1_000)));
    }
}
