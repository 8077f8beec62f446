//! Errors of pages. Only this file maps the pages' errors to HTTP statuses.

use actix_web::http::StatusCode;
use assay_access::{check::Refusal, session::NoRandomness};
use assay_domain::{identity::SignInError, key::KeyKind, store::StoreError};
use assay_http::{Problem, RATE_LIMITED, RequestId, Unanswerable, with_causes};

/// The reason why there is no page, as the page says it. A failure of the server is for the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrontError {
    #[error("Sign in with a read key.")]
    SignedOut,
    #[error(transparent)]
    Problem(Problem),
    #[error("There is no such page.")]
    NoSuchPage,
    #[error("This address does not accept this method; the header Allow has those that it accepts.")]
    NoSuchMethod,
    #[error("The form was not sent by this site; open the sign-in page and try again.")]
    ForeignForm,
    #[error(
        "Without TLS these pages work only on the machine of the server; open them with https, or there with http://localhost."
    )]
    FormInPlain,
    #[error("The form is longer than 1,024 bytes.")]
    LongForm,
    #[error("The form took longer than 10 seconds to arrive; send it again.")]
    SlowForm,
    #[error("The form is incomplete; send it again.")]
    BrokenForm,
    #[error("Too many attempts to sign in came from this address; try again in {after_s} s.")]
    ManyKeys { after_s: u64 },
    #[error("This installation has no provider to sign in at; use a read key.")]
    NoProvider,
    #[error("Choose one of the providers of this installation: {0}.")]
    OtherProvider(String),
    #[error("No sign-in was begun here in the last 10 minutes; begin again.")]
    NoSignInBegun,
    #[error("The provider did not sign you in; begin again, or sign in with a read key.")]
    NotSignedIn,
    #[error(transparent)]
    SignIn(#[from] SignInError),
    #[error(transparent)]
    Unanswerable(#[from] Unanswerable),
    #[error("the page could not be compressed")]
    Encoding(#[from] std::io::Error),
    #[error("a session could not be sealed")]
    Sealing(#[from] NoRandomness),
}

impl From<Problem> for FrontError {
    fn from(problem: Problem) -> Self {
        if let Problem::Refused(Refusal::SessionEnded) = problem {
            Self::SignedOut
        } else {
            Self::Problem(problem)
        }
    }
}

impl From<StoreError> for FrontError {
    fn from(error: StoreError) -> Self {
        Self::Problem(error.into())
    }
}

impl FrontError {
    pub(crate) const fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::SignedOut => (StatusCode::UNAUTHORIZED, "missing_key"),
            Self::Problem(problem) => problem.status_and_code(KeyKind::Read),
            Self::NoSuchPage => (StatusCode::NOT_FOUND, "invalid_parameter"),
            Self::NoSuchMethod => (StatusCode::METHOD_NOT_ALLOWED, "invalid_parameter"),
            Self::ForeignForm | Self::FormInPlain => (StatusCode::FORBIDDEN, "foreign_form"),
            Self::LongForm => (StatusCode::PAYLOAD_TOO_LARGE, "invalid_parameter"),
            Self::SlowForm => (StatusCode::REQUEST_TIMEOUT, "invalid_parameter"),
            Self::BrokenForm => (StatusCode::BAD_REQUEST, "invalid_parameter"),
            Self::ManyKeys { .. } => (StatusCode::TOO_MANY_REQUESTS, RATE_LIMITED),
            Self::NoProvider => (StatusCode::NOT_FOUND, "invalid_parameter"),
            Self::NoSignInBegun | Self::OtherProvider(_) => (StatusCode::BAD_REQUEST, "invalid_parameter"),
            Self::SignIn(SignInError::Terminal(code)) => (StatusCode::BAD_REQUEST, code),
            Self::NotSignedIn | Self::SignIn(SignInError::NoAccess) => {
                (StatusCode::FORBIDDEN, "sign_in_refused")
            }
            Self::SignIn(SignInError::Provider { .. }) => (StatusCode::BAD_GATEWAY, "provider_failed"),
            Self::Unanswerable(why) => why.status_and_code(),
            Self::Encoding(_) | Self::Sealing(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
        }
    }

    /// The message on the page; the API's message if the API has the same error.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::Problem(problem) => problem.sentence(KeyKind::Read).into_owned(),
            Self::Unanswerable(Unanswerable::CommitNotFound) => {
                "No run of this project tested this commit or pull request.".to_owned()
            }
            Self::Unanswerable(Unanswerable::TestNotFound) => {
                "No test has this name (and file, where a file was given).".to_owned()
            }
            Self::Unanswerable(Unanswerable::AmbiguousTest(_)) => {
                "Several tests have this name; choose one of these files.".to_owned()
            }
            Self::SignIn(SignInError::NoAccess) => {
                "You have signed in, and your account opens no project here; ask the operator of this installation.".to_owned()
            }
            Self::SignIn(SignInError::Terminal(_)) => "The sign-in of the terminal is not finished.".to_owned(),
            Self::SignIn(SignInError::Provider { .. }) => {
                "The sign-in at the provider failed; try again later. The log of this server has the reason.".to_owned()
            }
            Self::Encoding(_) | Self::Sealing(_) => "The server failed to answer; try again later.".to_owned(),
            Self::SignedOut
            | Self::NoSuchPage
            | Self::NoSuchMethod
            | Self::ForeignForm
            | Self::FormInPlain
            | Self::LongForm
            | Self::SlowForm
            | Self::BrokenForm
            | Self::ManyKeys { .. }
            | Self::NoSignInBegun
            | Self::NoProvider
            | Self::OtherProvider(_)
            | Self::NotSignedIn
            | Self::Unanswerable(_) => self.to_string(),
        }
    }

    /// Seconds to wait before the page is loaded again.
    pub(crate) const fn retry_after_s(&self) -> Option<u64> {
        if let Self::Problem(problem) = self {
            problem.retry_after_s(KeyKind::Read)
        } else if let Self::ManyKeys { after_s } = self {
            Some(*after_s)
        } else {
            None
        }
    }

    /// Whether the key of the request does not work.
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(self, Self::Problem(Problem::Refused(_)))
    }

    /// Logs a failure of the server with its causes. A refusal is the client's error and is not logged.
    pub(crate) fn log(&self, route: &str, id: &RequestId) {
        let is_failure = if let Self::Problem(problem) = self {
            problem.is_failure()
        } else {
            self.status_and_code().0.is_server_error()
        };
        if !is_failure {
            return;
        }
        log::error!(request_id:% = id, route; "a page failed: {}", with_causes(self));
    }
}
