//! Requests to a target over HTTP.

use std::time::Duration;

use assay_messages::SendError;
use assay_outbound::{Allowed, agent, checked_host, reason};
use ureq::{
    Agent, Body,
    http::{Response, header::RETRY_AFTER},
};

use crate::targets::Secret;

const USER_AGENT: &str = concat!("assay-notify/", env!("CARGO_PKG_VERSION"));
/// Time limit of a whole request.
const WITHIN: Duration = Duration::from_secs(15);
/// Largest answer that is read, in bytes.
const LARGEST_ANSWER: u64 = 64 << 10;
/// The address of a target, which may be a secret. Only its host is ever shown.
#[derive(Clone)]
pub(crate) struct Endpoint {
    address: Secret,
    pub(crate) host: String,
}

impl Endpoint {
    /// Checks an address: https, or http to a loopback address that is named.
    pub(crate) fn new(address: &Secret, allowed: &Allowed) -> Result<Self, &'static str> {
        let host = checked_host(address.reveal(), allowed)?;
        Ok(Self {
            address: address.clone(),
            host,
        })
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.host)
    }
}

/// Sends bodies to an address.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    agent: Agent,
    pub(crate) endpoint: Endpoint,
}

impl Http {
    /// A client for one address, without redirections and proxies.
    pub(crate) fn new(endpoint: Endpoint, allowed: &Allowed) -> Self {
        Self {
            agent: agent(allowed, USER_AGENT, WITHIN),
            endpoint,
        }
    }

    /// Posts JSON with these headers. A status of success confirms it, whatever the body of the answer is.
    pub(crate) fn post(&self, headers: &[(&str, &str)], body: &str) -> Result<(), SendError> {
        self.answer(headers, body).map(drop)
    }

    /// Posts JSON with these headers, and returns the body of the answer.
    pub(crate) fn post_and_read(&self, headers: &[(&str, &str)], body: &str) -> Result<Vec<u8>, SendError> {
        let host = &self.endpoint.host;
        let unreadable =
            |error| SendError::new(format!("the answer of {host} cannot be read: {}", reason(&error)));
        let mut answer = self.answer(headers, body)?;
        let body = answer.body_mut().with_config().limit(LARGEST_ANSWER);
        body.read_to_vec().map_err(unreadable)
    }

    fn answer(&self, headers: &[(&str, &str)], body: &str) -> Result<Response<Body>, SendError> {
        let host = &self.endpoint.host;
        let mut request = self
            .agent
            .post(self.endpoint.address.reveal())
            .header("Content-Type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request
            .send(body)
            .map_err(|error| SendError::new(format!("{host} does not answer: {}", reason(&error))))?;
        let status = answer.status();
        match status.is_success() {
            true => Ok(answer),
            false => Err(SendError {
                reason: format!("{host} answers with status {}", status.as_u16()),
                retry_after: retry_after(&answer),
            }),
        }
    }
}

/// The time of `Retry-After`, if it is in seconds.
fn retry_after(answer: &Response<Body>) -> Option<Duration> {
    let wanted = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    wanted.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secret() {
        let secret = Secret::new("https://a.example/secret".to_owned());
        let shown = format!("{:?}", Endpoint::new(&secret, &Allowed::default()));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
