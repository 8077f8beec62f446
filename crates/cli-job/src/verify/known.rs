//! What the server knows of a test that is to be fixed.

use assay_domain::{fix::RunMode, test::TestName};
use serde::Deserialize;
use serde_json::Value;

use super::Failure;

/// The server's answer has other fields.
#[derive(Debug, thiserror::Error)]
#[error("the server's answer is not about a test; is the server older than this program?")]
pub struct ForeignAnswer(#[from] serde_json::Error);

/// What is known of a test before its fix.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownFlake {
    /// The rate at which it fails.
    pub rate: f64,
    /// The least company in which it is known to fail.
    pub mode: RunMode,
    /// Its usual duration in milliseconds.
    pub usual_ms: Option<u64>,
    /// Its errors, the most frequent first.
    pub errors: Vec<KnownError>,
    /// Why no run of this job proves a fix.
    pub obstacle: Option<String>,
}

/// An error of a test.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KnownError {
    /// Its fingerprint.
    pub fingerprint: String,
    /// One line.
    pub title: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FixAnswer {
    test: TestName,
    rate: Option<f64>,
    variants: Vec<Variant>,
    mode: RunMode,
    usual_ms: Option<u64>,
    errors: Vec<KnownError>,
}

#[derive(Debug, Deserialize)]
struct Variant {
    variant: String,
    rate: f64,
    failures: u32,
}

impl KnownFlake {
    /// A test of which only the rate is known.
    pub const fn of_rate(rate: f64) -> Self {
        Self {
            rate,
            mode: RunMode::InSuite,
            usual_ms: None,
            errors: Vec::new(),
            obstacle: None,
        }
    }

    /// What the server's answer about its fixes has for a job of this suite, and the test's stored name. A rate that the caller
    /// gives takes precedence. Without any rate there is nothing to compare with.
    pub fn of_answer(
        answer: &Value,
        suite: Option<&str>,
        rate: Option<f64>,
    ) -> Result<(Option<Self>, TestName), ForeignAnswer> {
        let answer = FixAnswer::deserialize(answer)?;
        let suite = suite.unwrap_or_default();
        let is_here = |variant: &&Variant| {
            let of_suite = variant.variant.strip_prefix(suite);
            of_suite.is_some_and(|rest| {
                rest.is_empty() || (!suite.is_empty() && rest.starts_with([' ', '/', ',']))
            })
        };
        let mut here = answer.variants.iter().filter(is_here).peekable();
        let is_known_here = here.peek().is_some();
        let failing_here = here
            .filter(|variant| variant.failures > 0)
            .map(|variant| variant.rate);
        let rate_here = failing_here.reduce(f64::min);
        let failing = answer.variants.iter().find(|variant| variant.failures > 0);
        let obstacle = failing.filter(|_| is_known_here && rate_here.is_none()).map(|failing| {
            format!(
                "it never failed on this variant, only on {:?}; verify the fix there, or give its --suite",
                assay_reports::shown_name(&failing.variant)
            )
        });
        let known = rate.or(rate_here).or(answer.rate).map(|rate| Self {
            rate,
            mode: answer.mode,
            usual_ms: answer.usual_ms,
            errors: answer.errors,
            obstacle,
        });
        Ok((known, answer.test))
    }

    /// Whether an error is one of before. A failure without a text agrees with any. A fix may change values in the text, so
    /// the same title is enough.
    pub(super) fn has_error(&self, failure: &Failure) -> bool {
        let is_same = |error: &KnownError| {
            Some(&error.fingerprint) == failure.fingerprint.as_ref() || error.title == failure.title
        };
        self.errors.is_empty() || failure.fingerprint.is_none() || self.errors.iter().any(is_same)
    }
}
