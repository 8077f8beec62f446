//! Texts that hold a message, a code frame and a stack trace, in this order.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::{self, pattern};

/// The parts of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'a> {
    /// The text before the code frame and the stack.
    pub(crate) message: &'a str,
    /// The code frame, with the line that names its file if that is not the test's file.
    pub(crate) snippet: &'a str,
    /// The text after the code frame: the stack trace, and causes.
    pub(crate) stack: &'a str,
}

impl<'a> Parts<'a> {
    /// Splits a clean text: line breaks are line feeds, and it has no escape sequences.
    pub(crate) fn of(whole: &'a str) -> Self {
        let (mut stack, mut first, mut end) = (None, None, None);
        let mut is_marked = false;
        // The two lines before.
        let mut before = [(0, ""); 2];
        for (start, line) in line_starts(whole) {
            if FRAME.is_match(line) {
                is_marked |= MARKED.is_match(line);
                first.get_or_insert_with(|| match before {
                    [(header, of_file), (_, blank)] if BLANK.is_match(blank) && HEADER.is_match(of_file) => {
                        header
                    }
                    _ => start,
                });
            } else if is_marked {
                end = Some(start);
                break;
            } else {
                first = None;
            }
            if stack.is_none() && STACK.is_match(line) {
                stack = Some(start);
            }
            before = [before[1], (start, line)];
        }
        let Some(first) = first.filter(|_| is_marked) else {
            let stack = stack.unwrap_or(whole.len());
            return Self::cut(whole, stack, stack);
        };
        let parts = Self::cut(whole, first, end.unwrap_or(whole.len()));
        // Jest puts some stacks before the code frame of their cause. The message ends at the first of the two.
        match stack.filter(|stack| *stack < first) {
            Some(stack) => Self {
                message: whole.get(..stack).unwrap_or_default(),
                ..parts
            },
            None => parts,
        }
    }

    fn cut(whole: &'a str, first: usize, end: usize) -> Self {
        Self {
            message: whole.get(..first).unwrap_or_default(),
            snippet: whole.get(first..end).unwrap_or_default(),
            stack: whole.get(end..).unwrap_or_default(),
        }
    }
}

/// Removes the common indentation of a code frame.
pub(crate) fn dedent(frame: &str) -> String {
    let indent = |line: &&str| line.len() - line.trim_start_matches(' ').len();
    let least = frame
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| indent(&line))
        .min()
        .unwrap_or(0);
    text::of_lines(frame.lines().map(|line| line.get(least..).unwrap_or_default()))
}

fn line_starts(whole: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    whole.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        (at, line.trim_end_matches('\n'))
    })
}

/// The line of a code frame that raised the error.
static MARKED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^ *> *\d+ \|"));
/// Any line of a code frame.
static FRAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"^ *>? *\d* \|"));
/// `at helper.ts:2`: precedes the code frame of a file other than the test's. A blank line separates them.
static HEADER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^ +at [^:]+:\d+$"));
static BLANK: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*$"));
/// A line of a stack trace.
static STACK: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^ +at .*(?::\d+:\d+\)?|\(<anonymous>\)|\(native\)|node:internal\S*\)?)$"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_frame_and_stack_are_separated() {
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

    #[test]
    fn an_indented_frame_is_moved_to_the_left() {
        let parts = Parts::of(
            "    thrown\n\n      at a.js:1:2\n\n        8 | a\n      > 9 | b\n          | ^\n\n      at c.js:3:4",
        );
        assert_eq!(parts.message.trim(), "thrown");
        assert_eq!(dedent(parts.snippet), "  8 | a\n> 9 | b\n    | ^");
    }
}
