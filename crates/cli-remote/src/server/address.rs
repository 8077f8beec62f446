//! The address and the key of a listener.

use std::{fs::File, io::Read as _, net::IpAddr, path::Path};

use anyhow::{Context as _, ensure};
use assay_cli_terminal::misuse::Misuse;
use assay_domain::key::{self, READ_PREFIX};
use assay_reports::shown_path;
use ureq::http::Uri;

use crate::server::{http::NoAnswer, job_token::TokenSource};

/// The name of the ingest listener in messages.
const INGEST: &str = "the ingest listener";
/// Longest address, in bytes.
const LONGEST_ADDRESS: usize = 2_000;
/// Longest key, in characters. Keys are much shorter; a longer text is not read to its end.
const LONGEST_KEY: u64 = 1_000;
/// The number of bytes of a key's hash that identify the key in a spool.
const IDENTIFYING_BYTES: usize = 8;

/// The address of a listener, without the path of a route.
#[derive(Debug, Clone)]
pub struct Address {
    base: String,
    /// Whether the host is this machine.
    pub is_loopback: bool,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
}

impl Address {
    /// Parses the address of a listener, which `listener` names.
    pub fn parse(listener: &str, text: &str, insecure_http: bool) -> Result<Self, Misuse> {
        let wrong = |why: &str| Misuse(format!("the address of {listener} {why}"));
        let text = text.trim();
        if text.len() > LONGEST_ADDRESS {
            return Err(wrong(&format!("exceeds {LONGEST_ADDRESS} bytes")));
        }
        let uri: Uri = text
            .parse()
            .map_err(|_| wrong("is not a URL; give one such as https://assay.example.org"))?;
        let authority = uri
            .authority()
            .ok_or_else(|| wrong("has no host; give one such as https://assay.example.org"))?;
        if authority.as_str().contains('@') {
            return Err(wrong(
                "contains a password; remove it, because the key has an environment variable of its own",
            ));
        }
        if uri.query().is_some() {
            return Err(wrong("has a query; remove it"));
        }
        let is_encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err(wrong("must begin with https:// or http://")),
        };
        let host = authority.host().trim_matches(['[', ']']);
        let is_loopback =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if !is_encrypted && !is_loopback && !insecure_http {
            return Err(wrong(
                "is plain http://, which sends the key unencrypted; use https://, or add --insecure-http",
            ));
        }
        // Users may copy the address of the route instead of the listener's.
        let base = text.trim_end_matches('/');
        let base = base.strip_suffix("/reports").unwrap_or(base);
        let base = base.strip_suffix("/ingest/v1").unwrap_or(base);
        Ok(Self {
            base: base.to_owned(),
            is_loopback,
            is_encrypted,
        })
    }

    /// The address without the path of a route.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The address of a route such as `reports`.
    pub fn route(&self, name: &str) -> String {
        format!("{}/ingest/v1/{name}", self.base)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.base)
    }
}

/// An ingest key, or the tokens of the job in its place. Its text is in no message.
pub struct Key(Secret);

enum Secret {
    Text(String),
    Tokens(TokenSource),
}

impl Key {
    /// Reads the key from the file, else takes `variable`, the value of ASSAY_INGEST_KEY. None if that is not set or empty.
    pub fn of(file: Option<&Path>, variable: Option<String>) -> anyhow::Result<Option<Self>> {
        let text = match file {
            Some(path) => {
                let mut text = String::new();
                File::open(path)
                    .and_then(|file| file.take(LONGEST_KEY + 1).read_to_string(&mut text))
                    .with_context(|| format!("--key-file {}", shown_path(path)))?;
                ensure!(
                    !text.trim().is_empty(),
                    "--key-file {}: it is empty",
                    shown_path(path)
                );
                Some(text)
            }
            None => variable,
        };
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        let key = text.trim();
        let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_';
        ensure!(
            key.chars().all(is_key) && u64::try_from(key.len())? <= LONGEST_KEY,
            "{} contains no key; a key is svc_ followed by letters and digits, on one line",
            file.map_or("ASSAY_INGEST_KEY".to_owned(), shown_path)
        );
        Ok(Some(Self(Secret::Text(key.to_owned()))))
    }

