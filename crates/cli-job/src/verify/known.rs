//! What the server knows of a test that is to be fixed.

use assay_answers::fix::{KnownError, VariantRate};
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
    /// How many tests its suite usually runs.
    pub suite_tests: Option<u32>,
    /// Its usual duration in milliseconds.
    pub usual_ms: Option<u64>,
    /// Its errors, the most frequent first.
    pub errors: Vec<KnownError>,
    /// Why no run of this job proves a fix.
    pub obstacle: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FixAnswer {
    test: TestName,
    rate: Option<f64>,
    variants: Vec<VariantRate>,
    calendar: Option<String>,
    mode: RunMode,
    usual_ms: Option<u64>,
    errors: Vec<KnownError>,
}

impl KnownFlake {
    /// A test of which only the rate is known.
    pub const fn of_rate(rate: f64) -> Self {
        Self {
            rate,
            mode: RunMode::InSuite,
            suite_tests: None,
            usual_ms: None,
            errors: Vec::new(),
            obstacle: None,
        }
    }

    /// What the server's answer about its fixes has for a job of this suite, and the test's stored name. Of its rate and one
    /// that the caller gives the lower one counts. Without any rate there is nothing to compare with.
    pub fn of_answer(
        answer: &Value,
        suite: Option<&str>,
        rate: Option<f64>,
    ) -> Result<(Option<Self>, TestName), ForeignAnswer> {
        let answer = FixAnswer::deserialize(answer)?;
        let suite = suite.unwrap_or_default();
        let is_here = |variant: &&VariantRate| {
            let of_suite = variant.variant.strip_prefix(suite);
            of_suite.is_some_and(|rest| {
                rest.is_empty() || (!suite.is_empty() && rest.starts_with([' ', '/', ',']))
            })
        };
        let here: Vec<&VariantRate> = answer.variants.iter().filter(is_here).collect();
        let (failing, others): (Vec<&VariantRate>, Vec<&VariantRate>) =
            answer.variants.iter().partition(|variant| variant.failures > 0);
        let rates_here = here.iter().filter(|variant| variant.failures > 0);
        let rate_here = rates_here.map(|variant| variant.rate).reduce(f64::min);
        let of_variants = match (here.is_empty(), rate_here, failing.first()) {
            (false, None, Some(failing)) => Some(format!(
                "it never failed on this variant, only on {:?}; verify the fix there, or give its --suite",
                assay_reports::shown_name(&failing.variant)
            )),
            (true, _, Some(failing)) if !others.is_empty() => Some(format!(
                "it does not fail on all variants, but on {:?}, and the variant of this job is not known; give its --suite",
                assay_reports::shown_name(&failing.variant)
            )),
            _ => None,
        };
        let by_calendar = answer.calendar.map(|sentence| {
            format!("{sentence}: on other days or hours each run passes, fixed or not; watch the stable branch then")
        });
        let suite_tests = match here.is_empty() {
            true => answer.variants.iter().filter_map(|variant| variant.tests).min(),
            false => here.iter().filter_map(|variant| variant.tests).max(),
        };
        let rates = [rate, rate_here.or(answer.rate)].into_iter().flatten();
        let known = rates.reduce(f64::min).map(|rate| Self {
            rate,
            mode: answer.mode,
            suite_tests,
            usual_ms: answer.usual_ms,
            errors: answer.errors,
            obstacle: by_calendar.or(of_variants),
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
