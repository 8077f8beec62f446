//! Texts of reports in Markdown that a code host renders.

use assay_domain::plain::{is_invisible, plain};

/// Longest text of a report, in characters.
const LONGEST_TEXT: usize = 500;

/// A text of a report as a code span on one line, of at most 500 characters. No character can leave the span, hide
/// others or change the direction of the text. A zero-width space after `@` and `#` prevents mentions, links to issues
/// and commands in logs, because some services parse code spans.
pub fn code(text: &str) -> String {
    let text = one_line(text).replace('@', "@\u{200b}").replace('#', "#\u{200b}");
    let longest = longest_run(&text);
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A text of a report as a fenced block. Invisible characters, which could change the direction of the text, are replaced:
/// without them, ticks that they divide could close a fence within the text.
pub fn fenced(text: &str) -> String {
    let shown = |char: char| match char {
        '\n' | '\t' => char,
        char if is_invisible(char) => char::REPLACEMENT_CHARACTER,
        char => char,
    };
    let text: String = text.chars().map(shown).collect();
    let fence = "`".repeat((longest_run(&text) + 1).max(3));
    format!("{fence}text\n{}\n{fence}", text.trim_end())
}

/// A text of a report on one line without invisible characters, bounded. An empty text becomes a dash, because an empty
/// code span is none.
pub fn one_line(text: &str) -> String {
    let line: String = plain(text)
        .chars()
        .map(|char| match char {
            '\n' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            char => char,
        })
        .filter(|char| !is_invisible(*char))
        .take(LONGEST_TEXT)
        .collect();
    match line.trim() {
        "" => "–".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// The length of the longest run of backticks.
pub(crate) fn longest_run(text: &str) -> usize {
    text.split(|char| char != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_leave_its_code_span() {
        for (text, expected) in [
            ("pays", "`pays`"),
            ("a`b", "`` a`b ``"),
            ("``</code>", "``` ``</code> ```"),
            ("", "`–`"),
            ("@team fixes #12", "`@\u{200b}team fixes #\u{200b}12`"),
            ("##vso[task.complete]", "`#\u{200b}#\u{200b}vso[task.complete]`"),
            ("a\nb\u{202e}c\u{1b}[31md\u{e0041}", "`a bcd`"),
        ] {
            assert_eq!(code(text), expected);
        }
        assert_eq!(code(&"x".repeat(9_000)).len(), LONGEST_TEXT + 2);
    }

    #[test]
    fn a_text_cannot_close_its_fence() {
        assert_eq!(fenced("a\n````\nb\n"), "`````text\na\n````\nb\n`````");
        assert_eq!(
            fenced("``\u{200b}`\n\t\u{202e}b"),
            "```text\n``\u{fffd}`\n\t\u{fffd}b\n```"
        );
    }
}
