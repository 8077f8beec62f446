//! What an issuer publishes about itself: its addresses and its keys.

use std::time::Duration;

use assay_domain::timestamp::Timestamp;
use assay_outbound::{Allowed, agent, checked_host, reason};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc2822};
use ureq::{
    Agent, Body,
    http::{Response, header::DATE},
};

use crate::keys::{KeySet, VerifyingKey};

const USER_AGENT: &str = concat!("assay/", env!("CARGO_PKG_VERSION"));
/// Time limit of a request.
const WITHIN: Duration = Duration::from_secs(4);
/// Largest answer that is read, in bytes.
const LARGEST_ANSWER: u64 = 256 << 10;
/// Longest code of a failure, in bytes.
const LONGEST_CODE: usize = 100;

/// Requests to issuers.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    allowed: Allowed,
}

/// An issuer's description of itself.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Metadata {
    issuer: String,
    jwks_uri: String,
    pub(crate) authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: Option<String>,
    pub(crate) end_session_endpoint: Option<String>,
    pub(crate) device_authorization_endpoint: Option<String>,
    /// Whether the browser always comes back with the name of the issuer (RFC 9207).
    #[serde(default, rename = "authorization_response_iss_parameter_supported")]
    pub(crate) names_itself: bool,
}

/// An issuer's description and keys, as fetched.
pub struct Discovered {
    pub(crate) metadata: Metadata,
    pub(crate) keys: Vec<VerifyingKey>,
    /// The issuer's clock, if its answer has one.
    pub clock: Option<Timestamp>,
}

impl Discovered {
    /// Whether people can sign in there: it has the addresses for that.
    pub const fn signs_people_in(&self) -> bool {
        self.metadata.authorization_endpoint.is_some() && self.metadata.token_endpoint.is_some()
    }
}

impl Client {
    /// A client that may also reach these private addresses.
    pub fn new(private_addresses: impl IntoIterator<Item = String>) -> Self {
        let allowed = Allowed::new(private_addresses);
        Self {
            agent: agent(&allowed, USER_AGENT, WITHIN),
            allowed,
        }
    }

    /// Fetches an issuer's description and keys.
    ///
    /// # Errors
    /// What is wrong, for the log.
    pub fn discover(&self, issuer: &str) -> Result<Discovered, String> {
        let address = format!(
            "{}/.well-known/openid-configuration",
            issuer.trim_end_matches('/')
        );
        let (metadata, clock) = self.get::<Metadata>(&address)?;
        // Another issuer must not speak for this one.
        if metadata.issuer != issuer {
            return Err("its description is of another issuer".into());
        }
        let endpoints = [
            &metadata.authorization_endpoint,
            &metadata.token_endpoint,
            &metadata.end_session_endpoint,
            &metadata.device_authorization_endpoint,
        ];
        for endpoint in endpoints.into_iter().flatten() {
            checked_host(endpoint, &self.allowed)?;
        }
        let (keys, _) = self.get::<KeySet>(&metadata.jwks_uri)?;
        Ok(Discovered {
            metadata,
            keys: keys.into_keys()?,
            clock,
        })
    }

    fn get<T: DeserializeOwned>(&self, address: &str) -> Result<(T, Option<Timestamp>), String> {
        checked_host(address, &self.allowed)?;
        let mut answer = self.agent.get(address).call().map_err(|error| reason(&error))?;
        let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
        let clock = date.and_then(|date| OffsetDateTime::parse(date, &Rfc2822).ok());
        let clock = clock.map(Timestamp::from);
        let content = json(&mut answer).map_err(|failure| failure.reason)?;
        Ok((content, clock))
    }

    /// Posts a form, with a user and a password if the client has a secret.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        address: &str,
        authorization: Option<&str>,
        pairs: Vec<(&str, &str)>,
    ) -> Result<T, Failure> {
        checked_host(address, &self.allowed)?;
        let mut request = self.agent.post(address).header("Accept", "application/json");
        if let Some(authorization) = authorization {
            request = request.header("Authorization", authorization);
        }
        json(&mut request.send_form(pairs).map_err(|error| reason(&error))?)
    }
}

/// Why there is no answer of success.
pub(crate) struct Failure {
    /// The reason, for the log.
    pub(crate) reason: String,
    /// The code of the answer, which RFC 6749 describes.
    pub(crate) code: Option<String>,
}

impl<T: Into<String>> From<T> for Failure {
    fn from(reason: T) -> Self {
        let (reason, code) = (reason.into(), None);
        Self { reason, code }
    }
}

/// The JSON of an answer of success.
fn json<T: DeserializeOwned>(answer: &mut Response<Body>) -> Result<T, Failure> {
    let status = answer.status();
    let body = answer
        .body_mut()
        .with_config()
        .limit(LARGEST_ANSWER)
        .read_to_vec();
    let body = body.map_err(|error| reason(&error))?;
    if !status.is_success() {
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        let code = answer.get("error").and_then(Value::as_str);
        let code = code.filter(|code| code.len() <= LONGEST_CODE).map(str::to_owned);
        let named = code.as_deref().unwrap_or("without a reason");
        let reason = format!("it answers with status {}, {named}", status.as_u16());
        return Err(Failure { reason, code });
    }
    // The text of the error could have parts of a token.
    let answer = serde_json::from_slice(&body);
    Ok(answer.map_err(|_| "its answer is not what OpenID Connect describes")?)
}
