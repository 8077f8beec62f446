//! Errors and their HTTP statuses.

use std::{fmt::Write as _, io};

use actix_web::{
    HttpResponse, HttpResponseBuilder,
    http::{
        StatusCode,
        header::{self, HeaderValue},
    },
};
use assay_access::check::{CheckError, Refusal};
use assay_domain::{plan::Plan, store::StoreError, test::CandidateFiles, window::Days};
use assay_listener::{Rejected, RequestId, with_causes};
use serde::Serialize;

use crate::{answer::Caching, memory::MemoryExhausted};

/// Seconds after which a client may retry a temporary failure.
const RETRY_AFTER_S: &str = "1";

/// The reason why a request failed. Not-found variants have no fields, so that such answers cannot differ.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("no such route")]
    NoSuchRoute,
    #[error("no such method")]
    NoSuchMethod,
    #[error("{name} is not valid")]
    BadParameter {
        name: &'static str,
        /// The problem or the allowed values, as the end of a sentence that begins with the name.
        rule: String,
    },
    #[error("the period is not valid")]
    BadPeriod(Plan),
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
    #[error("the answer could not be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("the answer could not be compressed")]
    Encoding(#[source] io::Error),
    #[error("the handler panicked")]
    Aborted,
    #[error("the request took too long; its thread is still busy")]
    TookTooLong,
    #[error("the queue of requests is full")]
    Overloaded,
    #[error("the run changed while its tests were read")]
    Changed,
    #[error("the memory for answers is full of answers that clients have not read")]
    MemoryExhausted,
}

impl From<CheckError> for ApiError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Refused(refusal) => Self::Refused(refusal),
            CheckError::Store(error) => Self::Store(error),
        }
    }
}

impl From<Rejected> for ApiError {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::Overloaded => Self::Overloaded,
            Rejected::TimedOut => Self::TookTooLong,
            Rejected::Panicked => Self::Aborted,
        }
    }
}

impl From<MemoryExhausted> for ApiError {
    fn from(_: MemoryExhausted) -> Self {
        Self::MemoryExhausted
    }
}

/// The body of every error.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct ErrorBody {
    /// The problem, in a sentence that may be reworded.
    error: String,
    /// The problem, in a stable word.
    code: &'static str,
}

impl ErrorBody {
    pub(crate) fn of(error: &ApiError) -> Self {
        Self {
            error: error.sentence(),
            code: error.code(),
        }
    }
}

impl ApiError {
    /// The response to the client.
    pub(crate) fn response(&self) -> HttpResponse {
        let (status, _) = self.status_and_code();
        let mut response = HttpResponseBuilder::new(status);
        response.insert_header((header::CACHE_CONTROL, Caching::None.header()));
        if status == StatusCode::UNAUTHORIZED {
            response.insert_header((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.insert_header((header::ALLOW, HeaderValue::from_static("GET, HEAD")));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.insert_header((header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S)));
        }
        response.json(ErrorBody::of(self))
    }

    /// The stable code that clients match on.
    pub(crate) const fn code(&self) -> &'static str {
        self.status_and_code().1
    }

    /// Logs a failure of the server with its causes. Errors of the client are not logged. Rejections under overload are
    /// not logged one by one, because that would cost more than the rejection. The admission control and the memory of
    /// answers log how many there are.
    pub(crate) fn log(&self, route: &str, id: &RequestId) {
        if !self.status_and_code().0.is_server_error()
            || matches!(self, Self::Overloaded | Self::MemoryExhausted)
        {
            return;
        }
        log::error!(request_id:% = id, route; "a request failed: {}", with_causes(self));
    }

