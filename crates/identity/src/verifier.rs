//! The verifier of tokens, with the keys of the issuers that it was asked about.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enums of the token library may grow"
)]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use assay_domain::{
    identity::{Claims, TokenError, TokenVerifier},
    timestamp::Timestamp,
};
use jsonwebtoken::{Validation, crypto::verify, dangerous::insecure_decode_claims, decode, decode_header};

use crate::{
    issuer::{Client, Discovered},
    keys::use_ring,
};

/// Longest token, in bytes.
const LONGEST_TOKEN: usize = 16 << 10;
/// How far clocks may differ, in seconds.
const SKEW_S: i64 = 60;
/// After this long, keys are fetched again.
const FRESH_MS: i64 = 3_600_000;
/// After this long, keys are not used any more, also while their issuer does not answer.
const LONGEST_MS: i64 = 24 * 3_600_000;
/// The pause between two fetches from one issuer, whatever ids of keys tokens have.
const PAUSE_MS: i64 = 30_000;

/// Verifies tokens. Its issuers are those that callers name, which are those that the operator trusts.
pub struct Verifier {
    client: Client,
    /// Counts a fetch of an issuer's description and keys by its outcome.
    count_fetch: Box<dyn Fn(&'static str) + Send + Sync>,
    issuers: Mutex<HashMap<String, Issuer>>,
}

#[derive(Clone)]
struct Issuer {
    tried_at: Timestamp,
    found: Option<(Timestamp, Arc<Discovered>)>,
}

impl Verifier {
    /// A verifier that fetches keys by this client. `count_fetch` gets the outcome of each fetch: `fetched` or `failed`.
    pub fn new(client: Client, count_fetch: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        use_ring();
        Self {
            client,
            count_fetch: Box::new(count_fetch),
            issuers: Mutex::default(),
        }
    }

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// The issuer's description and keys, fetched if they are old or missing. Blocks.
    pub(crate) fn discovered(&self, issuer: &str, now: Timestamp) -> Option<Arc<Discovered>> {
        if self.known(issuer).is_none_or(|known| known.is_due(now, FRESH_MS)) {
            self.fetch_keys(issuer, now);
        }
        self.known(issuer)?.usable(now)
    }

    /// The issuer's latest description, of any age. Does not block.
    pub(crate) fn last(&self, issuer: &str) -> Option<Arc<Discovered>> {
        self.known(issuer)?.found.map(|(_, found)| found)
    }

    fn known(&self, issuer: &str) -> Option<Issuer> {
        let issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        issuers.get(issuer).cloned()
    }
}

impl Issuer {
    /// Whether keys of this age are fetched again. A clock that was set back makes an age unknown.
    fn is_due(&self, now: Timestamp, after_ms: i64) -> bool {
        let is_within = |at: Timestamp, ms| (0..ms).contains(&now.since_ms(at));
        let is_fresh = self
            .found
            .as_ref()
            .is_some_and(|(at, _)| is_within(*at, after_ms));
        !is_fresh && !is_within(self.tried_at, PAUSE_MS)
    }

    fn usable(&self, now: Timestamp) -> Option<Arc<Discovered>> {
        let (at, found) = self.found.as_ref()?;
        (now.since_ms(*at) < LONGEST_MS).then(|| Arc::clone(found))
    }
}

impl TokenVerifier for Verifier {
    fn unverified(&self, token: &str) -> Option<Claims> {
        insecure_decode_claims(Some(token).filter(|token| token.len() <= LONGEST_TOKEN)?).ok()
    }

