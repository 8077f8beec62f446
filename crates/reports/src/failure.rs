//! Errors and failures as most formats write them: a message and a stack.

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    timestamp::Timestamp,
};

use crate::{frame::Parts, input::Input, limits, text};

impl Input<'_> {
    /// The error of a message, a stack and a code frame; none if all are empty. Its location is the nearest frame of
    /// the project's own code.
    pub(crate) fn error(
        &self,
        message: Option<&str>,
        stack: Option<&str>,
        snippet: Option<&str>,
    ) -> Option<ErrorDetail> {
        let stack = stack.and_then(text::stack);
        let message = message
            .and_then(text::message)
            .or_else(|| Some(text::first_line(stack.as_deref()?)?.to_owned()));
        let location = stack
            .as_deref()
            .or(message.as_deref())
            .and_then(|text| self.location_in(text));
        let snippet = snippet.and_then(text::snippet);
        let error = ErrorDetail {
            message,
            stack,
            snippet,
            location,
        };
        (error.has_text() || error.snippet.is_some()).then_some(error)
    }

    /// The error of a text with message and stack in one, as JavaScript tools write it.
    pub(crate) fn error_of_stack(&self, whole: &str, snippet: Option<&str>) -> Option<ErrorDetail> {
        let whole = text::plain(whole);
        let parts = Parts::of(&whole);
        let snippet = snippet
            .filter(|frame| !frame.trim().is_empty())
            .unwrap_or(parts.snippet);
        let bare = parts.stack.is_empty() && parts.message.len() == whole.len();
        let stack = (!bare).then_some(whole.as_ref());
        self.error(Some(parts.message), stack, Some(snippet))
    }
}

/// An error with a message alone.
pub(crate) fn error_saying(message: impl Into<String>) -> ErrorDetail {
    ErrorDetail {
        message: Some(message.into()),
        ..ErrorDetail::default()
    }
}

/// An error outside of tests, after the name of what failed.
pub(crate) fn error_of(name: &str, error: ErrorDetail) -> ErrorDetail {
    let message = error.message.as_deref().unwrap_or_default();
    ErrorDetail {
        message: text::message(&format!("{name}: {message}")),
        ..error
    }
}

/// An attempt with the status that the report gives it. A failed attempt becomes a timed-out one if an error has the
/// text of a known time limit. Errors of attempts that did not fail are dropped.
pub(crate) fn attempt(
    reported_status: AttemptStatus,
    errors: Vec<ErrorDetail>,
    duration_ms: Option<u64>,
    started_at: Option<Timestamp>,
) -> Attempt {
    let status = if reported_status == AttemptStatus::Failed {
        status(&errors)
    } else {
        reported_status
    };
    let errors = if status.is_failure() { errors } else { Vec::new() };
    as_reported(status, errors, duration_ms, started_at)
}

/// An attempt with the status and the errors that the report gives it.
pub(crate) const fn as_reported(
    status: AttemptStatus,
    errors: Vec<ErrorDetail>,
    duration_ms: Option<u64>,
    started_at: Option<Timestamp>,
) -> Attempt {
    Attempt {
        status,
        duration_ms,
        started_at,
        browser: None,
        skip_reason: None,
        output: None,
        errors,
    }
}

/// The status of a failed attempt: timed out if a message is the text of a known tool's time limit, else failed.
pub(crate) fn status(errors: &[ErrorDetail]) -> AttemptStatus {
    let timed_out = errors
        .iter()
        .filter_map(|error| error.message.as_deref())
        .any(is_time_limit);
    if timed_out {
        AttemptStatus::TimedOut
    } else {
        AttemptStatus::Failed
    }
}

/// Whether a message is the text of a known tool's own time limit, and not an assertion about time.
pub(crate) fn is_time_limit(message: &str) -> bool {
    let Some(line) = text::first_line(message) else {
        return false;
    };
    let line = text::bounded(line, limits::NAME);
    let has = |part: &str| line.contains(part);
    // In this order: nextest, JUnit 4, JUnit 5, Playwright, Jest (two), Vitest, Mocha, pytest-timeout (two),
    // Robot Framework, Cucumber, NUnit, xUnit.net.
    line.starts_with("test timeout")
        || has("TestTimedOutException")
        || (has("TimeoutException") && has("timed out after"))
        || (has("Test timeout of ") && has("exceeded"))
        || has("Exceeded timeout of ")
        || has("Async callback was not invoked within")
        || has("Test timed out in ")
        || (has("Timeout of ") && has("ms exceeded"))
        || has("Failed: Timeout >")
        || has("Failed: Timeout (>")
        || (line.starts_with("Test timeout ") && line.ends_with(" exceeded."))
        || has("function timed out, ensure the ")
        || has("Test exceeded Timeout value of ")
        || has("Test execution timed out after ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_limits_of_known_tools_are_time_outs() {
        for message in [
            "Test timeout of 2000ms exceeded.",
            "thrown: \"Exceeded timeout of 600 ms for a test.\nAdd a timeout value\"",
            "TestTimeoutError: Test timed out in 300ms.",
            "Error: Timeout of 300ms exceeded. For async tests",
            "Failed: Timeout (>1.0s) from pytest-timeout.",
            "org.junit.runners.model.TestTimedOutException: test timed out after 5 milliseconds",
            "\n test timeout",
            "Test timeout 1 second exceeded.",
            "Error: function timed out, ensure the promise resolves within 200 milliseconds",
            "Test exceeded Timeout value of 200ms",
        ] {
            assert!(is_time_limit(message), "{message}");
        }
        for message in [
            "",
            "expected the Timeout to be 5",
            "locator.click: Timeout 500ms exceeded.",
            "request timed out",
        ] {
            assert!(!is_time_limit(message), "{message}");
        }
    }
}
