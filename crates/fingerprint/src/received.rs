//! Masks actual values. The expected value identifies a check; the actual one does not.

use std::sync::LazyLock;

use regex::Regex;

use crate::{pattern::pattern, value};

/// Placeholder of an actual value.
pub(crate) const VALUE: &str = "<value>";

/// A label of an actual value at the start of a line: `Received string: `, `but was: `, `actual  : `.
static LABEL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(?i:(?:but:? (?:was|got|found|received)|received(?: [a-z' ]{1,40})?|actual(?: value)?|got|found|which is|resolved to(?: value)?|rejected to(?: value)?|expecting(?: actual)?|unexpected value|but the text was))\s*:|^\s*Received\s*$",
    )
});

/// The label of Rust's left side, if an assertion compared left with right.
static LEFT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*left:"));

/// Any other label, which ends the block below a label.
static OTHER_LABEL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(?i:want(?:ed)?|expected?(?: [a-z' ]{1,40})?|right|timeout|call log|diff|locator|messages?|error|number of [a-z ]+|snapshot name|difference|to (?:be|have|contain|equal|match)[a-z ]*|not to [a-z ]+|in order to [a-z ]+|and|when [a-z ]+|test)\s*:",
    )
});

/// Words before an actual value within a sentence, including the space between.
static INLINE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:but(?: the \w+)?:? (?:was|got|found|received|is|had|has)|(?:got|actual|actually|received|found)(?: (?:value|string|array|object))?)\b(?:\s*[:=])?\s*",
    )
});
/// The words of [`INLINE`] that occur in any sentence. They count only before a value, or in a line with an
/// expectation.
static PLAIN_WORD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)^(?:actual|actually|received|found|got)(?: (?:value|string|array|object))?\s*$")
});
static EXPECTATION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(?:want(?:ed)?|expect(?:ed|ing)?|should)\b"));

/// Chai, Vitest, Jasmine, RSpec: `expected 'a' to be 'b'`. PHPUnit: `asserting that 'a' is identical to 'b'`.
static SUBJECT: LazyLock<[(Regex, Regex); 2]> = LazyLock::new(|| {
    [
        (
            pattern(r"(?i)\bexpected (\S)"),
            pattern(
                r"(?i) (?:not )?to (?:not |have |strictly |deeply |loosely )*(?:be|been|equal|eql?|contain|include|match|throw|start|end|exist|satisfy|respond|change|own|property|length|text|value|a|an|instance|keys?|members?|raise|resolve|reject)\b",
            ),
        ),
        (
            pattern(r"\basserting that (\S)"),
            pattern(r" (?:is|matches|contains|equals|has|starts|ends|does|exists|are)\b"),
        ),
    ]
});

/// The header of a diff, and the sign of its actual lines.
static DIFF: LazyLock<[(Regex, char); 4]> = LazyLock::new(|| {
    [
        (pattern(r"^\s*Diff:\s*$"), '+'),
        (pattern(r"^\s*\+ expected - actual\s*$"), '-'),
        (pattern(r"^\s*\+ actual - expected\b"), '+'),
        (
            pattern(r"^\s*-{1,3} ?(?i:expected|snapshot|right|want)\b(?:\s*- \d+)?\s*$"),
            '+',
        ),
    ]
});
static DIFF_SECOND: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*\+{1,3} ?(?i:received|actual|got)\b(?:\s*\+ \d+)?\s*$"));
/// A diff on one line, as in an XML attribute.
static FLAT_DIFF: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\bDiff: @@|\s- Expected\s+(?:- \d+ )?\s*\+ Received\b"));

/// Text after a value on one line: another label, a remark, or a sentence.
static FOLLOWS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(?:Expected|Timeout|Call log|Locator|want|Diff)\b|\(compared|^\. \S"));

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Plain,
    /// Below a label: lines are dropped until another label, or a blank line after the value began.
    Value {
        has_begun: bool,
        quoted: bool,
    },
    /// In a diff: lines with this sign are dropped. The others are the expectation.
    Diff(char),
    /// Below pytest's `assert`: only the operands are kept.
    Assert,
}

