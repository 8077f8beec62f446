//! Finds the end of a printed value: quotes, brackets, or the words that follow it.

/// Words and marks that end a value without quotes or brackets.
const ENDS: [&str; 14] = [
    ", want",
    ", expected",
    ", but",
    "; ",
    " want ",
    " want:",
    " wanted ",
    " instead",
    " (compared",
    "  ",
    ". ",
    " Timeout:",
    " Expected",
    ", not ",
];

/// The length in bytes of the value at the start of `text`; the whole length if there is none.
pub(crate) fn length(text: &str) -> usize {
    match text.chars().next() {
        Some(quote @ ('"' | '\'' | '`')) => quoted_length(text, quote).unwrap_or(text.len()),
        Some('<') => angled_length(text),
        Some('[' | '{' | '(') => bracketed_length(text).unwrap_or(text.len()),
        Some('#') if text.starts_with("#<") => angled_length(text),
        _ => ENDS
            .iter()
            .filter_map(|end| text.find(end))
            .min()
            .unwrap_or(text.len()),
    }
}

/// Whether `text` is a value that continues on the next line: a quote or bracket is open.
pub(crate) fn is_open(text: &str) -> bool {
    match text.chars().next() {
        Some(quote @ ('"' | '\'' | '`')) => quoted_length(text, quote).is_none(),
        Some('[' | '{' | '(') => bracketed_length(text).is_none(),
        Some(_) => text.ends_with(['{', '[', '(']),
        None => false,
    }
}

/// Whether `text` consists of one literal: quoted, bracketed or a number.
pub(crate) fn is_literal(text: &str) -> bool {
    let text = text.trim();
    match text.chars().next() {
        Some('"' | '\'' | '`' | '[' | '{' | '(' | '<') => length(text) == text.len(),
        Some(first) => {
            matches!(
                text,
                "None" | "True" | "False" | "null" | "nil" | "undefined" | "true" | "false"
            ) || (first.is_ascii_digit() || first == '-') && !text.contains(' ')
                || (text.starts_with("b'") || text.starts_with("b\"")) && !text.contains(' ')
        }
        None => false,
    }
}

/// The first of `operators` outside of quotes and brackets: its byte and its index.
pub(crate) fn top_level<'o>(text: &str, operators: &[&'o str]) -> Option<(usize, &'o str)> {
    let mut depth = 0_u32;
    let mut chars = text.char_indices();
    while let Some((at, next)) = chars.next() {
        let rest = text.get(at..)?;
        if depth == 0
            && let Some(operator) = operators.iter().find(|operator| rest.starts_with(**operator))
        {
            return Some((at, operator));
        }
        match next {
            '"' | '\'' => {
                // An apostrophe inside a word does not open a quote.
                let after_word = text.get(..at)?.ends_with(|c: char| c.is_alphanumeric());
                if !(next == '\'' && after_word)
                    && let Some(end) = quoted_length(rest, next)
                {
                    while chars.offset() < at + end && chars.next().is_some() {}
                }
            }
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The length of the quoted text at the start, both quotes included.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if next == quote => return Some(at + next.len_utf8()),
            _ => {}
        }
    }
    None
}

/// The length of `<…>` at the start, up to the first `>` that ends the value.
fn angled_length(text: &str) -> usize {
    text.match_indices('>')
        .map(|(at, _)| at + 1)
        .find(|end| {
            text.get(*end..).is_none_or(|rest| {
                rest.is_empty() || rest.starts_with([' ', '.', ',', ';', ':', ')', '\'', '"'])
            })
        })
        .unwrap_or(text.len())
}

/// The length of the bracketed text at the start.
fn bracketed_length(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut chars = text.char_indices();
    while let Some((at, next)) = chars.next() {
        match next {
            '"' => {
                if let Some(end) = quoted_length(text.get(at..)?, next) {
                    while chars.offset() < at + end && chars.next().is_some() {}
                }
            }
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, value: &str) {
        assert_eq!(text.get(..length(text)), Some(value), "{text}");
    }

    #[test]
    fn a_value_ends_where_its_quote_or_bracket_does() {
        check(r#""a \" b" and more"#, r#""a \" b""#);
        check("{a: [1, \"}\"]} rest", "{a: [1, \"}\"]}");
        check("<a<b>> then", "<a<b>>");
        check("1250, want 1350", "1250");
        check("\"never closed", "\"never closed");
        check("", "");
    }

    #[test]
    fn operators_inside_values_are_ignored() {
        assert_eq!(top_level("'a == b' == c", &[" == "]), Some((8, " == ")));
        assert_eq!(top_level("f(x == y) != z", &[" == ", " != "]), Some((9, " != ")));
        assert_eq!(top_level("it's x == y", &[" == "]), Some((6, " == ")));
        assert_eq!(top_level("ü [ == ", &[" == "]), None);
    }
}
