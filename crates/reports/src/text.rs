//! Texts of reports made fit to store: clean, bounded, joined.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

use crate::limits;

/// The text without ANSI escape sequences and control characters other than line breaks and tabs; line ends are
/// `\n`.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if is_plain(text.as_bytes()) || !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => kept.push('\n'),
            '\n' | '\t' => kept.push(c),
            c if c.is_control() => {}
            c => kept.push(c),
        }
    }
    Cow::Owned(kept)
}

/// Whether a text surely has no control characters: most have none, and none of the bytes that one begins with.
fn is_plain(bytes: &[u8]) -> bool {
    // Names are short and of printable ASCII: eight bytes at once, without a loop for what is left over.
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let printable = |bytes: [u8; 8]| {
        let eight = u64::from_ne_bytes(bytes);
        let below_space = eight.wrapping_sub(ONES * 0x20) & !eight;
        let above_tilde = eight.wrapping_add(ONES) | eight;
        (below_space | above_tilde) & (ONES * 0x80) == 0
    };
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut last = [b' '; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    if printable(last) && eights.iter().all(|eight| printable(*eight)) {
        return true;
    }
    // Every control character begins with one of these bytes, 0xC2 among others.
    let suspect = |byte: u8| matches!(byte, 0..=8 | 11..=31 | 127 | 0xc2);
    // Without a way out of the loop, so that it runs over many bytes at once.
    !bytes.iter().fold(false, |any, byte| any | suspect(*byte))
}

/// A message, stack or code frame fit to store: clean, without blank lines around it, at most `most` characters (its
/// head and its tail are kept); none where nothing is left.
pub(crate) fn stored(text: &str, most: usize) -> Option<String> {
    let clean = clean(text);
    let text = trim_lines(&clean);
    if text.trim().is_empty() {
        None
    } else {
        Some(bounded(text, most).into_owned())
    }
}

/// A message fit to store.
pub(crate) fn message(text: &str) -> Option<String> {
    stored(text, limits::MESSAGE)
}

/// A stack trace fit to store.
pub(crate) fn stack(text: &str) -> Option<String> {
    stored(text, limits::STACK)
}

/// A code frame fit to store.
pub(crate) fn snippet(text: &str) -> Option<String> {
    stored(text, limits::SNIPPET)
}

/// A title, branch or other single value fit to store: clean, bounded; none where nothing is left. Spaces around it
/// belong to it.
pub(crate) fn title(text: &str) -> Option<String> {
    let clean = clean(text);
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
        let part = clean(part);
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
        identifying(&name).into_owned()
    }
}

/// At most [`limits::NAME`] characters of a name or path. A longer one keeps its head, its tail and a hash of the whole,
/// so that two long names stay two.
pub(crate) fn identifying(name: &str) -> Cow<'_, str> {
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
    let kept = limits::NAME - note.chars().count();
    let tail = limits::NAME / 4;
    let (head_end, tail_start) = ends(name, kept - tail, tail);
    Cow::Owned(format!(
        "{}{note}{}",
        name.get(..head_end).unwrap_or_default(),
        name.get(tail_start..).unwrap_or_default()
    ))
}

/// Whether [`identifying`] shortened a name or path.
pub(crate) fn is_shortened(name: &str) -> bool {
    name.len() > limits::NAME && name.contains(SHORTENED)
}

/// The note in a shortened name, up to the hash.
const SHORTENED: &str = "… (shortened; SHA-256 ";

/// The byte where the first `head` characters end, and the byte where the last `tail` begin.
fn ends(text: &str, head: usize, tail: usize) -> (usize, usize) {
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

/// Bytes that most names fit into.
const USUAL_NAME: usize = 64;

/// What a test is called whose report gives it no name at all.
const UNNAMED: &str = "(no name)";

/// At most about `most` characters of the text: where it is longer, its head and tail around a note of what is gone.
pub(crate) fn bounded(text: &str, most: usize) -> Cow<'_, str> {
    // Bytes are never fewer than characters.
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let characters = text.chars().count();
    if characters <= most {
        return Cow::Borrowed(text);
    }
    let tail = most / 4;
    let head = most - tail;
    let (head_end, tail_start) = ends(text, head, tail);
    Cow::Owned(format!(
        "{}… ({} characters left out) …{}",
        text.get(..head_end).unwrap_or_default(),
        characters - most,
        text.get(tail_start..).unwrap_or_default()
    ))
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

/// Skips what follows an escape character: a control sequence, an operating system command, or one character.
fn skip_escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_control_sequence(rest);
        }
        Some(']') => {
            // Ends with a bell or with escape and backslash; a line break means that it never was one.
            while let Some(c) = rest.next_if(|c| *c != '\n') {
                if c == '\u{7}' || c == '\u{9c}' || (c == '\u{1b}' && rest.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        Some('(' | ')') => {
            rest.next();
            rest.next_if(char::is_ascii_alphanumeric);
        }
        Some('=' | '>' | '7' | '8' | 'c' | 'M') => {
            rest.next();
        }
        _ => {}
    }
}

fn skip_control_sequence(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while rest.next_if(|c| matches!(c, '\u{20}'..='\u{3f}')).is_some() {}
    rest.next_if(|c| matches!(c, '\u{40}'..='\u{7e}'));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_control_characters_go() {
        assert_eq!(
            clean("\u{1b}[31m\u{1b}[1mred\u{1b}[22m\u{1b}[39m \u{7}bell\0 nul"),
            "red bell nul"
        );
        assert_eq!(clean("a\r\nb\rc\td"), "a\nb\nc\td");
        assert_eq!(
            clean("\u{1b}]8;;https://x\u{7}link\u{1b}]8;;\u{1b}\\ \u{9b}1mbold"),
            "link bold"
        );
        assert_eq!(clean("cut \u{1b}["), "cut ");
        assert!(matches!(clean("plain ✓ text"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_texts_keep_their_head_and_tail() {
        let text = format!("head{}tail", "é".repeat(1000));
        let kept = bounded(&text, 100);
        assert!(kept.starts_with("headéé") && kept.ends_with("éétail"), "{kept}");
        assert!(kept.contains("(908 characters left out)"), "{kept}");
        assert_eq!(bounded("éé", 2), "éé");
    }

    #[test]
    fn long_names_with_the_same_head_and_tail_stay_two() {
        let name = |middle: &str| format!("{}{middle}{}", "head ".repeat(500), " tail".repeat(500));
        let (one, other) = (name("é"), name("è"));
        let (kept, kept_of_other) = (identifying(&one), identifying(&other));
        assert_ne!(kept, kept_of_other);
        assert_eq!(kept, identifying(&one));
        assert_eq!(kept.chars().count(), limits::NAME);
        assert!(
            kept.starts_with("head head ") && kept.ends_with(" tail tail"),
            "{kept}"
        );
        assert!(is_shortened(&kept) && !is_shortened(&one));
        // A store takes 8,000 bytes.
        assert!(identifying(&"😀".repeat(3_000)).len() <= 8_000);
        let fits = "😀".repeat(limits::NAME);
        assert_eq!(identifying(&fits), fits);
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
