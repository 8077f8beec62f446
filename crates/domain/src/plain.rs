//! Removes escape sequences and control characters from texts of reports.

use std::{borrow::Cow, iter::Peekable, str::Chars};

/// Whether a character is a control character other than a line break and a tab.
pub fn is_removable(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// Whether a character takes no visible place. Such characters can hide text from a person, or make two texts look alike.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || INVISIBLE
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&c))
}

/// The ranges of Unicode's property Default_Ignorable_Code_Point (DerivedCoreProperties.txt of Unicode 16), the line and
/// paragraph separators, interlinear annotations with the object replacement character, and the blank Braille pattern.
const INVISIBLE: [(char, char); 20] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fff8}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{fffc}', '\u{fffc}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// The text without ANSI escape sequences and control characters other than line breaks and tabs; line ends are
/// `\n`.
pub fn plain(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut plain_text = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => plain_text.push('\n'),
            c if is_removable(c) => {}
            c => plain_text.push(c),
        }
    }
    Cow::Owned(plain_text)
}

/// Whether a text has no control characters other than line breaks and tabs.
fn is_plain(text: &str) -> bool {
    // Every control character begins with one of these bytes. 0xC2 also begins other characters.
    let is_suspect = |byte: u8| matches!(byte, 0..=8 | 11..=31 | 127 | 0xc2);
    // The loop has no early exit, so that the compiler can check many bytes at once. Most texts are plain.
    let is_suspicious = text.bytes().fold(false, |any, byte| any | is_suspect(byte));
    !is_suspicious || !text.chars().any(is_removable)
}

/// Skips the rest of an escape sequence: a control sequence, an operating system command, or one character.
fn skip_escape(rest: &mut Peekable<Chars<'_>>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_control_sequence(rest);
        }
        Some(']') => {
            // It ends with a bell, U+009C, or escape and backslash. A line break ends it too, so that an unfinished
            // command does not hide the following lines.
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

/// Skips the rest of a control sequence: its parameters and the final character.
pub fn skip_control_sequence(rest: &mut Peekable<impl Iterator<Item = char>>) {
    while rest.next_if(|c| matches!(c, '\u{20}'..='\u{3f}')).is_some() {}
    rest.next_if(|c| matches!(c, '\u{40}'..='\u{7e}'));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_control_characters_go() {
        assert_eq!(
            plain("\u{1b}[31m\u{1b}[1mred\u{1b}[22m\u{1b}[39m \u{7}bell\0 nul"),
            "red bell nul"
        );
        assert_eq!(plain("a\r\nb\rc\td"), "a\nb\nc\td");
        assert_eq!(
            plain("\u{1b}]8;;https://x\u{7}link\u{1b}]8;;\u{1b}\\ \u{9b}1mbold"),
            "link bold"
        );
        assert_eq!(plain("cut \u{1b}["), "cut ");
        assert!(matches!(plain("plain ✓ text"), Cow::Borrowed(_)));
    }
}
