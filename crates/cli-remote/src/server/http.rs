//! HTTP requests to a server's listeners: the client, and an answer that was read to its end.

use std::time::{Duration, Instant};

use assay_reports::shown_name;
use rustls::CertificateError;
use serde_json::Value;
use ureq::{
    Agent, AsSendBody,
    http::{Method, Request, Response, StatusCode, header},
    tls::RootCerts,
};

use crate::server::address::Address;

const USER_AGENT: &str = concat!("assay/", env!("CARGO_PKG_VERSION"));
/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// Time limit for `100 Continue`. Then the body is sent anyway.
const ACCEPT: Duration = Duration::from_secs(5);
/// Time limit for sending a body. The server has the same limit.
const SEND: Duration = Duration::from_secs(600);
/// Time limit for the answer: waiting for the project's turn, parsing and storing.
const ANSWER: Duration = Duration::from_secs(180);
/// Largest answer that is read, in bytes.
const LARGEST_ANSWER: u64 = 16 << 20;
/// The number of characters that are shown of an answer that is not JSON.
const LONGEST_SHOWN: usize = 200;

/// How rustls names a server's certificate that is one of an authority.
const AUTHORITY: &str = "CaUsedAsEndEntity";

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// The server cannot be reached, or the connection was lost.
    #[error("{0}")]
    Unreachable(String),
    /// The server's certificate is not trusted, or the connection cannot be encrypted.
    #[error("{0}")]
    Untrusted(String),
    /// The server's certificate is one of an authority.
    #[error("{0}")]
    Authority(String),
    /// The CI service gives the job no token.
    #[error("the CI service gives no token: {0}")]
    NoToken(String),
    /// The other side speaks TLS where the address says http, or the other way round.
    #[error("{0}")]
    OtherProtocol(String),
}

impl NoAnswer {
    fn new(address: &Address, error: &ureq::Error) -> Self {
        let Some(problem) = untrusted(error) else {
            // Parsing fails at the first byte of a TLS alert.
            return if matches!(error, ureq::Error::Protocol(_)) && !address.is_encrypted {
                Self::OtherProtocol(format!(
                    "{address} does not speak HTTP without TLS ({})",
                    reason(error)
                ))
            } else {
                Self::Unreachable(format!("{address} does not answer: {}", reason(error)))
            };
        };
        let is_authority = || {
            matches!(
                problem,
                rustls::Error::InvalidCertificate(CertificateError::Other(_))
            ) && problem.to_string().contains(AUTHORITY)
        };
        if let rustls::Error::InvalidMessage(_) = problem {
            Self::OtherProtocol(format!("{address} does not speak TLS ({problem})"))
        } else if is_authority() {
            Self::Authority(format!(
                "{address} is not trusted: its certificate is one of an authority (CA:TRUE), which no server may use"
            ))
        } else {
            Self::Untrusted(format!("{address} is not trusted: {problem}"))
        }
    }

    /// Advice for the user.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => {
                "see whether ASSAY_URL (or ASSAY_INGEST_URL, or --url) names the server, and whether it runs and is reachable \
                 from here"
            }
            Self::NoToken(_) => {
                "give the job the right to tokens (on GitHub `permissions: id-token: write`), or set ASSAY_INGEST_KEY"
            }
            Self::Untrusted(_) => {
                "add the authority to this system's certificates, or set SSL_CERT_FILE to a file that holds it"
            }
            Self::Authority(_) => {
                "make a server's certificate, with `openssl req -x509 … -addext basicConstraints=critical,CA:FALSE` if it \
                 signs itself, and set SSL_CERT_FILE to it"
            }
            Self::OtherProtocol(_) => {
                "an address begins with https:// if the listener or a proxy before it has TLS, and else with http://"
            }
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::NoToken(_) => true,
            Self::Untrusted(_) | Self::Authority(_) | Self::OtherProtocol(_) => false,
        }
    }
}

/// Whether a request that got this status may succeed later.
pub fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The wait that the server asks for.
    pub retry_after: Option<Duration>,
    /// The end of a limit of the rate of which no request is left, as the server writes it: in seconds from now, or since
    /// 1970.
    pub limit_ends: Option<u64>,
    /// The target of a redirection.
    pub location: Option<String>,
    /// Whether a list has another page.
    pub has_next: bool,
    /// The body, if it is JSON.
    pub json: Option<Value>,
    bytes: Vec<u8>,
}

