//! Converts raw text to clean lines, without colours and control characters, up to a limit.
//!
//! These rules differ from [`assay_domain::plain::plain`], because stored fingerprints depend on them: every line end
//! splits a line, invisible marks are removed, and so is the character after an unknown escape.

use std::iter::Peekable;

use assay_domain::plain::skip_control_sequence;

use crate::literal;

/// Most characters of a raw text that are read. A longer text continues with stack or log lines.
const SCANNED_CHARS: usize = 65_536;

/// The lines of `raw` without ANSI sequences and control characters, with any line ends.
pub(crate) fn lines(raw: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut chars = raw.chars().take(SCANNED_CHARS).peekable();
    while let Some(next) = chars.next() {
        match next {
            '\u{1b}' => skip_escape(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => lines.push(String::new()),
            '\t' | '\u{a0}' => push(&mut lines, ' '),
            _ if is_noise(next) => {}
            _ => push(&mut lines, next),
        }
    }
    for line in &mut lines {
        if let Some(bare) = without_bare_colours(line) {
            *line = bare;
        }
    }
    lines
}

fn push(lines: &mut [String], next: char) {
    if let Some(line) = lines.last_mut() {
        line.push(next);
    }
}

/// Control characters, invisible marks, Jest's bullet and the replacement character.
fn is_noise(next: char) -> bool {
    next.is_control()
        || literal::is_stand_in(next)
        || matches!(
            next,
            '●' | '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{fffd}'
        )
}

/// Skips the rest of an escape sequence: `[…m` and similar, `]…BEL`, or one character.
fn skip_escape(chars: &mut Peekable<impl Iterator<Item = char>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']') => {
            while let Some(c) = chars.next_if(|c| !matches!(c, '\n' | '\r')) {
                if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        Some('\n' | '\r') | None => {}
        Some(_) => {
            chars.next();
        }
    }
}

/// The line without colours whose escape character an XML writer dropped (`[31m`) or spelled out (`\e[31m`).
fn without_bare_colours(line: &str) -> Option<String> {
    if !line.contains('[') {
        return None;
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    let mut changed = false;
    while let Some(at) = rest.find('[') {
        let (before, from) = rest.split_at(at);
        let code = from
            .bytes()
            .skip(1)
            .take(12)
            .take_while(|b| b.is_ascii_digit() || *b == b';')
            .count();
        if code > 0 && from.as_bytes().get(1 + code) == Some(&b'm') {
            out.push_str(
                before
                    .trim_end_matches("\\e")
                    .trim_end_matches("\\u001b")
                    .trim_end_matches("\\x1b"),
            );
            rest = from.get(code + 2..).unwrap_or_default();
            changed = true;
        } else {
            out.push_str(before);
            out.push('[');
            rest = from.get(1..).unwrap_or_default();
        }
    }
    out.push_str(rest);
    changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_control_characters_are_removed() {
        let raw = "\u{1b}[31mred\u{1b}[39m \u{7}bell\0\r\n\u{1b}]0;title\u{7}next\rlast [1m\\e[2mx";
        assert_eq!(lines(raw), ["red bell", "next", "last x"]);
    }

    #[test]
    fn an_unfinished_escape_sequence_removes_no_other_text() {
        assert_eq!(
            lines("a\u{1b}\nb\u{1b}[\nc\u{1b}]x\nd\u{1b}"),
            ["a", "b", "c", "d"]
        );
        assert_eq!(lines("[5m] [m [x"), ["] [m [x"]);
    }
}
