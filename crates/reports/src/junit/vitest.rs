//! How many attempts Vitest's failures are.

use assay_domain::attempt::ErrorDetail;

/// Groups the errors of a case into attempts. Vitest lists all errors of all attempts in one row. An attempt may have
/// several (soft assertions), and they stand in the order of the code: an error that does not stand behind the one
/// before it begins another attempt. That is a guess where attempts failed at later and later places.
pub(super) fn attempts(errors: Vec<ErrorDetail>) -> Vec<Vec<ErrorDetail>> {
    let mut attempts: Vec<Vec<ErrorDetail>> = Vec::new();
    for error in errors {
        match attempts.last_mut() {
            Some(attempt) if attempt.last().is_some_and(|last| stands_behind(&error, last)) => {
                attempt.push(error)
            }
            _ => attempts.push(vec![error]),
        }
    }
    attempts
}

fn stands_behind(error: &ErrorDetail, before: &ErrorDetail) -> bool {
    match (&error.location, &before.location) {
        (Some(error), Some(before)) => {
            error.file == before.file && (error.line, error.column) > (before.line, before.column)
        }
        _ => false,
    }
}
