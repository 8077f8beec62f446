//! Rules for Vitest's cases: which cases ran, and which failures belong to one attempt.

use assay_domain::attempt::ErrorDetail;

use super::{case::Case, suite::Suite};
use crate::limits;

/// Whether a case without an outcome never ran, for example after `--bail`. Vitest lists it like a passed case, but
/// without any duration. Vitest 1 measures whole milliseconds, so there a duration of 0 may be a test that ran.
pub(super) fn never_ran(suite: &Suite<'_>, case: &Case<'_>) -> bool {
    suite.has_fine_clock && case.time == Some("0")
}

/// Groups the errors of a case into attempts. Vitest lists all errors of all attempts together. An error at a location
/// where the attempt already has one begins the next attempt. Soft assertions stay in one attempt by this rule.
pub(super) fn attempts(errors: Vec<ErrorDetail>) -> Vec<Vec<ErrorDetail>> {
    let mut attempts: Vec<Vec<ErrorDetail>> = Vec::new();
    for error in errors {
        match attempts.last_mut() {
            Some(attempt)
                if attempt
                    .iter()
                    .take(limits::ERRORS)
                    .all(|earlier| !have_same_location(earlier, &error)) =>
            {
                attempt.push(error);
            }
            _ => attempts.push(vec![error]),
        }
    }
    attempts
}

fn have_same_location(one: &ErrorDetail, other: &ErrorDetail) -> bool {
    match (&one.location, &other.location) {
        (None, None) => one.message == other.message,
        (one, other) => one == other,
    }
}