    pub(crate) const fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Refused(Refusal::MissingKey) => (StatusCode::UNAUTHORIZED, "missing_key"),
            Self::Refused(Refusal::WrongKeyType) => (StatusCode::UNAUTHORIZED, "wrong_key_type"),
            Self::Refused(Refusal::InvalidKey) => (StatusCode::UNAUTHORIZED, "invalid_key"),
            Self::Refused(Refusal::KeyRevoked) => (StatusCode::UNAUTHORIZED, "key_revoked"),
            Self::Refused(Refusal::KeyExpired) => (StatusCode::UNAUTHORIZED, "key_expired"),
            Self::Refused(Refusal::TierTooLow) => (StatusCode::FORBIDDEN, "tier_too_low"),
            Self::NoSuchRoute => (StatusCode::NOT_FOUND, "invalid_parameter"),
            Self::NoSuchMethod => (StatusCode::METHOD_NOT_ALLOWED, "invalid_parameter"),
            Self::BadParameter { .. } => (StatusCode::BAD_REQUEST, "invalid_parameter"),
            Self::BadPeriod(_) => (StatusCode::BAD_REQUEST, "invalid_period"),
            Self::ProjectNotFound => (StatusCode::NOT_FOUND, "project_not_found"),
            Self::RunNotFound => (StatusCode::NOT_FOUND, "run_not_found"),
            Self::TestNotFound => (StatusCode::NOT_FOUND, "test_not_found"),
            Self::SignatureNotFound => (StatusCode::NOT_FOUND, "error_not_found"),
            Self::AmbiguousTest(_) => (StatusCode::BAD_REQUEST, "ambiguous_test"),
            // With this status, a load balancer tries another server.
            Self::Store(StoreError::Unreachable(_))
            | Self::TookTooLong
            | Self::Overloaded
            | Self::MemoryExhausted
            | Self::Changed => (StatusCode::SERVICE_UNAVAILABLE, "internal_error"),
            Self::Store(StoreError::Failed { .. } | StoreError::Corrupt { .. })
            | Self::Json(_)
            | Self::Encoding(_)
            | Self::Aborted => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Refused(Refusal::MissingKey) => {
                "Send a read key in the Authorization header, as: Bearer svc_ro_…".to_owned()
            }
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
            Self::NoSuchRoute => "There is no such route.".to_owned(),
            Self::NoSuchMethod => "The API is read-only: use GET or HEAD.".to_owned(),
            Self::BadParameter { name, rule } => format!("The parameter {name} {rule}."),
            Self::BadPeriod(plan) => bad_period(*plan),
            Self::ProjectNotFound => "No project of this organization has this id.".to_owned(),
            Self::RunNotFound => "No run of this project has this id.".to_owned(),
            Self::TestNotFound => "No test has this name (and file, if the request has filePath).".to_owned(),
            Self::SignatureNotFound => "No error signature of this project has this fingerprint.".to_owned(),
            Self::AmbiguousTest(files) => ambiguous(files),
            Self::Store(_)
            | Self::Json(_)
            | Self::Encoding(_)
            | Self::Aborted
            | Self::TookTooLong
            | Self::Changed => "The server failed to answer; try again later.".to_owned(),
            Self::MemoryExhausted => {
                "The memory for answers is full; read the answers that the server is sending, then try again."
                    .to_owned()
            }
            Self::Overloaded => {
                "The server has more requests than it can answer; try again later.".to_owned()
            }
        }
    }
}

fn bad_period(plan: Plan) -> String {
    let retention = plan.retention_days();
    let allowed: Vec<_> = Days::of_plan(plan).map(|days| days.count().to_string()).collect();
    format!(
        "The parameter days must be given once, as one of {}; the plan keeps {retention} days of results.",
        allowed.join(", ")
    )
}

/// The files are quoted as JSON strings, so that a client can restore the stored text.
fn ambiguous(files: &CandidateFiles) -> String {
    let quoted: Vec<_> = files
        .named
        .iter()
        .map(|file| serde_json::Value::from(file.as_deref().unwrap_or("")).to_string())
        .collect();
    let mut sentence = format!(
        "Several tests have this name; repeat the request with filePath set to one of: {}",
        quoted.join(", ")
    );
    if files.others > 0 {
        // Writing to a String cannot fail.
        let _ = write!(sentence, "; and {} others", files.others);
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ambiguous_name_lists_the_stored_files_as_json() {
        let stored = [
            "",
            "e\u{301}.py",
            "a \"quoted\" \\ file.ts",
            "l\u{200b}ine\nbreak.js",
        ];
        let files = stored.map(|file| (!file.is_empty()).then(|| file.to_owned()));
        let sentence = ApiError::AmbiguousTest(CandidateFiles::first_of(files.into_iter())).sentence();
        let (_, quoted) = sentence.split_once("one of: ").unwrap();
        let parsed: Vec<String> = serde_json::from_str(&format!("[{quoted}]")).unwrap();
        assert_eq!(parsed, stored);
    }

    #[test]
    fn an_ambiguous_name_lists_50_files_and_the_number_of_the_others() {
        let files: Vec<_> = (0..53).map(|file| Some(format!("{file}.ts"))).collect();
        let sentence = ApiError::AmbiguousTest(CandidateFiles::first_of(files.into_iter())).sentence();
        assert_eq!(sentence.matches(".ts\"").count(), 50);
        assert!(sentence.ends_with("\"49.ts\"; and 3 others"), "{sentence}");
    }
}
