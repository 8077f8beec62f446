//! The session: an encrypted text that contains the hash of a read key, the times of signing in and of its last use, and a
//! random number. The session of a person who signed in at a provider contains what that person may read instead. Browsers
//! have it in a cookie, terminals in the place of a read key.
//!
//! The server stores no open sessions and never stores the key's text. It looks up the hash for every request, so that
//! revoking a key ends its sessions. It stores the number of a session that was signed out, so that no copy of it opens
//! anything.

use std::sync::Arc;

use assay_domain::{
    id::{OrganizationId, ProjectId, SessionId},
    identity::SignInAttempt,
    key::KeyHash,
    timestamp::Timestamp,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    digest::{SHA256, digest},
    error::Unspecified,
    rand::{SecureRandom, SystemRandom},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::check::{PresentedKey, Refusal, bearer_token};

/// A session ends after this long without a page.
const IDLE_MS: i64 = 12 * 3_600_000;
/// A session ends this long after signing in, also in use.
const LONGEST_MS: i64 = 7 * 24 * 3_600_000;
/// The age at which a page renews the time in a cookie.
const RENEWED_AFTER_MS: i64 = 10 * 60_000;
/// After this long, a person's provider is asked again what the person may read.
const ASKED_AGAIN_MS: i64 = 3_600_000;
/// Time for signing in at a provider.
const ATTEMPT_MS: i64 = 10 * 60_000;
/// How a terminal's session begins, and how long it lasts at most.
const TERMINAL: &str = "svc_session_";
const TERMINAL_PURPOSE: &[u8] = b"assay terminal";
/// The purpose of a sign-in that a terminal began.
const DEVICE_PURPOSE: &[u8] = b"assay device";
const HASH_BYTES: usize = 32;
const ID_BYTES: usize = 16;

/// A cookie of the pages.
#[derive(Clone, Copy)]
struct Cookie {
    name: &'static str,
    /// Associated data: a value sealed for one purpose must not open for another.
    purpose: &'static [u8],
    same_site: &'static str,
    lasts_ms: i64,
}

const SESSION: Cookie = Cookie {
    name: "assay",
    purpose: b"assay session",
    same_site: "Strict",
    lasts_ms: IDLE_MS,
};

/// A provider sends the browser back from another site, so this cookie comes with such a request.
const ATTEMPT: Cookie = Cookie {
    name: "assay-sign-in",
    purpose: b"assay sign-in",
    same_site: "Lax",
    lasts_ms: ATTEMPT_MS,
};

/// Seals and opens sessions.
#[derive(Clone)]
pub struct Sessions {
    key: Arc<LessSafeKey>,
    random: SystemRandom,
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Session {
    key: [u8; HASH_BYTES],
    /// Its number.
    pub id: SessionId,
    /// The rights of a person who signed in at a provider.
    pub person: Option<PersonAccess>,
    signed_in_at: Timestamp,
    used_at: Timestamp,
}

/// What a person may read who signed in at a provider.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PersonAccess {
    /// The provider's place in the operator's file.
    pub provider: usize,
    /// The organization.
    pub organization: OrganizationId,
    /// Its projects; none for all.
    pub projects: Option<Vec<ProjectId>>,
}

/// A sign-in at a provider that this browser began, and the page to show afterwards.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BegunSignIn {
    /// The sign-in.
    pub attempt: SignInAttempt,
    /// The page to show afterwards.
    pub next: Option<String>,
    at: Timestamp,
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
            is_secure,
        })
    }

    /// Whether browsers reach the pages over TLS.
    pub const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// A session that begins at `now`.
    fn begin(
        &self,
        key: KeyHash,
        person: Option<PersonAccess>,
        now: Timestamp,
    ) -> Result<Session, NoRandomness> {
        Ok(Session {
            key: key.0,
            id: SessionId(Uuid::from_bytes(self.random_bytes()?)),
            person,
            signed_in_at: now,
            used_at: now,
        })
    }

    /// The value of the `Set-Cookie` header for a session that begins at `now`.
    pub fn cookie(
        &self,
        key: KeyHash,
        person: Option<PersonAccess>,
        now: Timestamp,
    ) -> Result<String, NoRandomness> {
        self.sealed_cookie(SESSION, &self.begin(key, person, now)?)
    }

    /// The text of a terminal's session that begins at `now`, and its seconds.
    pub fn terminal(
        &self,
        key: KeyHash,
        person: PersonAccess,
        now: Timestamp,
    ) -> Result<(String, i64), NoRandomness> {
        let sealed = self.sealed(TERMINAL_PURPOSE, &self.begin(key, Some(person), now)?)?;
        Ok((format!("{TERMINAL}{sealed}"), ASKED_AGAIN_MS / 1_000))
    }

    /// The terminal's session in the value of an `Authorization` header. None if it has something else.
    pub fn of_bearer(&self, header: &[u8], now: Timestamp) -> Option<Result<Session, Refusal>> {
        let sealed = bearer_token(header)?.strip_prefix(TERMINAL.as_bytes())?;
        let is_open = |session: &Session| (0..ASKED_AGAIN_MS).contains(&now.since_ms(session.signed_in_at));
        let session = self.opened(TERMINAL_PURPOSE, sealed).filter(is_open);
        Some(session.ok_or(Refusal::SessionEnded))
    }

    /// Seals a terminal's sign-in at a provider, which the terminal asks for until it ends.
    pub fn device(&self, provider: usize, code: &str) -> Result<String, NoRandomness> {
        self.sealed(DEVICE_PURPOSE, &(provider, code))
    }

    /// The provider and the code of a terminal's sign-in, from the value of an `Authorization` header.
    pub fn device_of_bearer(&self, header: &[u8]) -> Option<(usize, String)> {
        self.opened(DEVICE_PURPOSE, bearer_token(header)?)
    }

    /// The value of the `Set-Cookie` header for a session in use at `now`.
    pub fn renewed(&self, session: Session, now: Timestamp) -> Result<String, NoRandomness> {
        let session = Session {
            used_at: now,
            ..session
        };
        self.sealed_cookie(SESSION, &session)
    }

    /// Begins a sign-in at a provider. Returns it with the value of the `Set-Cookie` header.
    pub fn begin_sign_in(
        &self,
        (provider, is_silent): (usize, bool),
        next: Option<&str>,
        at: Timestamp,
    ) -> Result<(SignInAttempt, String), NoRandomness> {
        let attempt = SignInAttempt {
            provider,
            state: URL_SAFE_NO_PAD.encode(self.random_bytes::<ID_BYTES>()?),
            nonce: URL_SAFE_NO_PAD.encode(self.random_bytes::<ID_BYTES>()?),
            code_verifier: URL_SAFE_NO_PAD.encode(self.random_bytes::<HASH_BYTES>()?),
            is_silent,
        };
        let begun = BegunSignIn {
            attempt: attempt.clone(),
            next: next.map(str::to_owned),
            at,
        };
        Ok((attempt, self.sealed_cookie(ATTEMPT, &begun)?))
    }

    /// The sign-in that a `Cookie` header has, if it began at most ten minutes before `now`.
    pub fn begun_sign_in(&self, header: &str, now: Timestamp) -> Option<BegunSignIn> {
        let is_open = |begun: &BegunSignIn| (0..ATTEMPT_MS).contains(&now.since_ms(begun.at));
        self.opened_cookie(ATTEMPT, header, is_open)
    }

    /// The value of the `Set-Cookie` header that ends a sign-in.
    pub fn ended_sign_in(&self) -> String {
        self.set_cookie(ATTEMPT, "", 0)
    }

    /// The value of the `Set-Cookie` header that ends a session.
    pub fn expired_cookie(&self) -> String {
        self.set_cookie(SESSION, "", 0)
    }

    /// The session in a `Cookie` header. None if the cookie is missing or not genuine, or if the session ended before
    /// `now`.
    pub fn of_header(&self, header: &str, now: Timestamp) -> Option<Session> {
        let is_open = |session: &Session| {
            now.since_ms(session.used_at) < IDLE_MS && now.since_ms(session.signed_in_at) < LONGEST_MS
        };
        self.opened_cookie(SESSION, header, is_open)
    }

    fn random_bytes<const N: usize>(&self) -> Result<[u8; N], NoRandomness> {
        let mut bytes = [0; N];
        self.random.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn sealed(&self, purpose: &'static [u8], content: &impl Serialize) -> Result<String, NoRandomness> {
        // Structs of texts, numbers and lists always have a form in JSON.
        let mut sealed = serde_json::to_vec(content).map_err(|_| NoRandomness)?;
        let nonce = self.random_bytes::<NONCE_LEN>()?;
        let with = Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(with, Aad::from(purpose), &mut sealed)?;
        Ok(URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    fn opened<T: DeserializeOwned>(&self, purpose: &'static [u8], value: &[u8]) -> Option<T> {
        let mut bytes = URL_SAFE_NO_PAD.decode(value).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.key.open_in_place(nonce, Aad::from(purpose), sealed).ok()?;
        serde_json::from_slice(opened).ok()
    }

    fn sealed_cookie(&self, cookie: Cookie, content: &impl Serialize) -> Result<String, NoRandomness> {
        let value = self.sealed(cookie.purpose, content)?;
        Ok(self.set_cookie(cookie, &value, cookie.lasts_ms / 1_000))
    }

    /// The content of the first genuine cookie of this name: another host of the domain may set one, too.
    fn opened_cookie<T: DeserializeOwned>(
        &self,
        cookie: Cookie,
        header: &str,
        is_open: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let name = self.name(cookie);
        let pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs.filter(|(found, _)| *found == name);
        values.find_map(|(_, value)| self.opened(cookie.purpose, value.as_bytes()).filter(&is_open))
    }

    /// A browser accepts a cookie with this prefix only over TLS, and sends it only to this host.
    fn name(&self, cookie: Cookie) -> String {
        format!("{}{}", if self.is_secure { "__Host-" } else { "" }, cookie.name)
    }

    fn set_cookie(&self, cookie: Cookie, value: &str, seconds: i64) -> String {
        let (name, secure) = (self.name(cookie), if self.is_secure { "; Secure" } else { "" });
        let same_site = cookie.same_site;
        format!("{name}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite={same_site}{secure}")
    }
}

impl Session {
    /// Whose requests these are: the key's or the person's.
    pub fn presented(&self) -> PresentedKey {
        PresentedKey::of_session(KeyHash(self.key), self.clone())
    }

    /// The provider that must be asked again what the person may read.
    pub fn provider_to_ask(&self, now: Timestamp) -> Option<usize> {
        let person = self.person.as_ref()?;
        (now.since_ms(self.signed_in_at) >= ASKED_AGAIN_MS).then_some(person.provider)
    }

    /// When no cookie of this session opens a page any more.
    pub const fn expires_at(&self) -> Timestamp {
        self.signed_in_at.plus_ms(LONGEST_MS)
    }

    /// Whether a page at `now` sends a renewed cookie, so that a session in use does not end.
    pub const fn needs_renewal(&self, now: Timestamp) -> bool {
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
        let cookie = cookie_pair(&sessions.cookie(KEY, None, NOW).unwrap());
        let opened = sessions.of_header(&format!("x=y; {cookie}"), NOW).unwrap();
        assert_eq!(opened.key, KEY.0);
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
        let cookie = cookie_pair(&sessions.cookie(KEY, None, NOW).unwrap());
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
        let set = sessions.cookie(KEY, None, NOW).unwrap();
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
            let cookie = cookie_pair(&sessions.renewed(session.clone(), now).unwrap());
            session = sessions.of_header(&cookie, now).unwrap();
        }
        let cookie = cookie_pair(&sessions.renewed(session, NOW.plus_ms(LONGEST_MS - 1)).unwrap());
        assert!(sessions.of_header(&cookie, NOW.plus_ms(LONGEST_MS - 1)).is_some());
        assert_eq!(sessions.of_header(&cookie, NOW.plus_ms(LONGEST_MS)), None);
        assert!(!opened(1_000).unwrap().needs_renewal(NOW.plus_ms(1_000)));
    }

    #[test]
    fn the_provider_of_a_person_is_asked_again_after_an_hour_and_that_of_a_key_never() {
        let sessions = Sessions::new(Some("a"), true).unwrap();
        let person = PersonAccess {
            provider: 3,
            organization: OrganizationId(Uuid::from_u128(1)),
            projects: Some((0..50).map(|id| ProjectId(Uuid::from_u128(id))).collect()),
        };
        let cookie = sessions.cookie(KEY, Some(person.clone()), NOW).unwrap();
        assert!(
            cookie.len() < 4_000,
            "browsers keep cookies of 4 kB: {}",
            cookie.len()
        );
        let session = sessions.of_header(&cookie_pair(&cookie), NOW).unwrap();
        assert_eq!(session.person.as_ref(), Some(&person));
        assert_eq!(session.provider_to_ask(NOW.plus_ms(ASKED_AGAIN_MS - 1)), None);
        assert_eq!(session.provider_to_ask(NOW.plus_ms(ASKED_AGAIN_MS)), Some(3));
        // Pages in between do not put that off.
        let later = NOW.plus_ms(ASKED_AGAIN_MS / 2);
        let renewed = cookie_pair(&sessions.renewed(session, later).unwrap());
        let renewed = sessions.of_header(&renewed, later).unwrap();
        assert_eq!(renewed.provider_to_ask(NOW.plus_ms(ASKED_AGAIN_MS)), Some(3));
        let of_key = cookie_pair(&sessions.cookie(KEY, None, NOW).unwrap());
        let of_key = sessions.of_header(&of_key, NOW).unwrap();
        assert_eq!(of_key.provider_to_ask(NOW.plus_ms(LONGEST_MS - 1)), None);
    }

    #[test]
    fn a_session_of_a_terminal_ends_after_an_hour_and_is_no_cookie() {
        let sessions = Sessions::new(Some("a"), true).unwrap();
        let access = PersonAccess {
            provider: 0,
            organization: OrganizationId(Uuid::from_u128(1)),
            projects: None,
        };
        let (token, seconds) = sessions.terminal(KEY, access, NOW).unwrap();
        assert_eq!(seconds, 3_600);
        let opened =
            |text: &str, ms| sessions.of_bearer(format!("Bearer {text}").as_bytes(), NOW.plus_ms(ms));
        assert_eq!(opened(&token, ASKED_AGAIN_MS - 1).unwrap().unwrap().key, KEY.0);
        for ms in [ASKED_AGAIN_MS, -1] {
            assert_eq!(opened(&token, ms), Some(Err(Refusal::SessionEnded)), "{ms}");
        }
        let cookie = cookie_pair(&sessions.cookie(KEY, None, NOW).unwrap());
        let (_, of_cookie) = cookie.split_once('=').unwrap();
        let of_device = sessions.device(0, "code").unwrap();
        for sealed in [of_cookie, &of_device, "", "AAAA"] {
            assert_eq!(
                opened(&format!("{TERMINAL}{sealed}"), 0),
                Some(Err(Refusal::SessionEnded))
            );
        }
        assert_eq!(opened("svc_ro_0", 0), None);
        let of_terminal = token.replace(TERMINAL, "__Host-assay=");
        assert_eq!(sessions.of_header(&of_terminal, NOW), None);
    }

    #[test]
    fn a_sign_in_lasts_ten_minutes_and_is_no_session() {
        let sessions = Sessions::new(Some("a"), true).unwrap();
        let (attempt, set) = sessions.begin_sign_in((0, false), Some("/p/x"), NOW).unwrap();
        assert!(
            set.starts_with("__Host-assay-sign-in=") && set.ends_with("; SameSite=Lax; Secure"),
            "{set}"
        );
        let pair = cookie_pair(&set);
        let begun = sessions
            .begun_sign_in(&pair, NOW.plus_ms(ATTEMPT_MS - 1))
            .unwrap();
        assert_eq!((begun.attempt, begun.next.as_deref()), (attempt, Some("/p/x")));
        assert_eq!(sessions.begun_sign_in(&pair, NOW.plus_ms(ATTEMPT_MS)), None);
        assert_eq!(sessions.begun_sign_in(&pair, NOW.plus_ms(-1)), None);
        let renamed = pair.replace("__Host-assay-sign-in", "__Host-assay");
        assert_eq!(sessions.of_header(&renamed, NOW), None);
        let session = cookie_pair(&sessions.cookie(KEY, None, NOW).unwrap());
        let renamed = session.replace("__Host-assay", "__Host-assay-sign-in");
        assert_eq!(sessions.begun_sign_in(&renamed, NOW), None);
    }
}
