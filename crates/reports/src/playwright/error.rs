//! Playwright's errors: one in parts, the others with message, code frame and stack in one text.

use std::{fmt::Write as _, sync::LazyLock};

use assay_domain::attempt::{ErrorDetail, Location};
use regex::Regex;

use super::model::{Error, Place, TestResult};
use crate::{input::Input, limits, text};

/// The errors of an attempt, the first one first: `error` gives the parts of `errors[0]`.
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
        // A timeout's own error has no place; `errorLocation` is then that of a later error.
        let only = result.errors.len() <= 1;
        first.location = first.location.take().or_else(|| {
            result
                .error_location
                .as_ref()
                .filter(|_| only)
                .and_then(|place| location(input, place))
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

/// An error that stands outside of any test.
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
        .map(|stack| text::clean(stack).trim_end().to_owned());
    for cause in causes(error) {
        let stack = stack.get_or_insert_default();
        let told = [&cause.stack, &cause.message, &cause.value]
            .into_iter()
            .flatten()
            .next();
        if let Some(told) = told {
            // As Node.js prints it; a writer into a string cannot fail.
            let _ = write!(stack, "\n[cause]: {}", text::clean(told).trim_end());
        }
    }
    ErrorDetail {
        message: message.and_then(text::message),
        stack: stack.as_deref().and_then(text::stack),
        snippet: error.snippet.as_deref().and_then(text::snippet),
        location: error.location.as_ref().and_then(|place| location(input, place)),
    }
}

fn causes(error: &Error) -> impl Iterator<Item = &Error> {
    std::iter::successors(error.cause.as_deref(), |cause| cause.cause.as_deref()).take(limits::DEPTH)
}

fn in_one_text(input: &Input<'_>, error: &Error) -> ErrorDetail {
    let whole = error
        .message
        .as_deref()
        .or(error.value.as_deref())
        .unwrap_or_default();
    let whole = text::clean(whole);
    let parts = Parts::of(&whole);
    ErrorDetail {
        message: text::message(parts.message),
        stack: error
            .stack
            .as_deref()
            .and_then(text::stack)
            .or_else(|| text::stack(parts.stack)),
        snippet: error
            .snippet
            .as_deref()
            .and_then(text::snippet)
            .or_else(|| text::snippet(parts.snippet)),
        location: error.location.as_ref().and_then(|place| location(input, place)),
    }
}

fn location(input: &Input<'_>, place: &Place) -> Option<Location> {
    let file = place.file.as_deref().filter(|file| !file.trim().is_empty())?;
    Some(Location {
        file: input.stored_path(file),
        line: place.line,
        column: place.column,
    })
}

/// A text cut into message, code frame and stack, which stand in this order.
struct Parts<'a> {
    message: &'a str,
    snippet: &'a str,
    stack: &'a str,
}

impl<'a> Parts<'a> {
    fn of(whole: &'a str) -> Self {
        let lines: Vec<(usize, &str)> = line_starts(whole).collect();
        let at = |line: usize| lines.get(line).map_or(whole.len(), |(start, _)| *start);
        let is =
            |pattern: &Regex, line: usize| lines.get(line).is_some_and(|(_, text)| pattern.is_match(text));
        let marked = (0..lines.len()).find(|line| is(&MARKED, *line));
        let Some(marked) = marked else {
            let stack = (0..lines.len())
                .find(|line| is(&STACK, *line))
                .map_or(whole.len(), at);
            return Self::cut(whole, stack, stack);
        };
        let mut first = marked;
        while first > 0 && is(&FRAME, first - 1) {
            first -= 1;
        }
        let mut end = marked + 1;
        while is(&FRAME, end) {
            end += 1;
        }
        // `at helper.ts:2` and a blank line stand before the frame of another file than the test's.
        if first >= 2 && is(&BLANK, first - 1) && is(&HEADER, first - 2) {
            first -= 2;
        }
        Self::cut(whole, at(first), at(end))
    }

    fn cut(whole: &'a str, first: usize, end: usize) -> Self {
        Self {
            message: whole.get(..first).unwrap_or_default(),
            snippet: whole.get(first..end).unwrap_or_default(),
            stack: whole.get(end..).unwrap_or_default(),
        }
    }
}

fn line_starts(whole: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    whole.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        (at, line.trim_end_matches('\n'))
    })
}

fn pattern(text: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "constant patterns, each compiled in a test")]
    Regex::new(text).expect("a valid pattern")
}

/// The line of a code frame that the error is in.
static MARKED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^> *\d+ \|"));
/// Any line of a code frame.
static FRAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"^>? *\d* \|"));
static HEADER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^ +at \S.*:\d+$"));
static BLANK: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*$"));
/// A line of a stack trace.
static STACK: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^ +at .*(?::\d+:\d+\)?|\(<anonymous>\)|\(native\)|node:internal\S*\)?)$"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_frame_and_stack_are_cut_apart() {
        let whole = "Error: x\n\nExpected: 1\n\n   at helper.ts:9\n\n   8 | a\n>  9 | b\n     | ^\n  10 | c\n    at f (/r/helper.ts:9:1)\n[cause]: Error: y\n    at g (/r/a.ts:1:1)";
        let parts = Parts::of(whole);
        assert_eq!(parts.message.trim(), "Error: x\n\nExpected: 1");
        assert_eq!(
            parts.snippet.trim_end(),
            "   at helper.ts:9\n\n   8 | a\n>  9 | b\n     | ^\n  10 | c"
        );
        assert_eq!(
            parts.stack.trim(),
            "at f (/r/helper.ts:9:1)\n[cause]: Error: y\n    at g (/r/a.ts:1:1)"
        );
    }

    #[test]
    fn a_message_without_frame_ends_where_its_stack_begins() {
        let parts =
            Parts::of("Error: meet me at 9:30\n  at home\n    at f (/r/a.ts:1:2)\n    at g (/r/b.ts:3:4)");
        assert_eq!(parts.message, "Error: meet me at 9:30\n  at home\n");
        assert_eq!(parts.stack.trim(), "at f (/r/a.ts:1:2)\n    at g (/r/b.ts:3:4)");
        assert_eq!(Parts::of("a | b\n> quoted").message, "a | b\n> quoted");
    }
}
