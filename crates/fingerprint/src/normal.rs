//! The normal form: the parts of an error that identify it.

use std::sync::LazyLock;

use regex::Regex;

use crate::{
    cut::{Cut, cut},
    frame, literal,
    mask::mask,
    origin,
    pattern::pattern,
    received, text,
};

/// Characters of the masked text that identify an error.
const COUNTED_CHARS: usize = 2_000;

/// The parts of an error that identify it. Two errors have the same signature if all four are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalForm {
    /// The matcher or API call that failed, else the exception type, else empty.
    pub origin: String,
    /// The masked locator of the page's element, if the text names one.
    pub locator: Option<String>,
    /// The masked text on one line, at most 2,000 characters, without the exception type.
    pub text: String,
    /// The first own frame of the stack, for an error without words of its own.
    pub frame: Option<String>,
    /// The first line of the masked text after the exception type, for the title.
    pub(crate) first_line: String,
    /// Whether `origin` is a matcher or API call.
    pub(crate) by_matcher: bool,
}

impl NormalForm {
    /// Whether the text is an exception type and nothing else.
    pub(crate) fn is_type(&self) -> bool {
        !self.text.contains(' ') && origin::exception_type(&format!("{}:", self.text)).is_some()
    }
}

/// The normal form of an error that consists of this message alone.
pub fn normal_form(message: &str) -> NormalForm {
    of_error(Some(message), None)
}

/// The normal form of an error's message and stack.
pub(crate) fn of_error(message: Option<&str>, stack: Option<&str>) -> NormalForm {
    let message_cut = message.map(cut).unwrap_or_default();
    let stack_cut = stack.map(cut).unwrap_or_default();
    let type_from_stack = type_of(&stack_cut);
    let text = if !stack_cut.is_hollow()
        && (message_cut.is_hollow() || contains_whole_matcher(&stack_cut, &message_cut))
    {
        stack_cut
    } else if message_cut.lines.is_empty() {
        // The text has only frames, so they are used.
        uncut(
            message
                .filter(|text| !text.trim().is_empty())
                .or(stack)
                .unwrap_or_default(),
            &message_cut,
        )
    } else {
        message_cut
    };
    let mut form = form(&text, type_from_stack);
    if is_bare(&form) {
        let frame = stack
            .and_then(frame::nearest_own)
            .or_else(|| message.and_then(frame::nearest_own));
        form.frame = frame.map(|frame| mask(&frame));
    }
    form
}

/// Whether the error looks like others of its type: `expected:<1> but was:<0>`, `TimeoutException`, `Failed`.
fn is_bare(form: &NormalForm) -> bool {
    let only_common = || {
        WORD.find_iter(&PLACEHOLDER.replace_all(&form.text, " "))
            .all(|word| COMMON.contains(&word.as_str().to_ascii_lowercase().as_str()))
    };
    form.locator.is_none() && (form.is_type() || only_common())
}

static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| pattern(r"<[a-z]{1,8}>"));
static WORD: LazyLock<Regex> = LazyLock::new(|| pattern(r"[\p{L}_]+"));
/// Words of assertions and time-outs that do not describe the check.
const COMMON: [&str; 71] = [
    "a",
    "actual",
    "after",
    "an",
    "and",
    "are",
    "assert",
    "asserting",
    "assertion",
    "assertionerror",
    "be",
    "been",
    "but",
    "came",
    "compared",
    "deep",
    "deeply",
    "did",
    "eq",
    "eql",
    "equal",
    "equality",
    "equals",
    "error",
    "exception",
    "expect",
    "expectation",
    "expected",
    "expecting",
    "fail",
    "failed",
    "failure",
    "false",
    "found",
    "got",
    "has",
    "have",
    "identical",
    "instead",
    "is",
    "it",
    "left",
    "loosely",
    "matches",
    "nil",
    "none",
    "not",
    "null",
    "object",
    "of",
    "out",
    "received",
    "right",
    "same",
    "should",
    "strictly",
    "that",
    "the",
    "these",
    "timed",
    "timeout",
    "to",
    "tobe",
    "toequal",
    "tostrictequal",
    "true",
    "undefined",
    "using",
    "values",
    "want",
    "was",
];

fn form(cut: &Cut, type_from_stack: Option<String>) -> NormalForm {
    let lines = &cut.lines;
    let first = lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(0);
    let own_type = lines.get(first).and_then(|line| origin::exception_type(line));
    let matcher = origin::matcher(lines);
    let by_matcher = matcher.is_some();
    let panic = cut.panicked.then(|| "panic".to_owned());
    let origin = matcher
        .or_else(|| own_type.map(|(name, _)| name.to_owned()))
        .or(panic)
        .or(type_from_stack)
        .unwrap_or_default();
    let locator = cut.locator.clone().or_else(|| origin::locator(lines));

    // Digits of the type are not values, so the type is removed before masking.
    let type_prefix = own_type.map_or("", |(_, end)| {
        lines
            .get(first)
            .and_then(|line| line.get(..end))
            .unwrap_or_default()
    });
    let mut rest = lines.get(first..).unwrap_or_default().to_vec();
    if let Some(line) = rest.first_mut() {
        line.drain(..type_prefix.len());
    }
    let masked: Vec<String> = received::mask(&rest)
        .iter()
        .map(|line| literal::restore(&mask(&literal::protect(line))))
        .collect();
    let text = one_line(&masked.join(" "));
    NormalForm {
        first_line: first_line(if by_matcher { "" } else { &origin }, &masked),
        origin: if by_matcher { mask(&origin) } else { origin },
        locator: locator.map(|locator| one_line(&mask(&locator))),
        text: text.chars().take(COUNTED_CHARS).collect(),
        frame: None,
        by_matcher,
    }
}

/// Whether a message is only the beginning of a failed matcher that the stack contains in full.
fn contains_whole_matcher(stack: &Cut, message: &Cut) -> bool {
    if origin::matcher(&message.lines).is_some() && message.lines.len() > 1 {
        return false;
    }
    let stack_text = one_line(&stack.lines.join(" "));
    let body = origin::exception_type(&stack_text).map_or(stack_text.as_str(), |(_, end)| {
        stack_text.get(end..).unwrap_or_default()
    });
    origin::matcher(&stack.lines).is_some()
        && body.trim_start().starts_with(&one_line(&message.lines.join(" ")))
}

/// The first line with text, after the exception type.
fn first_line(exception: &str, masked: &[String]) -> String {
    let first = masked
        .iter()
        .map(|line| one_line(line))
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    match (exception.is_empty(), first.is_empty()) {
        (true, _) => first,
        (false, true) => exception.to_owned(),
        (false, false) => format!("{exception}: {first}"),
    }
}

/// The exception type at the head of a stack after cutting.
fn type_of(stack: &Cut) -> Option<String> {
    let first = stack.lines.first()?;
    origin::exception_type(first).map(|(name, _)| name.to_owned())
}

/// The first line of the text before cutting.
fn uncut(raw: &str, cut: &Cut) -> Cut {
    Cut {
        lines: text::lines(raw)
            .iter()
            .map(|line| one_line(line))
            .filter(|line| !line.is_empty())
            .take(1)
            .collect(),
        locator: cut.locator.clone(),
        panicked: cut.panicked,
    }
}

/// `text` with every run of white space as one space.
fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}
