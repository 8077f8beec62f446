//! The client, and the check of an address before it is used.

use std::{net::IpAddr, sync::Arc, time::Duration};

use ureq::{
    Agent, Error,
    http::Uri,
    tls::{Certificate, RootCerts, TlsConfig},
    unversioned::{resolver::DefaultResolver, transport::DefaultConnector},
};

use crate::{Allowed, addresses::PublicResolver, certificates};

/// Longest address, in bytes.
const LONGEST_ADDRESS: usize = 2_000;

/// The host of an address: https, or http to a loopback address that is named.
///
/// # Errors
/// If requests must not go to the address; the text does not have it.
pub fn checked_host(address: &str, allowed: &Allowed) -> Result<String, &'static str> {
    if address.len() > LONGEST_ADDRESS {
        return Err("the address is longer than 2,000 bytes");
    }
    let uri: Uri = address.parse().map_err(|_| "the address is not a URL")?;
    let authority = uri.authority().ok_or("the address has no host")?;
    if authority.as_str().contains('@') {
        return Err("the address has a name or a password before its host; remove it");
    }
    let host = authority.host().to_owned();
    let is_loopback = host
        .trim_matches(['[', ']'])
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    match uri.scheme_str() {
        Some("https") => Ok(host),
        Some("http") if is_loopback && allowed.names(&host) => Ok(host),
        Some("http") => Err(
            "the address must begin with https://, unless it is a loopback address that \
                        private_addresses names",
        ),
        Some(_) | None => Err("the address must begin with https://"),
    }
}

/// A client without redirections and proxies, whose requests take at most `within` in all.
pub fn agent(allowed: &Allowed, user_agent: &'static str, within: Duration) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // Another address must not get the request.
        .max_redirects(0)
        .max_redirects_will_error(false)
        // A proxy would resolve the name itself, past the check of the address.
        .proxy(None)
        .user_agent(user_agent)
        .timeout_global(Some(within))
        .tls_config(trusted_authorities())
        .build();
    let resolver = PublicResolver {
        allowed: allowed.clone(),
        inner: DefaultResolver::default(),
    };
    Agent::with_parts(config, DefaultConnector::default(), resolver)
}

/// Why there is no answer. The text of other errors may have the address.
pub fn reason(error: &Error) -> String {
    if let Error::Io(problem) = error {
        certificates::problem(problem).unwrap_or_else(|| problem.to_string())
    } else if let Error::Other(problem) = error {
        problem.to_string()
    } else if let Error::Timeout(waiting) = error {
        format!("waiting took too long ({waiting})")
    } else if let Error::HostNotFound = error {
        "no such host".to_owned()
    } else if let Error::BodyExceedsLimit(limit) = error {
        format!("it is longer than {limit} bytes")
    } else if let Error::Rustls(problem) = error {
        format!("the encryption failed: {problem}")
    } else {
        "the request failed".to_owned()
    }
}

/// TLS with the authorities of this system, which include a company's own. Without any, no certificate is trusted.
pub fn trusted_authorities() -> TlsConfig {
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
        let check = |text: &str| checked_host(text, &allowed);
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
    }
}
