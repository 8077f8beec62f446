//! Errors of tools, with the next step for the agent.

use assay_access::check::{CheckError, Refusal};
use assay_domain::store::StoreError;
use serde_json::Value;

use crate::text::{shorten, visible};

/// Most candidates in an error.
pub(crate) const CANDIDATES: usize = 5;

/// The problem, candidates for the intended name, and the call to make instead.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolError {
    message: String,
    candidates: Vec<String>,
    call: Option<Value>,
}

impl ToolError {
    /// An error with one or more sentences.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            candidates: Vec::new(),
            call: None,
        }
    }

    /// Adds candidates for the intended name, the most probable first.
    pub(crate) fn with_candidates(mut self, candidates: Vec<String>) -> Self {
        self.candidates = candidates;
        self
    }

    /// Adds the call to make instead.
    pub(crate) fn with_call(mut self, call: Value) -> Self {
        self.call = Some(call);
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

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        log::error!(error:? = error; "an agent's tool could not read the store");
        Self::new("The server could not read its database. Try again in a minute.")
    }
}

impl From<CheckError> for ToolError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Refused(refusal) => Self::new(refusal_message(refusal)),
            CheckError::Store(error) => error.into(),
        }
    }
}

/// The reason why a key is refused.
pub(crate) const fn refusal_message(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::MissingKey => "Send a read key as `Authorization: Bearer svc_ro_…`.",
        Refusal::WrongKeyType => "This is an ingest key; tools need a read key (`assay key create`).",
        Refusal::InvalidKey => "The read key is not valid.",
        Refusal::KeyRevoked => "The read key was revoked.",
        Refusal::KeyExpired => "The read key has expired.",
        Refusal::TierTooLow => "The organization's plan does not include the read API.",
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