/// The lines with actual values masked.
pub(crate) fn mask(lines: &[String]) -> Vec<String> {
    let compares_sides = lines
        .iter()
        .any(|line| line.contains("left == right") || line.contains("left != right"));
    let mut state = State::Plain;
    let mut out = Vec::with_capacity(lines.len());
    for line in lines {
        state = step(state, line, compares_sides, &mut out);
    }
    out
}

fn step(state: State, line: &str, compares_sides: bool, out: &mut Vec<String>) -> State {
    let blank = line.trim().is_empty();
    if let Some(state) = within_value(state, line) {
        return state;
    }
    if let Some((_, sign)) = DIFF.iter().find(|(header, _)| header.is_match(line)) {
        return State::Diff(*sign);
    }
    if DIFF_SECOND.is_match(line) {
        return if matches!(state, State::Diff(_)) {
            state
        } else {
            State::Diff('+')
        };
    }
    if let State::Diff(actual_sign) = state
        && let Some(expected_line) = expected_side(line, actual_sign)
    {
        out.extend(expected_line.map(ToOwned::to_owned));
        return state;
    }
    if state == State::Assert && !blank && line.starts_with([' ', '+', '-', '?']) {
        if let Some(reason) = line.trim_start().strip_prefix("+ ") {
            out.extend(where_clause(reason));
        }
        return state;
    }
    let label = LABEL
        .find(line)
        .or_else(|| LEFT.find(line).filter(|_| compares_sides));
    if let Some(label) = label {
        let rest = line.get(label.end()..).unwrap_or_default().trim();
        let name = label.as_str().trim_end().trim_end_matches(':').trim_end();
        out.push(format!("{name}: {VALUE}{}", value_after(rest)));
        let open = value::is_open(rest);
        return if rest.is_empty() || open {
            State::Value {
                has_begun: open,
                quoted: open,
            }
        } else {
            State::Plain
        };
    }
    out.push(inline(line));
    let asserts = line.trim_start().starts_with("assert ")
        || line.contains("Error: assert ")
        || unequal_literals(line).is_some();
    if asserts || (state == State::Assert && blank) {
        State::Assert
    } else {
        State::Plain
    }
}

/// The state after a line that belongs to a value; none for another line.
fn within_value(state: State, line: &str) -> Option<State> {
    let blank = line.trim().is_empty();
    match state {
        State::Value {
            has_begun,
            quoted: true,
        } => {
            let ends = line
                .trim_end()
                .trim_end_matches([',', '.'])
                .ends_with(['"', '\'', '`', '}', ']', ')']);
            Some(if ends {
                State::Plain
            } else {
                State::Value {
                    has_begun,
                    quoted: true,
                }
            })
        }
        State::Value {
            has_begun: false,
            quoted: false,
        } if blank => Some(state),
        State::Value {
            has_begun: _,
            quoted: false,
        } if !blank && !is_label(line) => Some(State::Value {
            has_begun: true,
            quoted: value::is_open(line.trim()) && line.trim().starts_with('"'),
        }),
        State::Value { .. } | State::Plain | State::Assert | State::Diff(_) => None,
    }
}

/// The masked text after a masked value on its line; only if a label or remark follows.
fn value_after(rest: &str) -> String {
    let after = rest.get(value::length(rest)..).unwrap_or_default();
    if FOLLOWS.is_match(after) {
        inline(after)
    } else {
        String::new()
    }
}

fn is_label(line: &str) -> bool {
    OTHER_LABEL.is_match(line)
        || LABEL.is_match(line)
        || DIFF.iter().any(|(header, _)| header.is_match(line))
        || DIFF_SECOND.is_match(line)
}

/// The expected line of a diff: `None` after the diff's end, `Some(None)` for an actual line.
#[expect(
    clippy::option_option,
    reason = "the end, a dropped line and an expected line are three results"
)]
fn expected_side(line: &str, actual_sign: char) -> Option<Option<&str>> {
    let trimmed = line.trim_start();
    if is_label(line) {
        None
    } else if trimmed.starts_with(actual_sign) || trimmed.starts_with("?") || trimmed.starts_with("@@") {
        Some(None)
    } else if let Some(rest) = trimmed.strip_prefix(['+', '-']) {
        Some(Some(rest))
    } else if line.starts_with(' ') || line.is_empty() {
        Some(Some(trimmed))
    } else {
        None
    }
}