    fn verify(
        &self,
        token: &str,
        issuer: &str,
        audiences: &[&str],
        now: Timestamp,
    ) -> Result<Claims, TokenError> {
        if token.len() > LONGEST_TOKEN {
            return Err(TokenError::Wrong("it is too long"));
        }
        let header = decode_header(token).map_err(|_| TokenError::Wrong("it is not a signed token"))?;
        let known = self.known(issuer).ok_or(TokenError::KeysNeeded)?;
        if known.is_due(now, FRESH_MS) {
            return Err(TokenError::KeysNeeded);
        }
        let found = known.usable(now).ok_or(TokenError::Unavailable)?;
        let mut keys = found
            .keys
            .iter()
            .filter(|key| header.kid.is_none() || key.id == header.kid);
        let key = match (keys.next(), keys.next()) {
            (Some(key), None) => key,
            (Some(_), Some(_)) => return Err(TokenError::Wrong("it does not say which key signed it")),
            // The issuer may have a new key.
            (None, _) if known.is_due(now, 0) => return Err(TokenError::KeysNeeded),
            (None, _) => return Err(TokenError::Wrong("its issuer has no such key")),
        };
        let mut validation = Validation::new(key.algorithm);
        validation.set_audience(audiences);
        validation.set_issuer(&[issuer]);
        validation.set_required_spec_claims(&["iss", "aud", "exp"]);
        // The times are compared below, with the time of the request.
        validation.validate_exp = false;
        let verified = decode::<Claims>(token, &key.key, &validation);
        let claims = verified
            .map_err(|error| TokenError::Wrong(why(error.kind())))?
            .claims;
        check_times(&claims, now)?;
        Ok(claims)
    }

    fn is_genuine(&self, token: &str, issuer: &str) -> bool {
        let genuine = || {
            let (signature, message) = token.rsplit_once('.').map(|(message, text)| (text, message))?;
            let header = decode_header(token).ok()?;
            let found = self.last(issuer)?;
            let key = found.keys.iter().find(|key| key.id == header.kid)?;
            verify(signature, message.as_bytes(), &key.key, key.algorithm).ok()
        };
        token.len() <= LONGEST_TOKEN && genuine() == Some(true)
    }

    fn fetch_keys(&self, issuer: &str, now: Timestamp) {
        if self.known(issuer).is_some_and(|known| !known.is_due(now, 0)) {
            return;
        }
        let found = self.client.discover(issuer);
        (self.count_fetch)(if found.is_ok() { "fetched" } else { "failed" });
        let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        let former = issuers.remove(issuer).and_then(|former| former.found);
        let found = match found {
            Ok(found) => Some((now, Arc::new(found))),
            Err(problem) => {
                log::warn!("the issuer {issuer} cannot be used: {problem}");
                former
            }
        };
        issuers.insert(issuer.to_owned(), Issuer { tried_at: now, found });
    }
}

fn check_times(claims: &Claims, now: Timestamp) -> Result<(), TokenError> {
    let now_s = now.unix_ms().div_euclid(1_000);
    let time = |name| match claims.seconds(name) {
        Some(None) => Err(TokenError::Wrong("a time of it is not a number")),
        Some(seconds) => Ok(seconds),
        None => Ok(None),
    };
    let expiry = time("exp")?.ok_or(TokenError::Wrong("it has no expiry"))?;
    if expiry.saturating_add(SKEW_S) <= now_s {
        return Err(TokenError::Wrong("it has expired"));
    }
    for begin in [time("nbf")?, time("iat")?].into_iter().flatten() {
        if begin.saturating_sub(SKEW_S) > now_s {
            return Err(TokenError::Wrong("it is not valid yet"));
        }
    }
    Ok(())
}

const fn why(kind: &jsonwebtoken::errors::ErrorKind) -> &'static str {
    use jsonwebtoken::errors::ErrorKind;
    match kind {
        ErrorKind::InvalidSignature => "its signature is wrong",
        ErrorKind::InvalidIssuer => "it is of another issuer",
        ErrorKind::InvalidAudience => "it is for another audience",
        ErrorKind::InvalidAlgorithm => "its algorithm is not that of the key",
        ErrorKind::MissingRequiredClaim(_) => "it has no issuer, audience or expiry",
        _ => "it is not a token of OpenID Connect",
    }
}
