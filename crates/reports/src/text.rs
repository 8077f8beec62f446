//! Prepares texts of reports for storing: clean, bounded, joined.

use std::borrow::Cow;

use regex::Regex;
use sha2::{Digest as _, Sha256};

use crate::{limits, paths};

pub(crate) use assay_domain::plain::plain;

/// A message, stack or code frame ready for storing: clean, without blank lines around it. A text of more than
/// `max_chars` characters keeps its head and tail. None if it is empty.
pub(crate) fn stored(text: &str, max_chars: usize) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let clean = plain(text);
    let text = trim_lines(&clean);
    if text.trim().is_empty() {
        None
    } else {
        Some(bounded(text, max_chars).into_owned())
    }
}

/// A message ready for storing.
pub(crate) fn message(text: &str) -> Option<String> {
    stored(text, limits::MESSAGE)
}

/// A stack trace ready for storing.
pub(crate) fn stack(text: &str) -> Option<String> {
    stored(text, limits::STACK)
}

/// A code frame ready for storing.
pub(crate) fn snippet(text: &str) -> Option<String> {
    stored(text, limits::SNIPPET)
}

/// The reason why a test was skipped, ready for storing.
pub(crate) fn skip_reason(text: &str) -> Option<String> {
    stored(text, limits::SKIP_REASON)
}

/// A title, branch or other single value ready for storing: clean and bounded. None if it is empty. Spaces around it
/// are part of the value.
pub fn title(text: &str) -> Option<String> {
    let clean = plain(text);
    if clean.trim().is_empty() {
        None
    } else {
        Some(bounded(&clean, limits::NAME).into_owned())
    }
}

/// The full name of a test: its non-empty parts joined with ` > `, clean and bounded.
pub(crate) fn joined<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut name = String::with_capacity(USUAL_NAME);
    for part in parts {
        let part = with_slashes(plain(part));
        if part.trim_start().is_empty() {
            continue;
        }
        if !name.is_empty() {
            name.push_str(JOINT);
        }
        name.push_str(&part);
    }
    if name.is_empty() {
        UNNAMED.to_owned()
    } else if name.len() <= limits::NAME {
        name
    } else {
        shortened_name(&name).into_owned()
    }
}

/// A part of a name. Windows writes the path of a file with back slashes; its test is that of other systems.
fn with_slashes(part: Cow<'_, str>) -> Cow<'_, str> {
    if memchr::memchr(b'\\', part.as_bytes()).is_some() && paths::is_path(&part) {
        Cow::Owned(part.replace('\\', "/"))
    } else {
        part
    }
}

/// At most [`limits::NAME`] characters of a name or path. A longer one keeps its head, its tail and a hash of the
/// whole, so that two long names stay distinct.
pub(crate) fn shortened_name(name: &str) -> Cow<'_, str> {
    if name.len() <= limits::NAME {
        return Cow::Borrowed(name);
    }
    let characters = name.chars().count();
    if characters <= limits::NAME {
        return Cow::Borrowed(name);
    }
    let hash: String = Sha256::digest(name.as_bytes())
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let note = format!("{SHORTENED}{hash}) …");
    let remaining = limits::NAME - note.chars().count();
    let tail = limits::NAME / 4;
    let (head_end, tail_start) = cut_points(name, remaining - tail, tail);
    Cow::Owned(format!(
        "{}{note}{}",
        name.get(..head_end).unwrap_or_default(),
        name.get(tail_start..).unwrap_or_default()
    ))
}

/// Whether [`shortened_name`] shortened a name or path.
pub(crate) fn is_shortened(name: &str) -> bool {
    name.len() > limits::NAME && name.contains(SHORTENED)
}

/// The note in a shortened name, up to the hash.
const SHORTENED: &str = "… (shortened; SHA-256 ";

/// The byte where the first `head` characters end, and the byte where the last `tail` characters begin.
fn cut_points(text: &str, head: usize, tail: usize) -> (usize, usize) {
    let head_end = text.char_indices().nth(head).map_or(text.len(), |(at, _)| at);
    let tail_start = text
        .char_indices()
        .rev()
        .nth(tail.saturating_sub(1))
        .map_or(text.len(), |(at, _)| at);
    (head_end, tail_start)
}