impl Answer {
    /// Reads an answer of the server at this address.
    pub fn read(
        address: &Address,
        answer: Result<Response<ureq::Body>, ureq::Error>,
    ) -> Result<Self, NoAnswer> {
        let mut answer = answer.map_err(|error| NoAnswer::new(address, &error))?;
        let header = |name: &str| answer.headers().get(name)?.to_str().ok();
        let number = |name: &str| header(name)?.trim().parse::<u64>().ok();
        // GitHub begins the names with `x-`.
        let of_limit = |name: &str| {
            number(&format!("x-ratelimit-{name}")).or_else(|| number(&format!("ratelimit-{name}")))
        };
        let is_used_up = !answer.status().is_success() && of_limit("remaining") == Some(0);
        // GitHub forbids a request before its limit of an hour begins again.
        let retry_after = number("retry-after").or(is_used_up.then_some(3_600));
        let limit_ends = of_limit("reset").filter(|_| is_used_up);
        let location = header("location").map(shown_name);
        let has_next = header("link").is_some_and(|links| links.contains("rel=\"next\""));
        let bytes = answer
            .body_mut()
            .with_config()
            .limit(LARGEST_ANSWER)
            .read_to_vec()
            .map_err(|error| NoAnswer::new(address, &error))?;
        Ok(Self {
            status: answer.status(),
            retry_after: retry_after.map(Duration::from_secs),
            limit_ends,
            location,
            has_next,
            json: serde_json::from_slice(&bytes).ok(),
            bytes,
        })
    }

    /// A text field of the JSON, without characters that control a terminal.
    pub fn text(&self, name: &str) -> Option<String> {
        self.json.as_ref()?.get(name)?.as_str().map(shown_name)
    }

    /// Whether a code host or a CI service refuses the request for its limit of the rate. GitHub answers 403 with
    /// `Retry-After` or this text if a secondary limit is exceeded.
    pub fn is_of_limit(&self) -> bool {
        let text = || String::from_utf8_lossy(&self.bytes).to_ascii_lowercase();
        match self.status.as_u16() {
            403 => self.retry_after.is_some() || text().contains("rate limit"),
            status => status == 429,
        }
    }

    /// Whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }

    /// The beginning of an answer that is not JSON, for example of a proxy. For an HTML page, its title.
    pub fn beginning(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let title = text
            .split_once("<title>")
            .and_then(|(_, rest)| rest.split_once("</title>"));
        let words: Vec<_> = title
            .map_or(&*text, |(title, _)| title)
            .split_whitespace()
            .collect();
        let beginning: String = shown_name(&words.join(" ")).chars().take(LONGEST_SHOWN).collect();
        match beginning.as_str() {
            "" => "it gives no reason".to_owned(),
            _ => beginning,
        }
    }
}

/// A client of one listener.
pub struct Client {
    pub(crate) agent: Agent,
    /// The listener.
    pub address: Address,
}

impl Client {
    /// Creates a client. Fails if connections must be encrypted and this system trusts no authority.
    pub fn new(address: Address) -> anyhow::Result<Self> {
        Ok(Self {
            agent: agent(&address)?,
            address,
        })
    }

    /// Sends a request with JSON, if any, and reads the answer. A request with a limit takes at most this time in all.
    pub fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
        limit: Option<Duration>,
    ) -> Result<Answer, NoAnswer> {
        // A request that creates something has a length even without a body.
        let has_length = method == Method::POST;
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = match body {
            Some(body) => {
                let request = request.header(header::CONTENT_TYPE, "application/json");
                self.run(request.body(body.to_string()), limit)
            }
            None if has_length => self.run(request.body(String::new()), limit),
            None => self.run(request.body(()), limit),
        };
        Answer::read(&self.address, answer)
    }

    fn run(
        &self,
        request: ureq::http::Result<Request<impl AsSendBody>>,
        limit: Option<Duration>,
    ) -> Result<Response<ureq::Body>, ureq::Error> {
        let request = self.agent.configure_request(request?);
        self.agent.run(request.timeout_global(limit).build())
    }
}

/// Creates a client of a listener. Fails if connections must be encrypted and this system trusts no authority.
pub fn agent(address: &Address) -> anyhow::Result<Agent> {
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
    let tls = assay_outbound::trusted_authorities();
    anyhow::ensure!(
        !address.is_encrypted || !matches!(tls.root_certs(), RootCerts::Specific(roots) if roots.is_empty()),
        "this system has no CA certificates to verify a server with; install ca-certificates, or set \
         SSL_CERT_FILE to a file of them"
    );
    Ok(config.tls_config(tls).build().into())
}

/// The time until a deadline.
pub fn until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Describes why there is no answer.
fn reason(error: &ureq::Error) -> String {
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

/// The TLS failure behind an error, if any.
fn untrusted(error: &ureq::Error) -> Option<&rustls::Error> {
    if let ureq::Error::Rustls(problem) = error {
        Some(problem)
    } else if let ureq::Error::Io(problem) = error {
        problem.get_ref()?.downcast_ref()
    } else {
        None
    }
}
