//! Errors of uploads. Only this file maps them to HTTP statuses.

use std::io;

use actix_web::{HttpResponse, http::StatusCode};
use assay_access::check::Refusal;
use assay_domain::{
    decision::DecisionError,
    fix::FixError,
    key::KeyKind,
    rules::RuleViolation,
    store::{RecordError, StoreError},
};
use assay_http::{Fault, Problem, Rejected, RequestId, refusal, with_causes};
use assay_reports::ReadError;
use serde::Serialize;

/// The reason why an upload is not stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IngestError {
    #[error(transparent)]
    Problem(#[from] Problem),
    #[error(
        "There is no such route; reports go to POST /ingest/v1/reports, decisions to POST /ingest/v1/decisions, fixes to POST /ingest/v1/fixes, requests for comments to POST /ingest/v1/comments."
    )]
    NoSuchRoute,
    #[error("This route accepts only {allow}.")]
    NoSuchMethod { allow: &'static str },
    #[error("{name}: {rule}.")]
    BadField {
        /// The field or part of the request.
        name: String,
        /// The problem or the expected value.
        rule: String,
    },
    #[error("The body is not complete multipart/form-data: {0}.")]
    BadMultipart(String),
    #[error("The body ended before it was complete; send it again.")]
    Truncated,
    #[error("The body cannot be unpacked: {0}; send it again.")]
    DoesNotUnpack(io::Error),
    #[error("The content coding is not supported; send gzip, zstd or none.")]
    UnsupportedCoding,
    #[error("{subject} exceeds the limit of {limit}; send less, or in shards.")]
    TooLarge { subject: &'static str, limit: String },
    #[error(
        "The body arrives too slowly; at least 10 kB a second are expected, and all of it within ten minutes."
    )]
    TooSlow,
    #[error(
        "The key belongs to the project {key_project:?}, but the request names another one; use that project's key."
    )]
    WrongProject { key_project: String },
    #[error(transparent)]
    Report(#[from] ReadError),
    #[error(transparent)]
    Bounds(#[from] assay_ingest::TooLarge),
    #[error(
        "The report holds no test and no error, so nothing was stored; check that the tests ran and the path is right."
    )]
    NothingToStore,
    #[error(transparent)]
    NotRecorded(#[from] RecordError),
    #[error(transparent)]
    NotAllowed(#[from] RuleViolation),
    #[error(transparent)]
    NotDecided(#[from] DecisionError),
    #[error(transparent)]
    FixNotStored(#[from] FixError),
    #[error("{reason}; try again in {after_s} s.")]
    Busy { reason: &'static str, after_s: u64 },
    #[error("the upload's temporary file failed")]
    Spool(#[source] io::Error),
    #[error("the answer could not be written as JSON")]
    Json(#[from] serde_json::Error),
}

impl From<StoreError> for IngestError {
    fn from(error: StoreError) -> Self {
        Self::Problem(error.into())
    }
}

impl From<Rejected> for IngestError {
    fn from(rejected: Rejected) -> Self {
        Self::Problem(rejected.into())
    }
}

/// The body of every error.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct ErrorBody<'a> {
    /// The problem, in a sentence that may be reworded.
    error: String,
    /// The problem, in a word that does not change.
    code: &'static str,
    /// The report with the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// The line in it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

impl IngestError {
    /// An invalid field.
    pub(crate) fn bad(name: &str, rule: impl ToString) -> Self {
        Self::BadField {
            name: name.to_owned(),
            rule: rule.to_string(),
        }
    }

    /// The beginning of a client's text, for a sentence. Removes line breaks too, because the sentence is one line.
    pub(crate) fn excerpt(text: &str) -> String {
        text.chars().filter(|c| !c.is_control()).take(60).collect()
    }

    /// The response for the client.
    pub(crate) fn response(&self) -> HttpResponse {
        let (status, code) = self.status_and_code();
        let allowed: &[&str] = if let Self::NoSuchMethod { allow } = self {
            &[allow]
        } else {
            &[]
        };
        let (file, line) = if let Self::Report(error) = self {
            match error {
                ReadError::Broken { file, line, .. } => (Some(file.as_str()), Some(*line)),
                ReadError::Unrecognised { file, .. } | ReadError::TooLarge { file, .. } => {
                    (Some(file.as_str()), None)
                }
            }
        } else {
            (None, None)
        };
        refusal(status, self.retry_after_s(), allowed).json(ErrorBody {
            error: self.sentence(),
            code,
            file,
            line,
        })
    }

    /// The stable code that clients match on.
    pub(crate) const fn code(&self) -> &'static str {
        self.status_and_code().1
    }

    /// Logs a failure of the server, its disk or its database with its causes. A refusal is the client's error and is
    /// not logged.
    pub(crate) fn log(&self, route: &str, id: &RequestId) {
        let is_failure = matches!(
            self,
            Self::Spool(_)
                | Self::NotRecorded(
                    RecordError::Store(_) | RecordError::NotJudged(_) | RecordError::ClockDiffers { .. }
                )
                | Self::NotDecided(DecisionError::Store(_))
                | Self::FixNotStored(FixError::Store(_))
        );
        let is_failure = if let Self::Problem(problem) = self {
            problem.is_failure()
        } else {
            is_failure || self.status_and_code().0 == StatusCode::INTERNAL_SERVER_ERROR
        };
        if !is_failure {
            return;
        }
        log::error!(request_id:% = id, route; "an upload failed: {}", with_causes(self));
    }

    const fn retry_after_s(&self) -> Option<u64> {
        if let Self::Problem(problem) = self {
            problem.retry_after_s(KeyKind::Ingest)
        } else if let Self::Busy { after_s, .. }
        | Self::NotAllowed(RuleViolation::DayUsedUp { after_s, .. })
        | Self::NotRecorded(RecordError::NotAllowed(RuleViolation::DayUsedUp {
            after_s, ..
        })) = self
        {
            Some(*after_s)
        } else if matches!(self.status_and_code().0, StatusCode::SERVICE_UNAVAILABLE) {
            let fault = if let Self::NotRecorded(RecordError::Store(error) | RecordError::NotJudged(error))
            | Self::NotDecided(DecisionError::Store(error))
            | Self::FixNotStored(FixError::Store(error)) = self
            {
                Fault::of(error)
            } else {
                Fault::Temporary
            };
            fault.retry_after_s(KeyKind::Ingest)
        } else {
            None
        }
    }

    pub(crate) const fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Problem(problem) => problem.status_and_code(KeyKind::Ingest),
            Self::NotRecorded(RecordError::NoProject(_)) => {
                Problem::Refused(Refusal::InvalidKey).status_and_code(KeyKind::Ingest)
            }
            Self::NoSuchRoute => (StatusCode::NOT_FOUND, "not_found"),
            Self::NoSuchMethod { .. } => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::BadField { .. } | Self::BadMultipart(_) | Self::Truncated | Self::DoesNotUnpack(_) => {
                (StatusCode::BAD_REQUEST, "invalid_parameter")
            }
            Self::UnsupportedCoding => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_coding"),
            Self::TooLarge { .. } | Self::Report(ReadError::TooLarge { .. }) | Self::Bounds(_) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "too_large")
            }
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, "too_slow"),
            Self::WrongProject { .. } => (StatusCode::FORBIDDEN, "wrong_project"),
            Self::Report(ReadError::Unrecognised { .. }) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "unrecognised")
            }
            Self::Report(ReadError::Broken { .. }) => (StatusCode::UNPROCESSABLE_ENTITY, "broken_report"),
            Self::NothingToStore => (StatusCode::UNPROCESSABLE_ENTITY, "nothing_to_store"),
            Self::NotAllowed(violation)
            | Self::NotRecorded(RecordError::NotAllowed(violation))
            | Self::NotDecided(DecisionError::NotAllowed(violation)) => Self::of_violation(violation),
            Self::FixNotStored(FixError::NotAllowed) => (StatusCode::FORBIDDEN, "branch_not_allowed"),
            Self::NotDecided(DecisionError::NoRun | DecisionError::NoUpload { .. }) => {
                (StatusCode::NOT_FOUND, "unknown_run")
            }
            Self::NotRecorded(RecordError::ClockDiffers { .. }) => of_fault(Fault::Temporary),
            Self::NotDecided(DecisionError::NoTest { .. }) | Self::FixNotStored(FixError::NoTest { .. }) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "unknown_test")
            }
            Self::NotRecorded(RecordError::RevisionDiffers { .. }) => {
                (StatusCode::CONFLICT, "revision_differs")
            }
            Self::NotRecorded(RecordError::ShardingDiffers { .. }) => {
                (StatusCode::CONFLICT, "sharding_differs")
            }
            Self::NotRecorded(RecordError::Store(error) | RecordError::NotJudged(error))
            | Self::NotDecided(DecisionError::Store(error))
            | Self::FixNotStored(FixError::Store(error)) => of_fault(Fault::of(error)),
            Self::Busy { .. } | Self::Spool(_) => of_fault(Fault::Temporary),
            Self::Json(_) => of_fault(Fault::Permanent),
        }
    }

    const fn of_violation(violation: &RuleViolation) -> (StatusCode, &'static str) {
        match violation {
            RuleViolation::RunClosed { .. } => (StatusCode::CONFLICT, "run_closed"),
            RuleViolation::StartedTooLongAgo { .. } | RuleViolation::StartsInTheFuture { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, "date_not_allowed")
            }
            RuleViolation::DayUsedUp { .. } => (StatusCode::TOO_MANY_REQUESTS, "budget_exceeded"),
            RuleViolation::NotAPullRequest
            | RuleViolation::RunOfAnotherKey
            | RuleViolation::StableBranch { .. } => (StatusCode::FORBIDDEN, "branch_not_allowed"),
        }
    }

    /// The message for the client. It never reveals the cause of a server failure.
    fn sentence(&self) -> String {
        match self {
            Self::Problem(problem) => problem.sentence(KeyKind::Ingest).into_owned(),
            Self::NotRecorded(RecordError::NoProject(_)) => Problem::Refused(Refusal::InvalidKey)
                .sentence(KeyKind::Ingest)
                .into_owned(),
            Self::NotRecorded(RecordError::Store(error))
            | Self::NotDecided(DecisionError::Store(error))
            | Self::FixNotStored(FixError::Store(error)) => {
                Fault::of(error).sentence(KeyKind::Ingest).to_owned()
            }
            Self::NotRecorded(RecordError::NotJudged(error @ StoreError::NotPermitted { .. })) => {
                Fault::of(error).sentence(KeyKind::Ingest).to_owned()
            }
            Self::NotRecorded(RecordError::NotJudged(_)) => {
                "The report is stored, but its verdicts are not up to date yet; send it again. It is stored only once."
                    .to_owned()
            }
            Self::Spool(_) => "The server has no space for the upload; try again later.".to_owned(),
            Self::Json(_) => Fault::Permanent.sentence(KeyKind::Ingest).to_owned(),
            Self::NoSuchRoute
            | Self::NoSuchMethod { .. }
            | Self::BadField { .. }
            | Self::BadMultipart(_)
            | Self::Truncated
            | Self::DoesNotUnpack(_)
            | Self::UnsupportedCoding
            | Self::TooLarge { .. }
            | Self::TooSlow
            | Self::WrongProject { .. }
            | Self::Report(_)
            | Self::Bounds(_)
            | Self::NothingToStore
            | Self::NotRecorded(_)
            | Self::NotAllowed(_)
            | Self::NotDecided(_)
            | Self::FixNotStored(_)
            | Self::Busy { .. } => self.to_string(),
        }
    }
}

const fn of_fault(fault: Fault) -> (StatusCode, &'static str) {
    (fault.status(), fault.code(KeyKind::Ingest))
}
