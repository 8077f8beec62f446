//! Compiles patterns.

use regex::Regex;

/// Compiles a constant pattern.
#[expect(
    clippy::expect_used,
    reason = "the pattern is a constant, compiled by every test"
)]
pub(crate) fn pattern(regex: &str) -> Regex {
    Regex::new(regex).expect("a constant pattern compiles")
}
