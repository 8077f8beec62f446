//! Requests to the ingest listener, and what its refusals mean.

use std::{io::Read, sync::Arc, time::Duration};

use assay_reports::shown_name;
use serde_json::Value;
use ureq::{
    Agent, SendBody,
    http::{Response, header},
    tls::{Certificate, RootCerts, TlsConfig},
};

use super::{
    address::{Address, Key},
    body::Body,
    retry::Transient,
};

const USER_AGENT: &str = concat!("assay/", env!("CARGO_PKG_VERSION"));
/// How long it may take to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// How long sending may take; the server has the same limit.
const SEND: Duration = Duration::from_secs(600);
/// How long the answer may take: the turn of a busy project, parsing and storing.
const ANSWER: Duration = Duration::from_secs(180);
/// Largest answer that is read, in bytes.
const LARGEST_ANSWER: u64 = 16 << 20;
/// Bodies from this size on are sent once the server has accepted key and length. It reads at most this much of a body
/// that it refuses.
const LARGE: usize = 1 << 20;
/// How long to wait for that; then the body is sent anyway.
const ACCEPT: Duration = Duration::from_secs(5);
/// How much of an answer that is no JSON is shown, in characters.
const LONGEST_SHOWN: usize = 200;

/// What to do where another listener answers.
const OTHER_LISTENER: &str = "this address does not serve /ingest/v1; ASSAY_INGEST_URL names the ingest listener \
                              (ASSAY_INGEST_LISTEN of assay-server), not the read API";

/// A client of one ingest listener.
pub(crate) struct Server {
    agent: Agent,
    address: Address,
    key: Key,
}

/// Why no report was stored.
#[derive(Debug)]
pub(crate) enum NotStored {
    /// No answer came.
    Unreachable(String),
    /// The server's certificate is not trusted, or the connection cannot be encrypted.
    Untrusted(String),
    /// The read API answered, which refuses ingest keys.
    ReadApi(String),
    /// The server answered with an error.
    Refused(Refusal),
}

/// An error that the server answered.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// The machine-readable code; empty where the answer is not the ingest listener's.
    pub(crate) code: String,
    reason: String,
    retry_after: Option<Duration>,
}

impl Transient for NotStored {
    fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Untrusted(_) | Self::ReadApi(_) => false,
            Self::Refused(refusal) => matches!(refusal.status, 408 | 429 | 500 | 502 | 503 | 504),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unreachable(_) | Self::Untrusted(_) | Self::ReadApi(_) => None,
            Self::Refused(refusal) => refusal.retry_after,
        }
    }
}

impl NotStored {
    /// Whether the report itself is refused: sending it again with another key or later does not help.
    pub(crate) fn is_the_reports_fault(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Untrusted(_) | Self::ReadApi(_) => false,
            Self::Refused(refusal) => matches!(refusal.status, 400 | 409 | 413 | 415 | 422),
        }
    }

    /// What to do about it.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        let refusal = match self {
            Self::Unreachable(_) => {
                return Some(
                    "see whether ASSAY_INGEST_URL (or --url) names the ingest listener, and whether it runs and is \
                     reachable from here",
                );
            }
            Self::Untrusted(_) => {
                return Some(
                    "add the authority to this system's certificates, or set SSL_CERT_FILE to a file that holds it",
                );
            }
            Self::ReadApi(_) => return Some(OTHER_LISTENER),
            Self::Refused(refusal) => refusal,
        };
        match (refusal.code.as_str(), refusal.status) {
            ("missing_key" | "invalid_key" | "key_revoked" | "key_expired", _) => Some(
                "`assay key create-ingest --project P` makes a key; put it into the secret ASSAY_INGEST_KEY",
            ),
            ("wrong_key_type", _) => Some(
                "a read key cannot store reports; `assay key create-ingest --project P` makes one that can",
            ),
            ("wrong_project", _) => {
                Some("an ingest key belongs to one project; give --project that one, or leave it out")
            }
            ("slot_taken", _) => Some(
                "give each job of a build a --suite of its own, or a --shard where the jobs share one suite",
            ),
            ("run_closed", _) => Some(
                "the run is too old to change over HTTP; `assay import` still can, or give another --run-key",
            ),
            ("rate_limited" | "busy" | "too_slow" | "internal_error", _) => {
                Some("run the command again later; a report that is sent twice is stored once")
            }
            ("", 404 | 405) => Some(OTHER_LISTENER),
            _ => None,
        }
    }
}

impl std::fmt::Display for NotStored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable(reason) | Self::Untrusted(reason) | Self::ReadApi(reason) => {
                f.write_str(reason)
            }
            Self::Refused(Refusal {
                status, code, reason, ..
            }) if code.is_empty() => {
                write!(f, "the server answered {status}: {reason}")
            }
            Self::Refused(Refusal {
                status, code, reason, ..
            }) => write!(f, "{reason} ({status} {code})"),
        }
    }
}

impl std::error::Error for NotStored {}

impl Server {
    /// A client; an error where connections must be encrypted and this system trusts no authority.
    pub(crate) fn new(address: Address, key: Key) -> anyhow::Result<Self> {
        Ok(Self {
            agent: agent(&address)?,
            address,
            key,
        })
    }

    /// Where reports go.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The description of the key.
    pub(crate) fn key(&self) -> Result<Value, NotStored> {
        let answer = self
            .agent
            .get(self.address.route("key"))
            .header(header::AUTHORIZATION, self.key.bearer())
            .call();
        self.read(answer)
    }

