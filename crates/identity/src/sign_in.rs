//! Sign-in of browsers by the authorization code flow with PKCE, state and nonce, and of terminals by RFC 8628.

use std::sync::Arc;

use assay_domain::{
    identity::{Claims, Person, SignIn, SignInAttempt, SignInError, TerminalSignIn, TokenVerifier as _},
    timestamp::Timestamp,
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, de::DeserializeOwned};
use url::{Url, form_urlencoded::byte_serialize};

use crate::{
    Verifier,
    file::{Access, Provider},
    issuer::{Failure, Metadata},
};

const NO_ADDRESS: &str = "its description has no such address";
/// The grant of a terminal, and the codes of RFC 8628 that are not a failure of the provider.
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
const TERMINAL_CODES: [&str; 4] = [
    "authorization_pending",
    "slow_down",
    "access_denied",
    "expired_token",
];

/// The providers of the operator's file.
pub struct Providers {
    verifier: Arc<Verifier>,
    providers: Vec<Provider>,
    /// Where a provider sends the browser back to.
    redirect: String,
    /// Where a provider sends the browser after the end of its session.
    signed_out: String,
}

/// The answer of a token endpoint. The other tokens are not read.
#[derive(Deserialize)]
struct TokenAnswer {
    id_token: String,
}

impl Providers {
    /// These providers for the pages at `base`, without a slash at its end.
    pub fn new(verifier: Arc<Verifier>, providers: Vec<Provider>, base: &str) -> Self {
        Self {
            verifier,
            providers,
            redirect: format!("{base}/login/callback"),
            signed_out: format!("{base}/login"),
        }
    }

    /// A provider and its description of itself.
    fn described(&self, place: usize, now: Timestamp) -> Result<(&Provider, Metadata), SignInError> {
        let provider = self.providers.get(place).ok_or(SignInError::NoAccess)?;
        let found = self.verifier.discovered(&provider.issuer, now);
        let found = found.ok_or_else(|| provider.problem("its description cannot be fetched"))?;
        Ok((provider, found.metadata.clone()))
    }

    /// Posts a form with the name of the client, or with its secret if it has one.
    fn post<'a, T: DeserializeOwned>(
        &self,
        provider: &'a Provider,
        endpoint: Option<String>,
        mut pairs: Vec<(&'a str, &'a str)>,
    ) -> Result<T, Failure> {
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let authorization = provider.client_secret.as_ref().map(|secret| {
            let pair = format!("{}:{}", encoded(&provider.client_id), encoded(secret));
            format!("Basic {}", BASE64_STANDARD.encode(pair))
        });
        if authorization.is_none() {
            pairs.push(("client_id", &provider.client_id));
        }
        let endpoint = endpoint.ok_or(NO_ADDRESS)?;
        self.verifier
            .client()
            .post(&endpoint, authorization.as_deref(), pairs)
    }

    /// The claims of a provider's token for this client.
    fn verified(&self, provider: &Provider, token: &str, now: Timestamp) -> Result<Claims, SignInError> {
        let verify = || {
            let audiences = [provider.client_id.as_str()];
            self.verifier.verify(token, &provider.issuer, &audiences, now)
        };
        let claims = verify().or_else(|_| {
            // The provider may have a new key.
            self.verifier.fetch_keys(&provider.issuer, now);
            verify()
        });
        let claims = claims.map_err(|error| provider.problem(&format!("its token is refused: {error}")))?;
        match claims.text("azp") {
            Some(party) if party != provider.client_id => {
                Err(provider.problem("its token was issued to another client"))
            }
            Some(_) | None => Ok(claims),
        }
    }
}

impl SignIn for Providers {
    fn providers(&self) -> Vec<&str> {
        self.providers
            .iter()
            .map(|provider| provider.name.as_str())
            .collect()
    }

