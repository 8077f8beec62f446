//! A code host with comments on a pull request, and its errors.

use std::{
    cell::OnceCell,
    time::{Duration, Instant},
};

use assay_cli_terminal::retry::Transient;
use serde_json::Value;
use ureq::{Agent, http::StatusCode};

use crate::server::{
    address::Address,
    http::{self, Answer, NoAnswer},
};

/// A comment that the host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingComment {
    /// The host's id of it.
    pub id: u64,
    /// Its text.
    pub body: String,
}

/// Comments on one pull request, by the routes of one host. An id that is smaller is older.
pub trait CodeHost {
    /// Comments per page.
    const PER_PAGE: usize;

    /// One page of the comments that this token may have written, from 1, oldest first, and the number of all comments on
    /// the page.
    fn page(&self, page: u32) -> Result<(Vec<ExistingComment>, usize), PostError>;

    /// Writes a comment and returns its id.
    fn create(&self, body: &str) -> Result<u64, PostError>;

    /// Replaces the text of a comment.
    fn edit(&self, id: u64, body: &str) -> Result<(), PostError>;

    /// Deletes a comment.
    fn delete(&self, id: u64) -> Result<(), PostError>;
}

/// The reason why a comment was not posted.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// The host does not answer.
    #[error("{0}")]
    NoAnswer(NoAnswer),
    /// The token may not write here, as that of a fork's pull request.
    #[error("the token may not write here ({status}: {reason})")]
    Forbidden {
        /// The status.
        status: u16,
        /// The host's reason.
        reason: String,
    },
    /// The host limits the rate.
    #[error("the code host limits the rate ({status}: {reason})")]
    RateLimited {
        /// The status.
        status: u16,
        /// The host's reason.
        reason: String,
        /// The wait that the host asks for.
        retry_after: Option<Duration>,
    },
    /// The host refuses the request, or fails.
    #[error("the code host answered {status}: {reason}")]
    Refused {
        /// The status.
        status: u16,
        /// The host's reason.
        reason: String,
    },
    /// The host's answer has another form than its documentation says.
    #[error("the code host's answer has no {0}")]
    Unreadable(&'static str),
}

impl Transient for PostError {
    fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer(problem) => problem.is_transient(),
            Self::RateLimited { .. } => true,
            Self::Refused { status, .. } => StatusCode::from_u16(*status).is_ok_and(http::is_transient),
            Self::Forbidden { .. } | Self::Unreadable(_) => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        if let Self::RateLimited { retry_after, .. } = self {
            *retry_after
        } else {
            None
        }
    }
}

/// A token. Its text is in no message.
pub(crate) struct Token(String);

impl Token {
    /// A token that is a valid header value.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_token.then(|| Self(text.to_owned()))
    }

    pub(crate) fn starts_with(&self, prefix: &str) -> bool {
        self.0.starts_with(prefix)
    }
}

/// Requests to the routes of a code host.
pub(crate) struct Requests {
    agent: Agent,
    address: Address,
    token: Token,
    /// The header of the token, and what stands before it there.
    authorization: (&'static str, &'static str),
    headers: &'static [(&'static str, &'static str)],
    /// The id of the token's own user, once it was asked for.
    user: OnceCell<Value>,
    /// When every request ends.
    deadline: Option<Instant>,
}

/// A method of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Method {
    Get,
    Post,
    Patch,
    Put,
    Delete,
}

impl Requests {
    pub(crate) fn new(
        api: &str,
        token: Token,
        authorization: (&'static str, &'static str),
        headers: &'static [(&'static str, &'static str)],
    ) -> anyhow::Result<Self> {
        let address = Address::parse("the code host", api, false)?;
        Ok(Self {
            agent: http::agent(&address)?,
            address,
            token,
            authorization,
            headers,
            user: OnceCell::new(),
            deadline: None,
        })
    }

    /// Every request ends at this moment, also one to a silent host.
    pub(crate) fn until(self, deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..self
        }
    }

    /// The id of the token's own user, which `path` answers at `pointer`. Anyone can copy the hidden line into a comment of
    /// their own, so only this user's comments count.
    pub(crate) fn own_user(&self, path: &str, pointer: &str) -> Result<&Value, PostError> {
        if let Some(user) = self.user.get() {
            return Ok(user);
        }
        let answer = self.send(Method::Get, path, None)?;
        let id = answer.pointer(pointer).filter(|id| !id.is_null());
        let id = id.ok_or(PostError::Unreadable("id of the token's user"))?.clone();
        Ok(self.user.get_or_init(|| id))
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Sends a request and returns the JSON of a successful answer; null if it has no body.
    pub(crate) fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, PostError> {
        let url = format!("{}{path}", self.address.base());
        let (name, scheme) = self.authorization;
        let authorization = format!("{scheme}{}", self.token.0);
        let with_body = |request: ureq::RequestBuilder<ureq::typestate::WithBody>| {
            let request = self
                .headers
                .iter()
                .fold(request, |request, (name, value)| request.header(*name, *value));
            let request = request
                .header(name, &authorization)
                .header("Content-Type", "application/json");
            request.send(body.map_or_else(String::new, Value::to_string))
        };
        let without_body = |request: ureq::RequestBuilder<ureq::typestate::WithoutBody>| {
            let request = self
                .headers
                .iter()
                .fold(request, |request, (name, value)| request.header(*name, *value));
            request.header(name, &authorization).call()
        };
        let left = self.deadline.map(http::until);
        let answer = match method {
            Method::Get => without_body(http::limited(self.agent.get(&url), left)),
            Method::Delete => without_body(http::limited(self.agent.delete(&url), left)),
            Method::Post => with_body(http::limited(self.agent.post(&url), left)),
            Method::Patch => with_body(http::limited(self.agent.patch(&url), left)),
            Method::Put => with_body(http::limited(self.agent.put(&url), left)),
        };
        let answer = Answer::read(&self.address, answer).map_err(PostError::NoAnswer)?;
        if answer.status.is_success() {
            return Ok(answer.json.unwrap_or_default());
        }
        Err(refusal(&answer))
    }
}

fn refusal(answer: &Answer) -> PostError {
    let status = answer.status.as_u16();
    let reason = answer.text("message").unwrap_or_else(|| answer.beginning());
    // GitHub answers 403 with `Retry-After` or this text if a secondary limit is exceeded.
    let is_limit = status == 429
        || (status == 403
            && (answer.retry_after.is_some() || reason.to_ascii_lowercase().contains("rate limit")));
    if is_limit {
        return PostError::RateLimited {
            status,
            reason,
            retry_after: answer.retry_after,
        };
    }
    match status {
        // A token without the right gets 404 where it may not know that the pull request exists.
        401 | 403 | 404 => PostError::Forbidden { status, reason },
        _ => PostError::Refused { status, reason },
    }
}
