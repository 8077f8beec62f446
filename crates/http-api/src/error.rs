//! Errors and their HTTP statuses.

use std::io;

use actix_web::{HttpResponse, http::StatusCode};
use assay_domain::{key::KeyKind, store::StoreError};
use assay_http::{Problem, RequestId, Unanswerable, refusal, with_causes};
use serde::Serialize;

use crate::memory::MemoryExhausted;

/// Seconds after which a client may retry a temporary failure of its own answers.
const RETRY_AFTER_S: u64 = 1;

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error(transparent)]
    Problem(#[from] Problem),
    #[error(transparent)]
    Unanswerable(#[from] Unanswerable),
    #[error("no such route")]
    NoSuchRoute,
    #[error("no such method")]
    NoSuchMethod,
    #[error("the answer could not be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("the answer could not be compressed")]
    Encoding(#[source] io::Error),
    #[error("the run changed while its tests were read")]
    Changed,
    #[error("the memory for answers is full of answers that clients have not read")]
    MemoryExhausted,
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::Problem(error.into())
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
        let allowed: &[&str] = if let Self::NoSuchMethod = self {
            &["GET", "HEAD"]
        } else {
            &[]
        };
        refusal(self.status_and_code().0, self.retry_after_s(), allowed).json(ErrorBody::of(self))
    }

    /// The stable code that clients match on.
    pub(crate) const fn code(&self) -> &'static str {
        self.status_and_code().1
    }

    /// Logs a failure of the server with its causes. Errors of the client are not logged. The memory of answers logs
    /// how many requests it rejects.
    pub(crate) fn log(&self, route: &str, id: &RequestId) {
        let is_failure = if let Self::Problem(problem) = self {
            problem.is_failure()
        } else {
            self.status_and_code().0.is_server_error() && !matches!(self, Self::MemoryExhausted)
        };
        if is_failure {
            log::error!(request_id:% = id, route; "a request failed: {}", with_causes(self));
        }
    }

    const fn retry_after_s(&self) -> Option<u64> {
        if let Self::Problem(problem) = self {
            problem.retry_after_s(KeyKind::Read)
        } else if let Self::MemoryExhausted | Self::Changed = self {
            Some(RETRY_AFTER_S)
        } else {
            None
        }
    }

    pub(crate) const fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Problem(problem) => problem.status_and_code(KeyKind::Read),
            Self::NoSuchRoute => (StatusCode::NOT_FOUND, "invalid_parameter"),
            Self::NoSuchMethod => (StatusCode::METHOD_NOT_ALLOWED, "invalid_parameter"),
            Self::Unanswerable(why) => why.status_and_code(),
            Self::MemoryExhausted | Self::Changed => (StatusCode::SERVICE_UNAVAILABLE, "internal_error"),
            Self::Json(_) | Self::Encoding(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Problem(problem) => problem.sentence(KeyKind::Read).into_owned(),
            Self::NoSuchRoute => "There is no such route.".to_owned(),
            Self::NoSuchMethod => "The API is read-only: use GET or HEAD.".to_owned(),
            Self::Unanswerable(why) => why.to_string(),
            Self::Json(_) | Self::Encoding(_) | Self::Changed => {
                "The server failed to answer; try again later.".to_owned()
            }
            Self::MemoryExhausted => {
                "The memory for answers is full; read the answers that the server is sending, then try again."
                    .to_owned()
            }
        }
    }
}
