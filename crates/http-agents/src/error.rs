//! Errors of tools, with the next step for the agent.

use assay_domain::{key::KeyKind, store::StoreError};
use assay_http::{Problem, RequestId, with_causes};
use serde_json::Value;

use crate::text::{shorten, visible};

/// Most candidates in an error.
pub(crate) const CANDIDATES: usize = 5;

/// The code of a call whose tool or arguments are wrong.
pub(crate) const INVALID_CALL: &str = "invalid_call";

/// The problem, candidates for the intended name, and the call to make instead.
#[derive(Debug)]
pub(crate) struct ToolError {
    message: String,
    candidates: Vec<String>,
    call: Option<Box<Value>>,
    /// The code for the access log. The client does not get it.
    code: &'static str,
    /// The failure of the server that caused the error.
    cause: Option<Box<Problem>>,
}

impl ToolError {
    /// An error of the call, with one or more sentences.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            candidates: Vec::new(),
            call: None,
            code: INVALID_CALL,
            cause: None,
        }
    }

    /// The code for the access log.
    pub(crate) const fn code(&self) -> &'static str {
        self.code
    }

    /// Logs a failure of the server with its causes. Other errors are the client's, or admission control logs them.
    pub(crate) fn log(&self, id: &RequestId) {
        if let Some(cause) = &self.cause {
            log::error!(request_id:% = id; "an agent's tool failed: {}", with_causes(&**cause));
        }
    }

    /// Adds candidates for the intended name, the most probable first.
    pub(crate) fn with_candidates(mut self, candidates: Vec<String>) -> Self {
        self.candidates = candidates;
        self
    }

    /// Adds the call to make instead.
    pub(crate) fn with_call(mut self, call: Value) -> Self {
        self.call = Some(Box::new(call));
        self
    }

    /// The error as text of at most `limit` bytes.
    pub(crate) fn text(&self, limit: usize) -> String {
        let text = self.whole_text();
        let fits = |text: &String| text.len() <= limit;
        let shorter = [limit / 2, limit / 4, limit / 8].map(|characters| shorten(&text, characters));
        let shorter = shorter.into_iter().flatten().find(fits).unwrap_or_default();
        Some(text).filter(fits).unwrap_or(shorter)
    }

    fn whole_text(&self) -> String {
        let mut text = self.message.clone();
        if !self.candidates.is_empty() {
            let quoted: Vec<_> = self
                .candidates
                .iter()
                .take(CANDIDATES)
                .map(|name| format!("{name:?}"))
                .collect();
            text.push_str(" Did you mean ");
            text.push_str(&quoted.join(", "));
            text.push('?');
        }
        if let Some(call) = &self.call {
            text.push_str(" Call: ");
            text.push_str(&call.to_string());
        }
        visible(&text)
    }
}

impl From<Problem> for ToolError {
    fn from(problem: Problem) -> Self {
        let (_, code) = problem.status_and_code(KeyKind::Read);
        let message = problem.sentence(KeyKind::Read);
        let cause = problem.is_failure().then(|| Box::new(problem));
        Self {
            code,
            cause,
            ..Self::new(message)
        }
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        Problem::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_not_longer_than_its_budget() {
        for letter in ["n", "日", "🎉"] {
            let error =
                ToolError::new("Several tests have this name.")
                    .with_candidates(vec![letter.repeat(2_000); 9]);
            for limit in [1_000, 8_000, 32_000] {
                let text = error.text(limit);
                assert!((200..=limit).contains(&text.len()), "{} of {limit}", text.len());
                assert!(
                    text.starts_with("Several tests have this name. Did you mean"),
                    "{text}"
                );
            }
        }
    }
}
