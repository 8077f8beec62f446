//! Requests to a target over HTTP.

use std::{sync::Arc, time::Duration};

use assay_messages::SendError;
use ureq::{
    Agent, Body, Error,
    http::{Response, Uri, header::RETRY_AFTER},
    tls::{Certificate, RootCerts, TlsConfig},
    unversioned::{resolver::DefaultResolver, transport::DefaultConnector},
};

use crate::targets::{Allowed, Secret, addresses::PublicResolver, certificates};

const USER_AGENT: &str = concat!("assay-notify/", env!("CARGO_PKG_VERSION"));
/// Time limit of a whole request.
const WITHIN: Duration = Duration::from_secs(15);
/// Largest answer that is read, in bytes.
const LARGEST_ANSWER: u64 = 64 << 10;
/// Longest address, in bytes.
const LONGEST_ADDRESS: usize = 2_000;

/// The address of a target, which may be a secret. Only its host is ever shown.
#[derive(Clone)]
pub(crate) struct Endpoint {
    address: Secret,
    pub(crate) host: String,
}

impl Endpoint {
    /// Checks an address: https, or http to a loopback address that is named.
    pub(crate) fn new(address: &Secret, allowed: &Allowed) -> Result<Self, &'static str> {
        let text = address.reveal();
        if text.len() > LONGEST_ADDRESS {
            return Err("the address is longer than 2,000 bytes");
        }
        let uri: Uri = text.parse().map_err(|_| "the address is not a URL")?;
        let authority = uri.authority().ok_or("the address has no host")?;
        if authority.as_str().contains('@') {
            return Err("the address has a name or a password before its host; remove it");
        }
        let host = authority.host().to_owned();
        let is_loopback = host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if is_loopback && allowed.names(&host) => {}
            Some("http") => {
                return Err(
                    "the address must begin with https://, unless it is a loopback address that \
                            private_addresses names",
                );
            }
            Some(_) | None => return Err("the address must begin with https://"),
        }
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
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Another address must not get the message.
            .max_redirects(0)
            .max_redirects_will_error(false)
            // A proxy would resolve the name itself, past the check of the address.
            .proxy(None)
            .user_agent(USER_AGENT)
            .timeout_global(Some(WITHIN))
            .tls_config(trusted_authorities())
            .build();
        let resolver = PublicResolver {
            allowed: allowed.clone(),
            inner: DefaultResolver::default(),
        };
        Self {
            agent: Agent::with_parts(config, DefaultConnector::default(), resolver),
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

/// Why there is no answer. The text of other errors may have the address.
fn reason(error: &Error) -> String {
    if let Error::Io(problem) = error {
        certificates::problem(problem).unwrap_or_else(|| problem.to_string())
    } else if let Error::Other(problem) = error {
        problem.to_string()
    } else if let Error::Timeout(waiting) = error {
        format!("waiting took too long ({waiting})")
    } else if let Error::HostNotFound = error {
        "no such host".to_owned()
    } else if let Error::Rustls(problem) = error {
        format!("the encryption failed: {problem}")
    } else {
        "the request failed".to_owned()
    }
}

/// TLS with the authorities of this system, which include a company's own. Without any, no certificate is trusted.
fn trusted_authorities() -> TlsConfig {
    let certificates = rustls_native_certs::load_native_certs();
    let roots: Vec<_> = certificates
        .certs
        .iter()
        .map(|certificate| Certificate::from_der(certificate).to_owned())
        .collect();
    TlsConfig::builder()
        .root_certs(RootCerts::from(roots))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_encrypted_addresses_and_named_loopback_ones_are_accepted() {
        let allowed = Allowed::new(["127.0.0.1".to_owned()]);
        let check =
            |text: &str| Endpoint::new(&Secret::new(text.to_owned()), &allowed).map(|endpoint| endpoint.host);
        assert_eq!(
            check("https://hooks.example.org/services/T0/x"),
            Ok("hooks.example.org".to_owned())
        );
        assert_eq!(check("http://127.0.0.1:9000/x"), Ok("127.0.0.1".to_owned()));
        for refused in [
            "http://hooks.example.org/",
            "http://127.0.0.2/",
            "http://localhost/",
            "http://10.0.0.1/",
            "ftp://127.0.0.1/",
            "https://user:password@example.org/",
            "/services",
            "",
        ] {
            assert!(check(refused).is_err(), "{refused}");
        }
        let shown = format!(
            "{:?}",
            Endpoint::new(&Secret::new("https://a.example/secret".to_owned()), &allowed)
        );
        assert!(!shown.contains("secret"), "{shown}");
    }
}
