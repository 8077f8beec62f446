//! Sign-in by the authorization code flow with PKCE, state and nonce.

use std::sync::Arc;

use assay_domain::{
    identity::{Claims, Person, SignIn, SignInAttempt, SignInError, TokenVerifier as _},
    timestamp::Timestamp,
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use crate::{
    Verifier,
    file::{Access, Provider},
    issuer::Metadata,
};

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

    /// A provider with an address of its description.
    fn endpoint(
        &self,
        place: usize,
        address: fn(Metadata) -> Option<String>,
        now: Timestamp,
    ) -> Result<(&Provider, String), SignInError> {
        let provider = self.providers.get(place).ok_or(SignInError::NoAccess)?;
        let found = self.verifier.discovered(&provider.issuer, now);
        let endpoint = found.and_then(|found| address(found.metadata.clone()));
        let endpoint = endpoint
            .ok_or_else(|| provider.problem("its description cannot be fetched, or has no such address"))?;
        Ok((provider, endpoint))
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
        let (provider, endpoint) =
            self.endpoint(attempt.provider, |found| found.authorization_endpoint, now)?;
        let challenge = digest(&SHA256, attempt.code_verifier.as_bytes());
        let mut pairs = vec![
            ("response_type", "code".to_owned()),
            ("client_id", provider.client_id.clone()),
            ("redirect_uri", self.redirect.clone()),
            ("scope", provider.scopes.join(" ")),
            ("state", attempt.state.clone()),
            ("nonce", attempt.nonce.clone()),
            ("code_challenge", BASE64_URL_SAFE_NO_PAD.encode(challenge)),
            ("code_challenge_method", "S256".to_owned()),
        ];
        if attempt.is_silent {
            pairs.push(("prompt", "none".to_owned()));
        }
        Ok(with_query(&endpoint, &pairs))
    }

    fn redeem(&self, attempt: &SignInAttempt, code: &str, now: Timestamp) -> Result<Person, SignInError> {
        let (provider, endpoint) = self.endpoint(attempt.provider, |found| found.token_endpoint, now)?;
        let mut pairs = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.to_owned()),
            ("redirect_uri", self.redirect.clone()),
            ("code_verifier", attempt.code_verifier.clone()),
        ];
        let authorization = provider.client_secret.as_ref().map(|secret| {
            let pair = format!("{}:{}", encoded(&provider.client_id), encoded(secret));
            format!("Basic {}", BASE64_STANDARD.encode(pair))
        });
        if authorization.is_none() {
            pairs.push(("client_id", provider.client_id.clone()));
        }
        let answer: TokenAnswer = self
            .verifier
            .client()
            .post(&endpoint, authorization.as_deref(), &form(&pairs))
            .map_err(|problem| provider.problem(&problem))?;
        let verify = || {
            let audiences = [provider.client_id.as_str()];
            self.verifier
                .verify(&answer.id_token, &provider.issuer, &audiences, now)
        };
        let claims = verify().or_else(|_| {
            // The provider may have a new key.
            self.verifier.fetch_keys(&provider.issuer, now);
            verify()
        });
        let claims = claims.map_err(|error| provider.problem(&format!("its token is refused: {error}")))?;
        if !claims.has("nonce", &attempt.nonce) {
            return Err(provider.problem("its token is of another sign-in"));
        }
        if claims
            .text("azp")
            .is_some_and(|party| party != provider.client_id)
        {
            return Err(provider.problem("its token was issued to another client"));
        }
        provider.person(&claims)
    }

    fn end_session_url(&self, provider: usize) -> Option<String> {
        let provider = self.providers.get(provider)?;
        let found = self.verifier.last(&provider.issuer)?;
        let endpoint = found.metadata.end_session_endpoint.as_deref()?;
        let pairs = [
            ("client_id", provider.client_id.clone()),
            ("post_logout_redirect_uri", self.signed_out.clone()),
        ];
        Some(with_query(endpoint, &pairs))
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

fn with_query(address: &str, pairs: &[(&str, String)]) -> String {
    let sign = if address.contains('?') { '&' } else { '?' };
    format!("{address}{sign}{}", form(pairs))
}

fn form(pairs: &[(&str, String)]) -> String {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    pairs.join("&")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
