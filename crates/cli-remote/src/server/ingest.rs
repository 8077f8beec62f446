//! Requests to the ingest listener, and advice for its errors.

use std::{fmt, time::Duration};

use assay_cli_terminal::{
    progress::{CountedRead, Counter},
    retry::Transient,
};
use assay_domain::{decision::GateDecision, fix::NewFix, id::RunId};
use assay_reports::shown_name;
use serde_json::{Value, json};
use ureq::{
    SendBody,
    http::{Method, StatusCode, header},
};

use crate::server::http::{self, Answer, Client, NoAnswer};
use crate::server::{
    address::{Address, Key},
    body::Body,
};

/// Before it sends a larger body, the client waits for `100 Continue`. The server reads at most this many bytes of a
/// body that it refuses.
const LARGE: usize = 1 << 20;

/// Advice if another listener answers.
const OTHER_LISTENER: &str = "this address does not serve /ingest/v1; ASSAY_INGEST_URL names the ingest listener \
                              (ASSAY_INGEST_LISTEN of assay-server), not the read API";

/// A client of one ingest listener.
pub struct Server {
    client: Client,
    key: Key,
}

/// The reason why a report was not stored.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The server did not get the whole report.
    #[error(transparent)]
    NoAnswer(NoAnswer),
    /// The server got the whole report, and its answer was lost.
    #[error(transparent)]
    AnswerLost(NoAnswer),
    /// The read API answered. It refuses ingest keys.
    #[error("{0} is the read API, which stores no reports")]
    ReadApi(Address),
    /// The server answered with an error.
    #[error("{0}")]
    Refused(Refusal),
}

/// An error that the server answered.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    /// The machine-readable code. Empty if another program answered.
    code: String,
    reason: String,
    retry_after: Option<Duration>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, reason) = (self.status.as_u16(), &self.reason);
        match self.code.as_str() {
            "" => write!(f, "the server answered {status}: {reason}"),
            code => write!(f, "{reason} ({status} {code})"),
        }
    }
}

impl Transient for UploadError {
    fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer(problem) | Self::AnswerLost(problem) => problem.is_transient(),
            Self::ReadApi(_) => false,
            Self::Refused(refusal) => refusal.code != "not_permitted" && http::is_transient(refusal.status),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        self.refusal().and_then(|refusal| refusal.retry_after)
    }
}

impl UploadError {
    /// The error that the ingest listener answered, if it did.
    const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::NoAnswer(_) | Self::AnswerLost(_) | Self::ReadApi(_) => None,
            Self::Refused(refusal) => Some(refusal),
        }
    }

    /// The machine-readable code and the status of the server's answer; empty and 0 if it has none.
    fn answered(&self) -> (&str, u16) {
        self.refusal().map_or(("", 0), |refusal| {
            (refusal.code.as_str(), refusal.status.as_u16())
        })
    }

    /// The machine-readable code of the server's answer; empty if it has none.
    pub fn code(&self) -> &str {
        self.answered().0
    }

    /// Whether the report itself is refused, so that sending it later or with another key does not help.
    pub fn is_the_reports_fault(&self) -> bool {
        matches!(self.answered().1, 400 | 409 | 413 | 415 | 422)
    }

    /// Whether the key may not store this report, so that sending it later with the same key does not help.
    pub fn is_forbidden_to_the_key(&self) -> bool {
        matches!(self.code(), "wrong_project" | "branch_not_allowed")
    }

    /// Whether the server refuses the key itself, with any report.
    pub fn is_the_keys_fault(&self) -> bool {
        self.answered().1 == 401
    }

    /// Whether another report that is sent now fails for the same reason.
    pub fn concerns_every_report(&self) -> bool {
        matches!(self.answered().1, 0 | 300..=399 | 401 | 404 | 405 | 429 | 502..=504)
    }

    /// Whether sending the report later may succeed.
    pub fn is_worth_spooling(&self) -> bool {
        !self.is_the_reports_fault() && !self.is_forbidden_to_the_key()
    }

    /// Whether the server answered with a failure of its own.
    pub fn is_failure_of_the_server(&self) -> bool {
        self.answered().1 >= 500
    }

    /// Whether the server may have stored the report.
    pub fn may_be_stored(&self) -> bool {
        match self {
            Self::NoAnswer(_) | Self::ReadApi(_) => false,
            Self::AnswerLost(_) => true,
            Self::Refused(refusal) => refusal.status.is_success() || refusal.status.is_server_error(),
        }
    }

    /// Advice for the user.
    pub fn advice(&self) -> Option<&'static str> {
        let refusal = match self {
            Self::NoAnswer(problem) | Self::AnswerLost(problem) => return Some(problem.advice()),
            Self::ReadApi(_) => return Some(OTHER_LISTENER),
            Self::Refused(refusal) => refusal,
        };
        match (refusal.code.as_str(), refusal.status.as_u16()) {
            ("missing_key" | "invalid_key" | "key_revoked" | "key_expired", _) => Some(
                "`assay-admin key create-ingest --project P` makes a key; put it into the secret ASSAY_INGEST_KEY",
            ),
            ("invalid_token", _) => Some(
                "`assay-admin trust list` shows which tokens the project trusts; their audience is the address of the \
                 installation, which ASSAY_URL must name as ASSAY_PUBLIC_URL does",
            ),
            ("wrong_project", _) => {
                Some("an ingest key belongs to one project; name it with --project, or omit the flag")
            }
            ("unrecognised" | "broken_report", _) => {
                Some("one file that cannot be read refuses the whole upload: correct it, or leave it out")
            }
            ("run_closed", _) => Some(
                "the run is too old to change over HTTP; `assay-admin import` still can, or give another --run-key",
            ),
            ("rate_limited" | "busy" | "too_slow" | "internal_error", _) => {
                Some("run the command again later; a report that is sent twice is stored once")
            }
            ("not_found", _) => Some("the server is older than this program; update it"),
            ("", 404 | 405) => Some(OTHER_LISTENER),
            _ => None,
        }
    }
}