    /// Whether it is an organization's read key.
    pub fn is_read_key(&self) -> bool {
        matches!(&self.0, Secret::Text(text) if text.starts_with(READ_PREFIX))
    }

    /// The beginning of the key's hash. It identifies the key and does not reveal it.
    pub fn identifier(&self) -> String {
        match &self.0 {
            Secret::Text(text) => identifier(text),
            Secret::Tokens(source) => source.identifier(),
        }
    }

    /// The value of the header `Authorization` for this installation.
    pub fn bearer(&self, address: &Address) -> Result<String, NoAnswer> {
        match &self.0 {
            Secret::Text(text) => Ok(format!("Bearer {text}")),
            Secret::Tokens(source) => {
                let token = source.token(address.base()).map_err(NoAnswer::NoToken)?;
                Ok(format!("Bearer {token}"))
            }
        }
    }
}

/// The beginning of the hash of a key, or of what its tokens have in common.
pub(crate) fn identifier(text: &str) -> String {
    let hash = key::hash(text.as_bytes()).0;
    hash.iter()
        .take(IDENTIFYING_BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The settings of the address and the key.
#[derive(Default)]
pub struct Settings<'a> {
    /// The address.
    pub url: Option<&'a str>,
    /// The file with the key.
    pub key_file: Option<&'a Path>,
    /// The key from the environment, which counts without a file.
    pub key: Option<String>,
    /// Where the job gets a token, which counts without a key.
    pub tokens: Option<TokenSource>,
    /// Whether plain `http://` to another machine is allowed.
    pub insecure_http: bool,
}

impl Settings<'_> {
    /// Returns the address and the key. The error is a [`MissingSetting`] if one of them was not given.
    pub fn resolve(self) -> anyhow::Result<(Address, Key)> {
        let url = self.url.map(str::trim).filter(|url| !url.is_empty());
        let key = Key::of(self.key_file, self.key).map_err(|error| Misuse(format!("{error:#}")))?;
        let key = key.or_else(|| self.tokens.map(|source| Key(Secret::Tokens(source))));
        match (url, key) {
            (Some(url), Some(key)) => Ok((Address::parse(INGEST, url, self.insecure_http)?, key)),
            (None, Some(_)) => Err(MissingSetting("ASSAY_URL is not set").into()),
            (Some(_), None) => Err(MissingSetting("ASSAY_INGEST_KEY is not set").into()),
            (None, None) => Err(MissingSetting("ASSAY_URL and ASSAY_INGEST_KEY are not set").into()),
        }
    }
}

/// The address or the key was not given, as in a pull request of a fork, which gets no secrets.
#[derive(Debug)]
pub struct MissingSetting(&'static str);

impl MissingSetting {
    /// The settings that were not given.
    pub const fn message(&self) -> &'static str {
        self.0
    }
}

impl std::fmt::Display for MissingSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "nothing was stored: {}", self.0)
    }
}

impl std::error::Error for MissingSetting {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_or_of_this_machine() {
        for (text, route) in [
            (
                "https://assay.example.org",
                "https://assay.example.org/ingest/v1/reports",
            ),
            (
                "https://assay.example.org/ci/",
                "https://assay.example.org/ci/ingest/v1/reports",
            ),
            ("http://127.0.0.1:8081", "http://127.0.0.1:8081/ingest/v1/reports"),
            ("http://[::1]:8081/", "http://[::1]:8081/ingest/v1/reports"),
            (
                " http://localhost:8081/ingest/v1/reports",
                "http://localhost:8081/ingest/v1/reports",
            ),
        ] {
            assert_eq!(
                Address::parse(INGEST, text, false).unwrap().route("reports"),
                route,
                "{text}"
            );
        }
        for wrong in [
            "",
            "assay.example.org",
            "/ingest",
            "ftp://assay.example.org",
            "http://assay.example.org",
            "http://127.0.0.1.example.org",
            "http://localhost.example.org",
            "https://user:secret@assay.example.org",
            "https://assay.example.org?key=1",
            "https://a b",
        ] {
            let error = Address::parse(INGEST, wrong, false).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(Address::parse(INGEST, "http://assay.example.org", true).is_ok());
    }
}