/// pytest's `where 3 = len(x)`: the left side is the actual value, the expression is the check.
fn where_clause(reason: &str) -> Option<String> {
    let reason = reason.trim_start();
    let word = ["where ", "and "]
        .into_iter()
        .find(|word| reason.starts_with(word))?;
    let (_, expression) = reason.split_once(" = ")?;
    Some(format!("{word}{VALUE} = {expression}"))
}

/// One line with the actual value of a sentence masked.
fn inline(line: &str) -> String {
    let line = FLAT_DIFF
        .find(line)
        .map_or(line, |diff| line.get(..diff.start()).unwrap_or_default());
    let line = python_assert(line)
        .or_else(|| unequal_literals(line))
        .unwrap_or_else(|| subject(line));
    keywords(&line)
}

/// `assert 'a' == 'b'`: the left side is actual; in `assert 'a' in text` the right one.
fn python_assert(line: &str) -> Option<String> {
    let at = if line.trim_start().starts_with("assert ") {
        line.find("assert ")?
    } else {
        line.find(": assert ")? + 2
    };
    let (before, statement) = line.split_at(at + "assert ".len());
    let operators = [
        " == ", " != ", " is not ", " is ", " not in ", " in ", " <= ", " >= ", " < ", " > ",
    ];
    let (at, operator) = value::top_level(statement, &operators)?;
    let (left, rest) = statement.split_at(at);
    Some(if operator.ends_with("in ") {
        format!("{before}{left}{operator}{VALUE}")
    } else {
        format!("{before}{VALUE}{rest}")
    })
}

/// `'a' != 'b' : message`, as unittest prints two literals.
fn unequal_literals(line: &str) -> Option<String> {
    let start = line.find("Error: ").map_or(0, |at| at + "Error: ".len());
    let (before, statement) = line.split_at(start);
    let (at, operator) = value::top_level(
        statement,
        &[
            " !== ",
            " === ",
            " != ",
            " == ",
            " not found in ",
            " unexpectedly found in ",
        ],
    )?;
    let (left, rest) = statement.split_at(at);
    if !value::is_literal(left) {
        return None;
    }
    if operator.ends_with("in ") {
        let right = rest.get(operator.len()..)?;
        let after = right.get(value::length(right)..)?;
        return Some(format!("{before}{left}{operator}{VALUE}{after}"));
    }
    let indent = left.len() - left.trim_start().len();
    Some(format!("{before}{}{VALUE}{rest}", left.get(..indent)?))
}

/// The line with the value between an opening word and a verb masked.
fn subject(line: &str) -> String {
    for (opening, verb) in &*SUBJECT {
        let Some(start) = opening.captures(line).and_then(|captures| captures.get(1)) else {
            continue;
        };
        let (before, rest) = line.split_at(start.start());
        // A page's element is the subject of the check, not an actual value.
        if rest.starts_with("'<")
            || rest.starts_with(VALUE)
            || rest.starts_with("two ")
            || rest.starts_with("values ")
        {
            continue;
        }
        let skipped = if rest.starts_with(['"', '\'', '[', '{', '<']) {
            value::length(rest)
        } else {
            1
        };
        let skipped = rest
            .char_indices()
            .map(|(at, _)| at)
            .find(|at| *at >= skipped)
            .unwrap_or(rest.len());
        let Some(verb) = verb.find_at(rest, skipped) else {
            continue;
        };
        return format!("{before}{VALUE}{}", rest.get(verb.start()..).unwrap_or_default());
    }
    line.to_owned()
}

fn keywords(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(word) = INLINE.find(rest) {
        let (before, after) = rest.split_at(word.end());
        out.push_str(before);
        rest = after;
        let mut first = after.chars();
        let structured = first
            .next()
            .is_some_and(|c| c.is_ascii_digit() || matches!(c, '"' | '\'' | '`' | '<' | '[' | '{'));
        let counts = !PLAIN_WORD.is_match(word.as_str()) || structured || EXPECTATION.is_match(line);
        // `expect(received)` is a placeholder, not a value.
        let is_placeholder = before
            .strip_suffix(word.as_str())
            .is_some_and(|head| head.ends_with('('))
            || after.starts_with(')');
        if after.is_empty() || !counts || is_placeholder || after.starts_with(VALUE) {
            continue;
        }
        out.push_str(VALUE);
        rest = after.get(value::length(after)..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}
