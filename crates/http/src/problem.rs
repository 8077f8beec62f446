//! The refusals and failures that every listener has: status, code, sentence and `Retry-After`.

use std::borrow::Cow;

use actix_web::{
    HttpResponse, HttpResponseBuilder,
    http::{
        StatusCode,
        header::{self, HeaderValue},
    },
};
use assay_access::check::{CheckError, Refusal};
use assay_domain::{key::KeyKind, store::StoreError};
use serde::Serialize;

use crate::{access_log::RATE_LIMITED, admission::Rejected};

/// Why the reception did not let a request's work run, or why the work failed.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The key is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The key sent too many requests.
    #[error("the key's budget of requests is used up")]
    RateLimited {
        /// Seconds until the budget is full again.
        after_s: u64,
    },
    /// The issuer of a token does not answer.
    #[error("the issuer of the token does not answer")]
    IssuerSilent,
    /// No thread became free in time. The work did not start.
    #[error("the queue of requests is full")]
    Overloaded,
    /// The work did not end in time and still holds its thread.
    #[error("the request took too long; its thread is still busy")]
    TimedOut,
    /// The work panicked.
    #[error("the work panicked")]
    Panicked,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CheckError> for Problem {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Refused(refusal) => Self::Refused(refusal),
            CheckError::Token(_) => Self::IssuerSilent,
            CheckError::Store(error) => Self::Store(error),
        }
    }
}

impl From<Rejected> for Problem {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::Overloaded => Self::Overloaded,
            Rejected::TimedOut => Self::TimedOut,
            Rejected::Panicked => Self::Panicked,
        }
    }
}

/// A failure of the server, without its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The same request may succeed in a moment. With this status, a load balancer tries another server.
    Temporary,
    /// The same request may succeed once the database has space.
    Exhausted,
    /// The request fails until an operator grants the server a right in the database.
    NotPermitted,
    /// The request failed.
    Permanent,
}

impl Fault {
    /// The fault of a failure of the store.
    pub const fn of(error: &StoreError) -> Self {
        match error {
            StoreError::Unreachable(_) => Self::Temporary,
            StoreError::Exhausted { .. } => Self::Exhausted,
            StoreError::NotPermitted { .. } => Self::NotPermitted,
            StoreError::Failed { .. } | StoreError::Corrupt { .. } => Self::Permanent,
        }
    }

    /// The status.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Temporary | Self::Exhausted => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotPermitted | Self::Permanent => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The stable code on a listener for keys of this kind. The codes of the read API are a closed list without a word
    /// for a temporary failure.
    pub const fn code(self, kind: KeyKind) -> &'static str {
        match (self, kind) {
            (Self::Temporary | Self::Exhausted, KeyKind::Ingest) => "busy",
            (Self::NotPermitted, KeyKind::Ingest) => "not_permitted",
            (Self::Temporary | Self::Exhausted | Self::NotPermitted | Self::Permanent, KeyKind::Read)
            | (Self::Permanent, KeyKind::Ingest) => "internal_error",
        }
    }

    /// The message if the store failed.
    pub const fn sentence(self, kind: KeyKind) -> &'static str {
        match (self, kind) {
            (Self::Temporary, KeyKind::Ingest) => {
                "The database is unreachable; send the request again. It is stored only once."
            }
            (Self::Exhausted, KeyKind::Ingest) => {
                "The database has no space or memory left; send the request again later. It is stored only once."
            }
            (Self::Exhausted, KeyKind::Read) => "The database has no space or memory left; try again later.",
            (Self::NotPermitted, KeyKind::Ingest) => {
                "The server lacks a right in its database; its operator runs `assay-admin migrate`, then send the request again."
            }
            (Self::Temporary | Self::NotPermitted | Self::Permanent, KeyKind::Read)
            | (Self::Permanent, KeyKind::Ingest) => FAILED,
        }
    }

    /// Seconds after which a client may repeat the request. An upload is worth a longer wait than a read.
    pub const fn retry_after_s(self, kind: KeyKind) -> Option<u64> {
        match (self, kind) {
            (Self::Temporary, KeyKind::Read) => Some(1),
            (Self::Temporary, KeyKind::Ingest) => Some(5),
            (Self::Exhausted, KeyKind::Read | KeyKind::Ingest) => Some(30),
            (Self::NotPermitted | Self::Permanent, KeyKind::Read | KeyKind::Ingest) => None,
        }
    }
}

const DAMAGED: &str = "The stored data of this answer are damaged; the server's operator runs `assay-admin doctor`, which names them and says how to repair them.";
const FAILED: &str = "The server failed to answer; try again later.";

impl Problem {
    /// The fault, if it is a failure of the server.
    const fn fault(&self) -> Option<Fault> {
        match self {
            Self::Refused(_) | Self::RateLimited { .. } => None,
            Self::Overloaded | Self::TimedOut | Self::IssuerSilent => Some(Fault::Temporary),
            Self::Panicked => Some(Fault::Permanent),
            Self::Store(error) => Some(Fault::of(error)),
        }
    }

