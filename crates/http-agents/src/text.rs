//! Makes text of reports safe to show to an agent, and short enough for its context.

use assay_domain::plain::{is_invisible, plain};

/// Removes escape sequences and invisible characters except line breaks and tabs. Such characters can hide instructions
/// from a person who reviews an agent's input.
pub(crate) fn visible(text: &str) -> String {
    let mut visible_text = plain(text).into_owned();
    visible_text.retain(|character| matches!(character, '\n' | '\t') || !is_invisible(character));
    visible_text
}

/// Keeps at most `limit` characters: the first two thirds and the end. The number of omitted characters is between
/// them. None if the text is not longer, or only by less than that number takes.
pub(crate) fn shorten(text: &str, limit: usize) -> Option<String> {
    let length = text.chars().count();
    if length <= limit {
        return None;
    }
    let head = limit * 2 / 3;
    let tail = limit.saturating_sub(head);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    let shortened = format!("{start} […{} characters…] {end}", length - head - tail);
    (shortened.chars().count() < length).then_some(shortened)
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
            ("selected\u{fe0f}\u{e0100}\u{e01ef}", "selected"),
            ("filled\u{3164}\u{115f}\u{1160}\u{ffa0}\u{2800}", "filled"),
        ] {
            assert_eq!(visible(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(shorten("abcdef", 6), None);
        // The mark is longer than what it replaces.
        assert_eq!(shorten("abcdefghi", 6), None);
        let long = format!("abcd{}hi", "e".repeat(30));
        assert_eq!(shorten(&long, 6).as_deref(), Some("abcd […30 characters…] hi"));
    }

    proptest! {
        #[test]
        fn visible_characters_stay(text in any::<String>()) {
            let once = visible(&text);
            let hidden = once.chars().filter(|&character| is_invisible(character) && !"\n\t".contains(character));
            prop_assert_eq!(hidden.count(), 0);
            prop_assert_eq!(visible(&once), once.clone());
        }
    }
}
