//! Which of Vitest's cases ran, and how many attempts their failures are.

use assay_domain::attempt::ErrorDetail;

use super::{case::Case, suite::Suite};
use crate::limits;

/// Whether a case without an outcome is one that never ran, as behind `--bail`: Vitest lists it like one that passed,
/// but took no time at all. Vitest 1 measures in whole milliseconds, so 0 may be a test that ran.
pub(super) fn never_ran(suite: &Suite<'_>, case: &Case<'_>) -> bool {
    suite.fine_clock && case.time == Some("0")
}

/// Groups the errors of a case into attempts. Vitest lists all errors of all attempts in one row: an error at a place
/// where the attempt already has one begins the next attempt, which takes soft assertions for what they are.
pub(super) fn attempts(errors: Vec<ErrorDetail>) -> Vec<Vec<ErrorDetail>> {
    let mut attempts: Vec<Vec<ErrorDetail>> = Vec::new();
    for error in errors {
        match attempts.last_mut() {
            Some(attempt)
                if attempt
                    .iter()
                    .take(limits::ERRORS)
                    .all(|known| !same_place(known, &error)) =>
            {
                attempt.push(error);
            }
            _ => attempts.push(vec![error]),
        }
    }
    attempts
}

fn same_place(one: &ErrorDetail, other: &ErrorDetail) -> bool {
    match (&one.location, &other.location) {
        (None, None) => one.message == other.message,
        (one, other) => one == other,
    }
}
