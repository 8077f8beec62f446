//! How Vitest lists errors, in JSON and in JUnit XML.

use assay_domain::attempt::ErrorDetail;

use crate::limits;

/// Groups the errors of a test into attempts. Vitest does not report the number of attempts; one list holds the errors
/// of all. An error at a location where the attempt already has one begins the next attempt. Soft assertions stay in
/// one attempt by this rule.
pub(crate) fn attempts(errors: impl IntoIterator<Item = ErrorDetail>) -> Vec<Vec<ErrorDetail>> {
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
