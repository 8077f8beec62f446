//! Playwright's errors: the first one in parts, the others with message, code frame and stack in one text.

use std::fmt::Write as _;

use assay_domain::attempt::{ErrorDetail, Location};

use super::model::{Error, SourceLocation, TestResult};
use crate::{frame::Parts, input::Input, limits, text};

/// The errors of an attempt, in order. `error` has the parts of `errors[0]`.
pub(super) fn of_result(input: &Input<'_>, result: &TestResult) -> Vec<ErrorDetail> {
    let mut errors: Vec<ErrorDetail> = result
        .errors
        .iter()
        .map(|error| in_one_text(input, error))
        .collect();
    if let Some(first) = &result.error {
        let parts = in_parts(input, first);
        match errors.first_mut() {
            Some(paired) => {
                paired.message = parts.message.or(paired.message.take());
                paired.stack = parts.stack.or(paired.stack.take());
                paired.snippet = parts.snippet.or(paired.snippet.take());
                paired.location = parts.location.or(paired.location.take());
            }
            None => errors.push(parts),
        }
    }
    if let Some(first) = errors.first_mut() {
        // A time-out has no location. In that case `errorLocation` belongs to a later error.
        let is_only_error = result.errors.len() <= 1;
        first.location = first.location.take().or_else(|| {
            result
                .error_location
                .as_ref()
                .filter(|_| is_only_error)
                .and_then(|source| location(input, source))
        });
    }
    for error in &mut errors {
        if error.location.is_none() {
            error.location = error.stack.as_deref().and_then(|stack| input.location_in(stack));
        }
    }
    errors.retain(|error| error.has_text() || error.snippet.is_some() || error.location.is_some());
    errors
}

/// An error outside of any test.
pub(super) fn of_report(input: &Input<'_>, error: &Error) -> ErrorDetail {
    if error.stack.is_some() || error.snippet.is_some() {
        in_parts(input, error)
    } else {
        in_one_text(input, error)
    }
}

fn in_parts(input: &Input<'_>, error: &Error) -> ErrorDetail {
    let message = error.message.as_deref().or(error.value.as_deref());
    let mut stack = error
        .stack
        .as_deref()
        .map(|stack| text::plain(stack).trim_end().to_owned());
    for cause in causes(error) {
        let stack = stack.get_or_insert_default();
        let cause_text = [&cause.stack, &cause.message, &cause.value]
            .into_iter()
            .flatten()
            .next();
        if let Some(cause_text) = cause_text {
            // The format of Node.js. Writing to a string cannot fail.
            let _ = write!(stack, "\n[cause]: {}", text::plain(cause_text).trim_end());
        }
    }
    ErrorDetail {
        message: message.and_then(text::message),
        stack: stack.as_deref().and_then(text::stack),
        snippet: text::snippet(error.snippet.or_empty()),
        location: error.location.as_ref().and_then(|source| location(input, source)),
    }
}

fn causes(error: &Error) -> impl Iterator<Item = &Error> {
    std::iter::successors(error.cause.as_deref(), |cause| cause.cause.as_deref()).take(limits::DEPTH)
}

fn in_one_text(input: &Input<'_>, error: &Error) -> ErrorDetail {
    let whole = text::plain(error.message.as_deref().unwrap_or(error.value.or_empty()));
    let parts = Parts::of(&whole);
    ErrorDetail {
        message: text::message(parts.message),
        stack: text::stack(error.stack.or_empty()).or_else(|| text::stack(parts.stack)),
        snippet: text::snippet(error.snippet.or_empty()).or_else(|| text::snippet(parts.snippet)),
        location: error.location.as_ref().and_then(|source| location(input, source)),
    }
}

fn location(input: &Input<'_>, source: &SourceLocation) -> Option<Location> {
    let file = source.file.not_blank()?;
    Some(Location {
        file: input.stored_path(file),
        line: *source.line,
        column: *source.column,
    })
}