/// The separator between the parts of a name.
pub(crate) const JOINT: &str = " > ";

/// Capacity in bytes that suffices for most names.
const USUAL_NAME: usize = 64;

/// The name of a test without any name in its report.
const UNNAMED: &str = "(no name)";

/// At most about `max_chars` characters of the text. A longer text keeps its head and tail around a note of the omitted
/// length.
pub(crate) fn bounded(text: &str, max_chars: usize) -> Cow<'_, str> {
    // A text never has fewer bytes than characters.
    if text.len() <= max_chars {
        return Cow::Borrowed(text);
    }
    let characters = text.chars().count();
    if characters <= max_chars {
        return Cow::Borrowed(text);
    }
    let tail = max_chars / 4;
    let head = max_chars - tail;
    let (head_end, tail_start) = cut_points(text, head, tail);
    Cow::Owned(format!(
        "{}… ({} characters left out) …{}",
        text.get(..head_end).unwrap_or_default(),
        characters - max_chars,
        text.get(tail_start..).unwrap_or_default()
    ))
}

/// A text of lines. A list of many short lines would take several times the memory of their text.
pub(crate) fn of_lines<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for (place, line) in lines.enumerate() {
        if place > 0 {
            text.push('\n');
        }
        text.push_str(line);
    }
    text
}

/// A constant pattern.
pub(crate) fn pattern(text: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "constant patterns, each compiled in a test")]
    Regex::new(text).expect("a valid pattern")
}

/// The first line of a text that is not blank, trimmed.
pub(crate) fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

/// The text without blank lines at its beginning and spaces at its end; the first line keeps its indentation.
fn trim_lines(text: &str) -> &str {
    let text = text.trim_end();
    let content = text.find(|c: char| !c.is_whitespace()).unwrap_or(0);
    let line = text
        .get(..content)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |at| at + 1);
    text.get(line..).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_keep_their_head_and_tail() {
        let text = format!("head{}tail", "é".repeat(1000));
        let shortened = bounded(&text, 100);
        assert!(
            shortened.starts_with("headéé") && shortened.ends_with("éétail"),
            "{shortened}"
        );
        assert!(shortened.contains("(908 characters left out)"), "{shortened}");
        assert_eq!(bounded("éé", 2), "éé");
    }

    #[test]
    fn long_names_with_the_same_head_and_tail_stay_two() {
        let name = |middle: &str| format!("{}{middle}{}", "head ".repeat(500), " tail".repeat(500));
        let (one, other) = (name("é"), name("è"));
        let (shortened, other_shortened) = (shortened_name(&one), shortened_name(&other));
        assert_ne!(shortened, other_shortened);
        assert_eq!(shortened, shortened_name(&one));
        assert_eq!(shortened.chars().count(), limits::NAME);
        assert!(
            shortened.starts_with("head head ") && shortened.ends_with(" tail tail"),
            "{shortened}"
        );
        assert!(is_shortened(&shortened) && !is_shortened(&one));
        // A store takes 8,000 bytes.
        assert!(shortened_name(&"😀".repeat(3_000)).len() <= 8_000);
        let fits = "😀".repeat(limits::NAME);
        assert_eq!(shortened_name(&fits), fits);
    }

    #[test]
    fn blank_texts_are_none_and_indentation_stays() {
        assert_eq!(message(" \n\u{1b}[0m\t"), None);
        assert_eq!(
            snippet("\n\n   12 | x\n > 13 | y\n\n").as_deref(),
            Some("   12 | x\n > 13 | y")
        );
    }

    #[test]
    fn names_join_their_parts_without_the_empty_ones() {
        assert_eq!(
            joined(["api", "", "cart > total", " x "]),
            "api > cart > total >  x "
        );
        assert_eq!(joined(["", "\0"]), "(no name)");
    }
}
