//! Extracts errors from a case's outcomes.

use std::{borrow::Cow, sync::LazyLock};

use assay_domain::attempt::{AttemptStatus, ErrorDetail};
use regex::{Captures, Regex};

use super::{case::Child, dialect::Dialect, playwright};
use crate::{
    failure, go,
    input::Input,
    text::{self, pattern},
};

/// The error of an outcome. `None` if it has no text.
pub(super) fn of(input: &Input<'_>, dialect: Dialect, child: &Child<'_>) -> Option<ErrorDetail> {
    let body = unescaped(dialect, child.body());
    let message = message(dialect, child, &body);
    let stack = text::stack(&body).filter(|stack| Some(stack) != message.as_ref());
    detail(input, message, stack)
}

/// The error of an outcome in Playwright's report. `first_attempt` is set if the other attempts have their own
/// outcomes.
pub(super) fn of_playwright(
    input: &Input<'_>,
    child: &Child<'_>,
    first_attempt: bool,
) -> Option<ErrorDetail> {
    let parts = playwright::parts(child.body(), first_attempt);
    // The attribute has only the first line; in older versions it has the location of the test.
    let message = parts
        .message
        .as_deref()
        .and_then(text::message)
        .or_else(|| text::message(&child.message));
    let stack = text::stack(&parts.stack).filter(|stack| Some(stack) != message.as_ref());
    let mut error = detail(input, message, stack)?;
    error.snippet = parts.snippet;
    Some(error)
}

/// The error of a case whose output alone explains the failure, as in CTest.
pub(crate) fn of_output(input: &Input<'_>, output: &str) -> Option<ErrorDetail> {
    let output = output.replace("[NON-XML-CHAR-0x1B]", "\u{1b}");
    let stack = text::stack(&output)?;
    let message = text::message(&failure_in_output(&stack));
    let stack = Some(stack).filter(|stack| Some(stack) != message.as_ref());
    detail(input, message, stack)
}

/// The status of an attempt with this outcome: timed out if the text is that of a tool's time limit, else failed.
pub(super) fn status(child: &Child<'_>, error: Option<&ErrorDetail>) -> AttemptStatus {
    let message = error.and_then(|error| error.message.as_deref());
    let message = message.unwrap_or(&child.message);
    let timed_out = failure::is_time_limit(&child.type_name)
        || failure::is_time_limit(message)
        || child.type_name == "testTimeoutFailure"
        || go::is_timeout(message);
    if timed_out {
        AttemptStatus::TimedOut
    } else {
        AttemptStatus::Failed
    }
}

fn detail(input: &Input<'_>, message: Option<String>, stack: Option<String>) -> Option<ErrorDetail> {
    if message.is_none() && stack.is_none() {
        return None;
    }
    let location = stack
        .as_deref()
        .and_then(|stack| input.location_in(stack))
        .or_else(|| message.as_deref().and_then(|message| input.location_in(message)));
    Some(ErrorDetail {
        message,
        stack,
        snippet: None,
        location,
    })
}

/// The `message` attribute, else the first line of the text, else the type. A tool whose attribute does not explain the
/// failure has its own rule.
fn message(dialect: Dialect, child: &Child<'_>, body: &str) -> Option<String> {
    let attribute = unescaped(dialect, &child.message);
    of_dialect(dialect, &attribute, body)
        .or_else(|| phpunit_message(body))
        .or_else(|| exception_in(body))
        .or_else(|| first_line(body).and_then(text::message))
        .or_else(|| text::message(&attribute))
        .or_else(|| text::message(&child.type_name))
}

/// The message in the attribute, or the one that a tool's own rule finds in the text. `None` if neither has a message.
fn of_dialect(dialect: Dialect, attribute: &str, body: &str) -> Option<String> {
    let is_go = matches!(dialect, Dialect::Gotestsum | Dialect::GoJunitReport);
    if is_go && attribute == "Failed" {
        // Every failure has this attribute value.
        text::message(&go::failure_text(body)).or_else(|| text::message(attribute))
    } else if dialect == Dialect::Pytest && attribute == "collection failure" {
        // The error is in the text, after pytest's mark.
        match body.lines().rev().find_map(|line| line.strip_prefix("E  ")) {
            Some(raised) => text::message(&format!("{attribute}: {}", raised.trim())),
            None => text::message(attribute),
        }
    } else if dialect == Dialect::Nextest && attribute.contains("panicked at ") {
        // The attribute ends with the location; the assertion follows in the text.
        text::message(panic_in(body))
    } else if attribute == "None" {
        // Python's `None`, written as text.
        None
    } else {
        text::message(attribute)
    }
}

/// Reverses the escapes that a tool adds to a text.
fn unescaped(dialect: Dialect, text: &str) -> Cow<'_, str> {
    let text = text.trim_start_matches('\u{feff}');
    if dialect == Dialect::Surefire {
        unescaped_twice(text)
    } else if dialect == Dialect::Pytest && text.contains("#x") {
        // pytest writes characters that XML forbids as `#x1B`.
        CONTROL.replace_all(text, |captures: &Captures<'_>| {
            if captures.get(1).is_some_and(|code| code.as_str() == "1B") {
                "\u{1b}"
            } else {
                ""
            }
        })
    } else if BARE_RESET.is_match(text) && !SPELLED_OUT.is_match(text) {
        // Writers of XML drop the escape character of colours and leave the rest. A test may also contain such a
        // sequence as text.
        BARE_COLOUR.replace_all(text, "$1")
    } else {
        Cow::Borrowed(text)
    }
}