impl Server {
    /// Creates a client. Fails if connections must be encrypted and this system trusts no authority.
    pub fn new(address: Address, key: Key) -> anyhow::Result<Self> {
        let client = Client::new(address)?;
        Ok(Self { client, key })
    }

    /// The address of the listener.
    pub fn address(&self) -> &Address {
        &self.client.address
    }

    /// The identifier of the key.
    pub fn key_identifier(&self) -> String {
        self.key.identifier()
    }

    /// Asks the server to describe the key.
    pub fn key(&self) -> Result<Value, UploadError> {
        self.ask(Method::GET, "key", None, None)
    }

    /// Sends a body, whose bytes `counter` counts.
    pub fn send(&self, body: &Body, counter: &dyn Counter) -> Result<Value, UploadError> {
        let mut request = self
            .client
            .agent
            .post(self.address().route("reports"))
            .header(header::AUTHORIZATION, self.bearer()?)
            .header(header::CONTENT_TYPE, body.content_type())
            .header(header::CONTENT_ENCODING, "zstd")
            .header(header::CONTENT_LENGTH, body.bytes.len().to_string());
        if body.bytes.len() > LARGE {
            request = request.header(header::EXPECT, "100-continue");
        }
        let mut bytes = CountedRead {
            inner: std::io::Cursor::new(body.bytes.clone()),
            counter,
        };
        let answer = request.send(SendBody::from_reader(&mut bytes));
        let is_complete = bytes.inner.position() >= u64::try_from(body.bytes.len()).unwrap_or(u64::MAX);
        let answer = Answer::read(self.address(), answer).map_err(UploadError::NoAnswer);
        answer
            .and_then(|answer| self.read(answer))
            .map_err(|error| match (error, is_complete) {
                (UploadError::NoAnswer(problem), true) => UploadError::AnswerLost(problem),
                (error, _) => error,
            })
    }

    /// Sends a gate's decision on an upload, in at most this time.
    pub fn decide(&self, decision: &GateDecision, limit: Duration) -> Result<Value, UploadError> {
        self.post("decisions", &json!(decision), limit)
    }

    /// Sends a fix, in at most this time.
    pub fn store_fix(&self, fix: &NewFix, limit: Duration) -> Result<Value, UploadError> {
        self.post("fixes", &json!(fix), limit)
    }

    /// Asks for the comment on the commit of a run, in at most this time.
    pub fn comment(&self, run: RunId, limit: Duration) -> Result<Value, UploadError> {
        self.post("comments", &json!({ "runId": run }), limit)
    }

    fn post(&self, route: &str, body: &Value, limit: Duration) -> Result<Value, UploadError> {
        self.ask(Method::POST, route, Some(body), Some(limit))
    }

    fn ask(
        &self,
        method: Method,
        route: &str,
        body: Option<&Value>,
        limit: Option<Duration>,
    ) -> Result<Value, UploadError> {
        let (url, bearer) = (self.address().route(route), self.bearer()?);
        let headers = [(header::AUTHORIZATION.as_str(), bearer.as_str())];
        let answer = self.client.send(method, &url, &headers, body, limit);
        self.read(answer.map_err(UploadError::NoAnswer)?)
    }

    fn bearer(&self) -> Result<String, UploadError> {
        self.key.bearer(self.address()).map_err(UploadError::NoAnswer)
    }

    fn read(&self, answer: Answer) -> Result<Value, UploadError> {
        if let (true, Some(json)) = (answer.status.is_success(), &answer.json) {
            return Ok(json.clone());
        }
        let code = answer.text("code").unwrap_or_default();
        // The ingest listener answers `wrong_key_type` only to read keys.
        if code == "wrong_key_type" && !self.key.is_read_key() {
            return Err(UploadError::ReadApi(self.address().clone()));
        }
        let reason = match (answer.text("error"), &answer.location) {
            (Some(error), _) => at_fault(answer.json.as_ref(), error),
            (None, Some(location)) if answer.status.is_redirection() => {
                format!("it redirects to {location}, where the key is not sent; use that address")
            }
            (None, _) => answer.beginning(),
        };
        Err(UploadError::Refused(Refusal {
            status: answer.status,
            code,
            reason,
            retry_after: answer.retry_after,
        }))
    }
}

/// Adds the file and the line to the error if it does not name them.
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
