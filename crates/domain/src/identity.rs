//! Tokens of OpenID Connect: the ports to their verifier and to sign-in, and what a CI service states about a job.

mod ci_job;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::IgnoredAny};

pub use ci_job::{CiJob, Trust};

use crate::timestamp::Timestamp;

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct Claims(BTreeMap<String, Claim>);

/// The value of a claim.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Claim {
    Text(String),
    Number(i64),
    List(Vec<String>),
    Other(IgnoredAny),
}

impl Claims {
    /// A claim that is text, or a whole number, as text.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Claim::Text(text) if !text.is_empty() => Some(text.clone()),
            Claim::Number(number) => Some(number.to_string()),
            Claim::Text(_) | Claim::List(_) | Claim::Other(_) => None,
        }
    }

    /// A claim that is a time, in seconds. `Some(None)` is a claim of another kind.
    pub fn seconds(&self, name: &str) -> Option<Option<i64>> {
        Some(match self.0.get(name)? {
            Claim::Number(seconds) => Some(*seconds),
            Claim::Text(_) | Claim::List(_) | Claim::Other(_) => None,
        })
    }

    /// Whether a claim is this text, or a list that has it.
    pub fn has(&self, name: &str, value: &str) -> bool {
        match self.0.get(name) {
            Some(Claim::Text(text)) => text == value,
            Some(Claim::List(list)) => list.iter().any(|item| item == value),
            Some(Claim::Number(_) | Claim::Other(_)) | None => false,
        }
    }
}

/// Why a token is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The issuer's keys have to be fetched first: [`TokenVerifier::fetch_keys`].
    #[error("the issuer's keys are not known yet")]
    KeysNeeded,
    /// The issuer does not answer, so the token cannot be verified.
    #[error("the issuer's keys cannot be fetched")]
    Unavailable,
    /// The token is wrong in this way.
    #[error("{0}")]
    Wrong(&'static str),
}

/// The port to the verifier of tokens.
pub trait TokenVerifier: Send + Sync {
    /// The claims of a token without any verification, to find out who may have issued it.
    fn unverified(&self, token: &str) -> Option<Claims>;

    /// Verifies a token of this issuer for one of these audiences: signature, issuer, audience and times. Does not block.
    fn verify(
        &self,
        token: &str,
        issuer: &str,
        audiences: &[&str],
        now: Timestamp,
    ) -> Result<Claims, TokenError>;

    /// Whether a known key of this issuer signed a token. Does not block.
    fn is_genuine(&self, token: &str, issuer: &str) -> bool;

    /// Fetches an issuer's keys, unless that was tried a moment ago. Blocks.
    fn fetch_keys(&self, issuer: &str, now: Timestamp);
}

/// One sign-in at a provider. Its texts are secrets of the browser that began it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInAttempt {
    /// The provider's place in the operator's file.
    pub provider: usize,
    /// Comes back with the code.
    pub state: String,
    /// Comes back within the token.
    pub nonce: String,
    /// Proves that the code is redeemed by whoever asked for it (PKCE).
    pub code_verifier: String,
    /// Whether the provider must not ask the user anything.
    pub is_silent: bool,
}

/// A sign-in of a terminal, as RFC 8628 describes it. The person enters its code at the provider, in any browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSignIn {
    /// With this code the terminal asks whether the person has signed in. It is a secret.
    pub device_code: String,
    /// The code that the person enters.
    pub user_code: String,
    /// The address at the provider where they enter it.
    pub verification_uri: String,
    /// The address with the code in it.
    pub verification_uri_complete: Option<String>,
    /// Seconds until the code expires.
    pub expires_in: u32,
    /// Seconds between two questions.
    pub interval: Option<u32>,
}

/// What a provider's claims permit a person to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Issuer and subject.
    pub subject: String,
    /// The organization's name.
    pub organization: String,
    /// The names of its projects; none for all.
    pub projects: Option<Vec<String>>,
}

/// Why a person is not signed in. The causes are for the log and have neither a code nor a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// The provider does not answer as it should.
    #[error("the provider {provider}: {reason}")]
    Provider {
        /// The provider's name.
        provider: String,
        /// What is wrong.
        reason: String,
    },
    /// A terminal's sign-in is not finished or has failed, with the code of RFC 8628.
    #[error("the sign-in of a terminal: {0}")]
    Terminal(&'static str),
    /// Its claims permit nothing.
    #[error("no entry of the operator's file has a claim of this person")]
    NoAccess,
}

/// The port to providers at which people sign in.
pub trait SignIn: Send + Sync {
    /// The names of the providers, in the order of the operator's file.
    fn providers(&self) -> Vec<&str>;

    /// The address at the provider to which the browser is sent. Blocks.
    fn authorization_url(&self, attempt: &SignInAttempt, now: Timestamp) -> Result<String, SignInError>;

    /// Redeems the code that came back, with the issuer that the answer names, if it names one. Blocks.
    fn redeem(
        &self,
        attempt: &SignInAttempt,
        code: &str,
        issuer: Option<&str>,
        now: Timestamp,
    ) -> Result<Person, SignInError>;

    /// Begins a sign-in of a terminal. Blocks.
    fn begin_terminal(&self, provider: usize, now: Timestamp) -> Result<TerminalSignIn, SignInError>;

    /// Redeems the code of a terminal's sign-in, if the person has finished it. Blocks.
    fn redeem_terminal(&self, provider: usize, code: &str, now: Timestamp) -> Result<Person, SignInError>;

    /// Where the browser ends its session at the provider, if that has such an address. Does not block.
    fn end_session_url(&self, provider: usize) -> Option<String>;
}
