//! Makes text of reports safe to show to an agent, and short enough for its context.

use assay_domain::plain::plain;

/// Removes invisible characters: escape sequences, control characters except line breaks and tabs, zero-width,
/// bidirectional and tag characters. Such characters can hide instructions from a person who reviews an agent's input.
pub(crate) fn visible(text: &str) -> String {
    let mut visible_text = plain(text).into_owned();
    visible_text.retain(|character| matches!(character, '\n' | '\t') || !is_hidden(character));
    visible_text
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// Keeps at most `limit` characters: the first two thirds and the end. The number of omitted characters is between
/// them. None if the text is not longer.
pub(crate) fn shorten(text: &str, limit: usize) -> Option<String> {
    let length = text.chars().count();
    if length <= limit {
        return None;
    }
    let head = limit * 2 / 3;
    let tail = limit.saturating_sub(head);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    Some(format!("{start} […{} characters…] {end}", length - head - tail))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_are_removed_and_others_stay() {
        for (text, expected) in [
            ("plain\n\ttext é 日本 🎉", "plain\n\ttext é 日本 🎉"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("a\u{1b}[38;5;1mb", "ab"),
            ("a\u{9b}31mred", "ared"),
            ("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{7}", "link"),
            ("bell\u{7}, return\r", "bell, return\n"),
            ("zero\u{200b}width\u{feff}", "zerowidth"),
            ("\u{202e}reversed\u{2066}", "reversed"),
            ("tags\u{e0049}\u{e007f}", "tags"),
        ] {
            assert_eq!(visible(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(shorten("abcdef", 6), None);
        assert_eq!(
            shorten("abcdefghi", 6).as_deref(),
            Some("abcd […3 characters…] hi")
        );
    }

    proptest! {
        #[test]
        fn visible_characters_stay(text in any::<String>()) {
            let once = visible(&text);
            let hidden = once.chars().filter(|&character| is_hidden(character) && !"\n\t".contains(character));
            prop_assert_eq!(hidden.count(), 0);
            prop_assert_eq!(visible(&once), once.clone());
        }
    }
}
