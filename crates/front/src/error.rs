//! Errors of pages. Only this file maps the pages' errors to HTTP statuses.

use actix_web::http::StatusCode;
use assay_access::check::{CheckError, Refusal};
use assay_domain::{store::StoreError, test::CandidateFiles};
use assay_listener::{Rejected, RequestId, with_causes};

/// The reason why there is no page. Not-found variants have no fields, so that such pages cannot differ.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrontError {
    #[error("there is no session")]
    SignedOut,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("too many pages")]
    TooMany,
    #[error("too many sign-ins")]
    TooManySignIns,
    #[error("no such page")]
    NoSuchPage,
    #[error("no such method")]
    NoSuchMethod,
    #[error("the form was not sent by this site")]
    ForeignForm,
    #[error("the form was sent in plain from another machine")]
    FormInPlain,
    #[error("the form is too long")]
    LongForm,
    #[error("the form arrived too slowly")]
    SlowForm,
    #[error("the form is incomplete")]
    BrokenForm,
    #[error("{name} is not valid")]
    BadParameter { name: &'static str, rule: String },
    #[error("no such project")]
    ProjectNotFound,
    #[error("no such run")]
    RunNotFound,
    #[error("no such test")]
    TestNotFound,
    #[error("no such signature")]
    SignatureNotFound,
    #[error("several tests have the name")]
    AmbiguousTest(CandidateFiles),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the page could not be compressed")]
    Encoding(#[from] std::io::Error),
    #[error("a session could not be sealed")]
    Sealing(#[from] crate::session::NoRandomness),
    #[error("the page panicked")]
    Aborted,
    #[error("the request took too long; its thread is still busy")]
    TookTooLong,
    #[error("the queue of requests is full")]
    Overloaded,
}

impl From<CheckError> for FrontError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Refused(refusal) => Self::Refused(refusal),
            CheckError::Store(error) => Self::Store(error),
        }
    }
}

impl From<Rejected> for FrontError {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::Overloaded => Self::Overloaded,
            Rejected::TimedOut => Self::TookTooLong,
            Rejected::Panicked => Self::Aborted,
        }
    }
}

impl FrontError {
    pub(crate) const fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::SignedOut => (StatusCode::UNAUTHORIZED, "missing_key"),
            Self::Refused(Refusal::MissingKey) => (StatusCode::UNAUTHORIZED, "missing_key"),
            Self::Refused(Refusal::WrongKeyType) => (StatusCode::UNAUTHORIZED, "wrong_key_type"),
            Self::Refused(Refusal::InvalidKey) => (StatusCode::UNAUTHORIZED, "invalid_key"),
            Self::Refused(Refusal::KeyRevoked) => (StatusCode::UNAUTHORIZED, "key_revoked"),
            Self::Refused(Refusal::KeyExpired) => (StatusCode::UNAUTHORIZED, "key_expired"),
            Self::Refused(Refusal::TierTooLow) => (StatusCode::FORBIDDEN, "tier_too_low"),
            Self::TooMany | Self::TooManySignIns => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
            Self::NoSuchPage => (StatusCode::NOT_FOUND, "invalid_parameter"),
            Self::NoSuchMethod => (StatusCode::METHOD_NOT_ALLOWED, "invalid_parameter"),
            Self::ForeignForm | Self::FormInPlain => (StatusCode::FORBIDDEN, "foreign_form"),
            Self::LongForm => (StatusCode::PAYLOAD_TOO_LARGE, "invalid_parameter"),
            Self::SlowForm => (StatusCode::REQUEST_TIMEOUT, "invalid_parameter"),
            Self::BrokenForm => (StatusCode::BAD_REQUEST, "invalid_parameter"),
            Self::BadParameter { .. } => (StatusCode::BAD_REQUEST, "invalid_parameter"),
            Self::ProjectNotFound => (StatusCode::NOT_FOUND, "project_not_found"),
            Self::RunNotFound => (StatusCode::NOT_FOUND, "run_not_found"),
            Self::TestNotFound => (StatusCode::NOT_FOUND, "test_not_found"),
            Self::SignatureNotFound => (StatusCode::NOT_FOUND, "error_not_found"),
            Self::AmbiguousTest(_) => (StatusCode::BAD_REQUEST, "ambiguous_test"),
            Self::Store(StoreError::Unreachable(_)) | Self::TookTooLong | Self::Overloaded => {
                (StatusCode::SERVICE_UNAVAILABLE, "internal_error")
            }
            Self::Store(StoreError::Failed { .. } | StoreError::Corrupt { .. })
            | Self::Encoding(_)
            | Self::Sealing(_)
            | Self::Aborted => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
        }
    }

    /// The message on the page; the API's message if the API has the same error.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::SignedOut | Self::Refused(Refusal::MissingKey) => "Sign in with a read key.".to_owned(),
            Self::Refused(Refusal::WrongKeyType) => {
                "This is a project's ingest key; use an organization read key, which begins with svc_ro_."
                    .to_owned()
            }
            Self::Refused(Refusal::InvalidKey) => "The read key is not valid.".to_owned(),
            Self::Refused(Refusal::KeyRevoked) => "The read key was revoked; create a new one.".to_owned(),
            Self::Refused(Refusal::KeyExpired) => "The read key has expired; create a new one.".to_owned(),
            Self::Refused(Refusal::TierTooLow) => {
                "The read API requires the Standard or Pro plan; this organization is on the Free plan."
                    .to_owned()
            }
            Self::TooMany => {
                "This session asked for more than 600 pages in a minute; wait a minute.".to_owned()
            }
            Self::TooManySignIns => {
                "This key was sent in more than 600 sign-in forms in a minute; wait a minute.".to_owned()
            }
            Self::NoSuchPage => "There is no such page.".to_owned(),
            Self::NoSuchMethod => {
                "This address does not accept this method; the header Allow has those that it accepts."
                    .to_owned()
            }
            Self::ForeignForm => {
                "The form was not sent by this site; open the sign-in page and try again.".to_owned()
            }
            Self::FormInPlain => {
                "Without TLS these pages work only on the machine of the server; open them with https, or there with http://localhost."
                    .to_owned()
            }
            Self::LongForm => "The form is longer than 1,024 bytes.".to_owned(),
            Self::SlowForm => "The form took longer than 10 seconds to arrive; send it again.".to_owned(),
            Self::BrokenForm => "The form is incomplete; send it again.".to_owned(),
            Self::BadParameter { name, rule } => format!("The parameter {name} {rule}."),
            Self::ProjectNotFound => "No project of this organization has this id.".to_owned(),
            Self::RunNotFound => "No run of this project has this id.".to_owned(),
            Self::TestNotFound => "No test has this name (and file, where a file was given).".to_owned(),
            Self::SignatureNotFound => "No error signature of this project has this fingerprint.".to_owned(),
            Self::AmbiguousTest(_) => "Several tests have this name; choose one of these files.".to_owned(),
            Self::Overloaded => {
                "The server has more requests than it can answer; try again later.".to_owned()
            }
            Self::Store(_) | Self::Encoding(_) | Self::Sealing(_) | Self::Aborted | Self::TookTooLong => {
                "The server failed to answer; try again later.".to_owned()
            }
        }
    }

    /// Logs a failure of the server with its causes. A refusal is the client's error and is not logged.
    pub(crate) fn log(&self, route: &str, id: &RequestId) {
        if !self.status_and_code().0.is_server_error() || matches!(self, Self::Overloaded) {
            return;
        }
        log::error!(request_id:% = id, route; "a page failed: {}", with_causes(self));
    }
}