    fn authorization_url(&self, attempt: &SignInAttempt, now: Timestamp) -> Result<String, SignInError> {
        let (provider, metadata) = self.described(attempt.provider, now)?;
        let challenge = digest(&SHA256, attempt.code_verifier.as_bytes());
        let (scopes, challenge) = (
            provider.scopes.join(" "),
            BASE64_URL_SAFE_NO_PAD.encode(challenge),
        );
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", &provider.client_id),
            ("redirect_uri", &self.redirect),
            ("scope", &scopes),
            ("state", &attempt.state),
            ("nonce", &attempt.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        if attempt.is_silent {
            pairs.push(("prompt", "none"));
        }
        with_query(metadata.authorization_endpoint, &pairs).ok_or_else(|| provider.problem(NO_ADDRESS))
    }

    fn redeem(
        &self,
        attempt: &SignInAttempt,
        code: &str,
        issuer: Option<&str>,
        now: Timestamp,
    ) -> Result<Person, SignInError> {
        let (provider, metadata) = self.described(attempt.provider, now)?;
        // Another provider that sent the browser here would make this one redeem its code, or get the code of this one.
        if issuer.map_or(metadata.names_itself, |issuer| issuer != provider.issuer) {
            return Err(provider.problem("the browser came back from another provider"));
        }
        let pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect),
            ("code_verifier", &attempt.code_verifier),
        ];
        let answer = self.post::<TokenAnswer>(provider, metadata.token_endpoint, pairs);
        let answer = answer.map_err(|failure| provider.problem(&failure.reason))?;
        let claims = self.verified(provider, &answer.id_token, now)?;
        if !claims.has("nonce", &attempt.nonce) {
            return Err(provider.problem("its token is of another sign-in"));
        }
        provider.person(&claims)
    }

    fn begin_terminal(&self, provider: usize, now: Timestamp) -> Result<TerminalSignIn, SignInError> {
        let (provider, metadata) = self.described(provider, now)?;
        let scopes = provider.scopes.join(" ");
        let endpoint = metadata.device_authorization_endpoint;
        let begun = self.post(provider, endpoint, vec![("scope", &scopes)]);
        begun.map_err(|failure| provider.problem(&failure.reason))
    }

    fn redeem_terminal(&self, provider: usize, code: &str, now: Timestamp) -> Result<Person, SignInError> {
        let (provider, metadata) = self.described(provider, now)?;
        let pairs = vec![("grant_type", DEVICE_GRANT), ("device_code", code)];
        let answer = self.post::<TokenAnswer>(provider, metadata.token_endpoint, pairs);
        let answer = answer.map_err(|failure| {
            let mut codes = TERMINAL_CODES.into_iter();
            match codes.find(|code| failure.code.as_deref() == Some(code)) {
                Some(code) => SignInError::Terminal(code),
                None => provider.problem(&failure.reason),
            }
        })?;
        provider.person(&self.verified(provider, &answer.id_token, now)?)
    }

    fn end_session_url(&self, provider: usize) -> Option<String> {
        let provider = self.providers.get(provider)?;
        let found = self.verifier.last(&provider.issuer)?;
        let endpoint = found.metadata.end_session_endpoint.clone();
        let pairs = [
            ("client_id", provider.client_id.as_str()),
            ("post_logout_redirect_uri", &self.signed_out),
        ];
        with_query(endpoint, &pairs)
    }
}

impl Provider {
    fn problem(&self, reason: &str) -> SignInError {
        SignInError::Provider {
            provider: self.name.clone(),
            reason: reason.to_owned(),
        }
    }

    /// What these claims permit: the organization of the first entry that has a claim, with the projects of all such entries
    /// of that organization.
    fn person(&self, claims: &Claims) -> Result<Person, SignInError> {
        let has_claim = |entry: &&Access| claims.has(&entry.claim, &entry.value);
        let entries: Vec<&Access> = self.access.iter().filter(has_claim).collect();
        let organization = &entries.first().ok_or(SignInError::NoAccess)?.organization;
        let subject = claims
            .text("sub")
            .ok_or_else(|| self.problem("its token has no subject"))?;
        let of_it = entries.iter().filter(|entry| entry.organization == *organization);
        // An entry without projects is one for all.
        let projects: Option<Vec<_>> = of_it.map(|entry| entry.projects.clone()).collect();
        Ok(Person {
            subject: format!("{}\n{subject}", self.issuer),
            organization: organization.clone(),
            projects: projects.map(|lists| lists.concat()),
        })
    }
}

/// An address of a provider, which was checked, with these parameters.
fn with_query(address: Option<String>, pairs: &[(&str, &str)]) -> Option<String> {
    Some(Url::parse_with_params(&address?, pairs).ok()?.into())
}