    /// The status, and the stable code that clients match on, on a listener for keys of this kind.
    pub const fn status_and_code(&self, kind: KeyKind) -> (StatusCode, &'static str) {
        match self {
            Self::Refused(Refusal::MissingKey) => (StatusCode::UNAUTHORIZED, "missing_key"),
            Self::Refused(Refusal::WrongKeyType) => (StatusCode::UNAUTHORIZED, "wrong_key_type"),
            Self::Refused(Refusal::InvalidKey) => (StatusCode::UNAUTHORIZED, "invalid_key"),
            Self::Refused(Refusal::InvalidToken(_)) => (StatusCode::UNAUTHORIZED, "invalid_token"),
            Self::Refused(Refusal::KeyRevoked) => (StatusCode::UNAUTHORIZED, "key_revoked"),
            Self::Refused(Refusal::KeyExpired | Refusal::SessionEnded) => {
                (StatusCode::UNAUTHORIZED, "key_expired")
            }
            Self::Refused(Refusal::TierTooLow) => (StatusCode::FORBIDDEN, "tier_too_low"),
            Self::RateLimited { .. } => (StatusCode::TOO_MANY_REQUESTS, RATE_LIMITED),
            Self::IssuerSilent => (StatusCode::SERVICE_UNAVAILABLE, "issuer_unavailable"),
            Self::Overloaded | Self::TimedOut => (Fault::Temporary.status(), Fault::Temporary.code(kind)),
            Self::Panicked => (Fault::Permanent.status(), Fault::Permanent.code(kind)),
            Self::Store(error) => (Fault::of(error).status(), Fault::of(error).code(kind)),
        }
    }

    /// The message for a client with a key of this kind. It never reveals the cause of a failure.
    pub fn sentence(&self, kind: KeyKind) -> Cow<'static, str> {
        match self {
            Self::Refused(Refusal::InvalidToken(why)) => format!("The token is refused: {why}.").into(),
            Self::Refused(refusal) => refusal_sentence(*refusal, kind).into(),
            Self::IssuerSilent => "The issuer of the token does not answer; send the request again.".into(),
            Self::RateLimited { after_s } => {
                format!("Too many requests with this key; try again in {after_s} s.").into()
            }
            Self::Overloaded => "The server has more requests than it can answer; try again later.".into(),
            Self::TimedOut | Self::Panicked => FAILED.into(),
            Self::Store(StoreError::Corrupt { .. }) => DAMAGED.into(),
            Self::Store(error) => Fault::of(error).sentence(kind).into(),
        }
    }

    /// Seconds to wait before the request is repeated.
    pub const fn retry_after_s(&self, kind: KeyKind) -> Option<u64> {
        match (self, self.fault()) {
            (Self::RateLimited { after_s }, _) => Some(*after_s),
            (_, Some(fault)) => fault.retry_after_s(kind),
            (_, None) => None,
        }
    }

    /// Whether it is a failure of the server that the log shows with its causes. Rejections under overload are not
    /// logged one by one, because that would cost more than the rejection. Admission control logs how many there are, and
    /// the verifier of tokens logs which issuer does not answer.
    pub const fn is_failure(&self) -> bool {
        self.fault().is_some() && !matches!(self, Self::Overloaded | Self::IssuerSilent)
    }

    /// The response in JSON on a listener for keys of this kind.
    pub fn response(&self, kind: KeyKind) -> HttpResponse {
        #[derive(Serialize)]
        struct Body {
            error: Cow<'static, str>,
            code: &'static str,
        }
        let (status, code) = self.status_and_code(kind);
        let error = self.sentence(kind);
        refusal(status, self.retry_after_s(kind), &[]).json(Body { error, code })
    }
}

const fn refusal_sentence(refusal: Refusal, kind: KeyKind) -> &'static str {
    match (refusal, kind) {
        (Refusal::MissingKey, KeyKind::Read) => {
            "Send a read key in the Authorization header, as: Bearer svc_ro_…"
        }
        (Refusal::MissingKey, KeyKind::Ingest) => {
            "Send the project's ingest key in the Authorization header, as: Bearer svc_…"
        }
        (Refusal::WrongKeyType, KeyKind::Read) => {
            "This is a project's ingest key; use an organization read key, which begins with svc_ro_."
        }
        (Refusal::WrongKeyType, KeyKind::Ingest) => {
            "This is a read key; use the project's ingest key, which `assay-admin key create-ingest` creates."
        }
        (Refusal::InvalidKey, KeyKind::Read) => "The read key is not valid.",
        (Refusal::InvalidKey, KeyKind::Ingest) => "The ingest key is not valid.",
        (Refusal::InvalidToken(why), KeyKind::Read | KeyKind::Ingest) => why,
        (Refusal::SessionEnded, KeyKind::Read | KeyKind::Ingest) => {
            "The session has ended; sign in again, in a terminal with `assay login`."
        }
        (Refusal::KeyRevoked, KeyKind::Read) => "The read key was revoked; create a new one.",
        (Refusal::KeyRevoked, KeyKind::Ingest) => "The ingest key was revoked; create a new one.",
        (Refusal::KeyExpired, KeyKind::Read) => "The read key has expired; create a new one.",
        (Refusal::KeyExpired, KeyKind::Ingest) => "The ingest key has expired; create a new one.",
        (Refusal::TierTooLow, KeyKind::Read | KeyKind::Ingest) => {
            "The read API requires the Standard or Pro plan; this organization is on the Free plan."
        }
    }
}

/// The head of a response that refuses a request or reports a failure.
pub fn refusal(
    status: StatusCode,
    retry_after_s: Option<u64>,
    allowed_methods: &[&str],
) -> HttpResponseBuilder {
    let mut response = HttpResponseBuilder::new(status);
    response.insert_header((
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-store"),
    ));
    if status == StatusCode::UNAUTHORIZED {
        response.insert_header((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
    }
    if let Some(after_s) = retry_after_s {
        response.insert_header((header::RETRY_AFTER, after_s));
    }
    if !allowed_methods.is_empty() {
        response.insert_header((header::ALLOW, allowed_methods.join(", ")));
    }
    response
}
