//! Errors and their HTTP statuses.

use std::{fmt::Write as _, io};

use actix_web::{HttpResponse, http::StatusCode};
use assay_domain::{key::KeyKind, period::Days, plan::Plan, store::StoreError, test::CandidateFiles};
use assay_http::{Problem, RequestId, refusal, with_causes};
use serde::Serialize;

use crate::memory::MemoryExhausted;

/// Seconds after which a client may retry a temporary failure of its own answers.
const RETRY_AFTER_S: u64 = 1;

/// The reason why a request failed. Not-found variants have no fields, so that such answers cannot differ.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error(transparent)]
    Problem(#[from] Problem),
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
    #[error("no such commit")]
    CommitNotFound,
    #[error("no such test")]
    TestNotFound,
    #[error("no such signature")]
    SignatureNotFound,
    #[error("several tests have the name")]
    AmbiguousTest(CandidateFiles),
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
            Self::BadParameter { .. } => (StatusCode::BAD_REQUEST, "invalid_parameter"),
            Self::BadPeriod(_) => (StatusCode::BAD_REQUEST, "invalid_period"),
            Self::ProjectNotFound => (StatusCode::NOT_FOUND, "project_not_found"),
            Self::RunNotFound => (StatusCode::NOT_FOUND, "run_not_found"),
            Self::CommitNotFound => (StatusCode::NOT_FOUND, "commit_not_found"),
            Self::TestNotFound => (StatusCode::NOT_FOUND, "test_not_found"),
            Self::SignatureNotFound => (StatusCode::NOT_FOUND, "error_not_found"),
            Self::AmbiguousTest(_) => (StatusCode::BAD_REQUEST, "ambiguous_test"),
            Self::MemoryExhausted | Self::Changed => (StatusCode::SERVICE_UNAVAILABLE, "internal_error"),
            Self::Json(_) | Self::Encoding(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Problem(problem) => problem.sentence(KeyKind::Read).into_owned(),
            Self::NoSuchRoute => "There is no such route.".to_owned(),
            Self::NoSuchMethod => "The API is read-only: use GET or HEAD.".to_owned(),
            Self::BadParameter { name, rule } => format!("The parameter {name} {rule}."),
            Self::BadPeriod(plan) => bad_period(*plan),
            Self::ProjectNotFound => "No project of this organization has this id.".to_owned(),
            Self::RunNotFound => "No run of this project has this id.".to_owned(),
            Self::CommitNotFound => "No run of this project tested this commit.".to_owned(),
            Self::TestNotFound => "No test has this name (and file, if the request has filePath).".to_owned(),
            Self::SignatureNotFound => "No error signature of this project has this fingerprint.".to_owned(),
            Self::AmbiguousTest(files) => ambiguous(files),
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