static CONTROL: LazyLock<Regex> = LazyLock::new(|| pattern("#x([01][0-9A-F])"));
static SPELLED_OUT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\\(?:e|x1b|u001b|033)\["));
static BARE_RESET: LazyLock<Regex> = LazyLock::new(|| pattern(r"\[(?:0|22|39)m"));
static BARE_COLOUR: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\[[0-9]{1,3}(?:;[0-9]{1,3}){0,4}m([^\]]|$)"));

/// The first informative line of a text. Headings that are the same for every failure are skipped: Jest's for a suite
/// that failed to run, and Catch2's for an exception.
fn first_line(body: &str) -> Option<&str> {
    let first = text::first_line(body)?;
    if matches!(first, "● Test suite failed to run" | "FAILED:") {
        body.lines()
            .map(str::trim)
            .skip_while(|line| *line != first)
            .skip(1)
            .find(|line| !line.is_empty())
            .or(Some(first))
    } else {
        Some(first)
    }
}

/// The message of the first exception that a text names above its stack. It applies to texts that begin with something
/// else: the location of a `throw`, a banner or log lines.
fn exception_in(body: &str) -> Option<String> {
    // Node writes the location of an event below its error.
    let is_frame =
        |line: &str| line.trim_start().starts_with("at ") || line.starts_with("Emitted 'error' event");
    let above = || {
        let lines = body.lines().take_while(|line| !is_frame(line));
        lines.skip_while(|line| line.trim().is_empty())
    };
    let exception = above().position(|line| EXCEPTION.is_match(line))?;
    if !above().take(exception).any(is_location_or_log) {
        return None;
    }
    text::message(text::of_lines(above().skip(exception)).trim())
}

/// Whether a line is a location or a log line rather than an error.
fn is_location_or_log(line: &str) -> bool {
    LOCATION_OR_LOG.is_match(line)
}

/// `AssertionError [ERR_ASSERTION]: 1 !== 2`, `Error: read ECONNRESET`, `java.lang.IllegalStateException: closed`.
static EXCEPTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:Uncaught )?(?:[A-Za-z_$][\w$]*(?:\.|::|\\))*(?:[A-Z][\w$]*(?:Error|Exception|Failure|Panic)|Error|Exception)(?: \[[A-Z_]+\])?(?::\s|$)",
    )
});

/// `node:internal/assert/utils:281`, `/src/a.js:69`, `throw err;`, `2026-11-20 18:46:03,120 WARN …`, `=====`.
static LOCATION_OR_LOG: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(?:\S+:\d+(?::\d+)?:?\s*$|throw \S+;\s*$|\^+\s*$|\[?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}|\[?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR)\b|[=*#-]{5,})",
    )
});

/// The message in PHPUnit's text: between the test's name and the trace.
fn phpunit_message(body: &str) -> Option<String> {
    let body = body.trim_start();
    let (first, rest) = body.split_once('\n')?;
    let (class, test) = first.split_once("::")?;
    let is_name = |text: &str| {
        text.chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '\\'))
    };
    let test = test.split_once(" with data set ").map_or(test, |(test, _)| test);
    let is_traced = |line: &str| {
        line.rsplit_once(".php:")
            .is_some_and(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if !is_name(class) || !is_name(test.trim_end()) || !rest.lines().any(|line| is_traced(line.trim_end())) {
        return None;
    }
    let message = text::of_lines(rest.lines().take_while(|line| !is_traced(line.trim_end())));
    text::message(message.trim())
}

/// A Rust panic without its backtrace.
fn panic_in(body: &str) -> &str {
    let end = ["\nstack backtrace:", "\nnote: "]
        .iter()
        .filter_map(|mark| body.find(mark))
        .min()
        .unwrap_or(body.len());
    body.get(..end).unwrap_or(body)
}

/// The failure in an output: the first one of GoogleTest, else the first line that mentions a failure, else the last
/// line.
fn failure_in_output(output: &str) -> String {
    if let Some(start) = output.lines().position(|line| line.ends_with(": Failure")) {
        let failure = output
            .lines()
            .skip(start)
            .enumerate()
            .take_while(|(at, line)| *at == 0 || !(line.starts_with('[') || line.ends_with(": Failure")));
        return text::of_lines(failure.map(|(_, line)| line));
    }
    let mentions_failure = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["error", "fail", "assert", "exception", "panic"]
            .iter()
            .any(|word| line.contains(word))
    };
    output
        .lines()
        .find(mentions_failure)
        .or_else(|| output.lines().rev().find(|line| !line.trim().is_empty()))
        .map_or_else(String::new, str::to_owned)
}

/// Surefire escapes control characters twice, in stack traces without the semicolon: `&#7;`, `&amp#7;`.
fn unescaped_twice(text: &str) -> Cow<'_, str> {
    ESCAPED_TWICE.replace_all(text, |captures: &Captures<'_>| {
        let group = |number| captures.get(number).map_or("", |group| group.as_str());
        match group(1).parse::<u8>() {
            Ok(code) if code < 32 => "\u{fffd}".to_owned(),
            _ => group(0).to_owned(),
        }
    })
}

static ESCAPED_TWICE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:&amp#|&#)+(\+?[0-9]+);"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_control_characters_are_unescaped_twice() {
        for (text, expected) in [
            ("a&#7;b&amp#27;[0m", "a\u{fffd}b\u{fffd}[0m"),
            ("&amp#&#+07;", "\u{fffd}"),
            ("&#32;&#x7;&#;&#7 ;&amp#", "&#32;&#x7;&#;&#7 ;&amp#"),
            ("&&#&#65;&#1;&", "&&#&#65;\u{fffd}&"),
            ("a & b &lt;", "a & b &lt;"),
        ] {
            assert_eq!(unescaped_twice(text), expected);
        }
    }
}