    /// Sends a body; `progress` sees its bytes on their way.
    pub(crate) fn send<R: Read>(
        &self,
        body: &Body,
        progress: impl Fn(std::io::Cursor<Vec<u8>>) -> R,
    ) -> Result<Value, NotStored> {
        let mut request = self
            .agent
            .post(self.address.route("reports"))
            .header(header::AUTHORIZATION, self.key.bearer())
            .header(header::CONTENT_TYPE, body.content_type())
            .header(header::CONTENT_ENCODING, "zstd")
            .header(header::CONTENT_LENGTH, body.bytes.len().to_string());
        if body.bytes.len() > LARGE {
            request = request.header(header::EXPECT, "100-continue");
        }
        let mut bytes = progress(std::io::Cursor::new(body.bytes.clone()));
        self.read(request.send(SendBody::from_reader(&mut bytes)))
    }

    fn read(&self, answer: Result<Response<ureq::Body>, ureq::Error>) -> Result<Value, NotStored> {
        let unreachable = |error: ureq::Error| match untrusted(&error) {
            Some(problem) => NotStored::Untrusted(format!("{} is not trusted: {problem}", self.address)),
            None => NotStored::Unreachable(format!("{} gives no answer: {}", self.address, reason(&error))),
        };
        let mut answer = answer.map_err(unreachable)?;
        let status = answer.status();
        let header = |name| {
            answer
                .headers()
                .get(name)
                .and_then(|value: &header::HeaderValue| value.to_str().ok())
        };
        let retry_after = header(header::RETRY_AFTER)
            .and_then(|text| text.trim().parse().ok())
            .map(Duration::from_secs);
        let location = header(header::LOCATION).map(shown_name);
        let bytes = answer
            .body_mut()
            .with_config()
            .limit(LARGEST_ANSWER)
            .read_to_vec()
            .map_err(unreachable)?;
        let value = serde_json::from_slice::<Value>(&bytes).ok();
        if let (true, Some(value)) = (status.is_success(), &value) {
            return Ok(value.clone());
        }
        let text = |name: &str| value.as_ref()?.get(name)?.as_str().map(shown_name);
        let code = text("code").unwrap_or_default();
        // The ingest listener calls only read keys a wrong type.
        if code == "wrong_key_type" && !self.key.is_read_key() {
            return Err(NotStored::ReadApi(format!(
                "{} is the read API, which stores no reports",
                self.address
            )));
        }
        let reason = match (text("error"), location) {
            (Some(error), _) => at_fault(value.as_ref(), error),
            (None, Some(location)) if status.is_redirection() => {
                format!("it redirects to {location}, where the key is not sent; name that address")
            }
            (None, _) => beginning(&bytes),
        };
        Err(NotStored::Refused(Refusal {
            status: status.as_u16(),
            code,
            reason,
            retry_after,
        }))
    }
}

/// A client of a listener; an error where connections must be encrypted and this system trusts no authority.
pub(crate) fn agent(address: &Address) -> anyhow::Result<Agent> {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        // Another address must not get the key.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(USER_AGENT)
        .timeout_connect(Some(CONNECT))
        .timeout_await_100(Some(ACCEPT))
        .timeout_send_body(Some(SEND))
        .timeout_recv_response(Some(ANSWER))
        .timeout_recv_body(Some(ANSWER));
    if address.is_loopback {
        config = config.proxy(None);
    }
    if address.is_encrypted {
        config = config.tls_config(trusted_authorities()?);
    }
    Ok(config.build().into())
}

/// The error with the file and the line that it concerns, where it does not name them.
fn at_fault(value: Option<&Value>, error: String) -> String {
    let file = value
        .and_then(|value| value.get("file")?.as_str())
        .map(shown_name);
    let line = value.and_then(|value| value.get("line")?.as_u64());
    match (file, line) {
        (Some(file), _) if error.contains(&file) => error,
        (Some(file), Some(line)) => format!("{file}:{line}: {error}"),
        (Some(file), None) => format!("{file}: {error}"),
        (None, _) => error,
    }
}

/// The beginning of an answer that is no JSON, as from a proxy; of a page its title.
fn beginning(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let title = text
        .split_once("<title>")
        .and_then(|(_, rest)| rest.split_once("</title>"));
    let words: Vec<_> = title
        .map_or(&*text, |(title, _)| title)
        .split_whitespace()
        .collect();
    let shown: String = shown_name(&words.join(" ")).chars().take(LONGEST_SHOWN).collect();
    match shown.as_str() {
        "" => "it gives no reason".to_owned(),
        _ => shown,
    }
}

/// Why no answer came, in words.
pub(crate) fn reason(error: &ureq::Error) -> String {
    if let ureq::Error::Io(problem) = error {
        problem.to_string()
    } else if let ureq::Error::Timeout(waiting) = error {
        format!("waiting took too long ({waiting})")
    } else if let ureq::Error::HostNotFound = error {
        "no such host".to_owned()
    } else {
        error.to_string()
    }
}

/// The failure of the encryption behind an error, where it is one.
fn untrusted(error: &ureq::Error) -> Option<&rustls::Error> {
    if let ureq::Error::Rustls(problem) = error {
        Some(problem)
    } else if let ureq::Error::Io(problem) = error {
        problem.get_ref()?.downcast_ref()
    } else {
        None
    }
}

/// TLS that trusts the authorities of this system, so that a company's own is trusted where its machines trust it.
fn trusted_authorities() -> anyhow::Result<TlsConfig> {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<_> = found
        .certs
        .iter()
        .map(|certificate| Certificate::from_der(certificate).to_owned())
        .collect();
    anyhow::ensure!(
        !roots.is_empty(),
        "this system has no certificates of authorities, by which a server is known; install ca-certificates, or set \
         SSL_CERT_FILE to a file of them"
    );
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::from(roots))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}
