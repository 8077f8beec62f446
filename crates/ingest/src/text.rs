//! Texts that come from outside: what is allowed, and what becomes of the rest.

/// Longest name of an organization or a project, and longest branch that a filter can ask for, in characters.
const LONGEST_NAME: usize = 200;

/// Why a text that the user gave is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadText {
    /// Nothing, or only spaces.
    #[error("expected at least one character that is not a space")]
    Empty,
    /// Too long.
    #[error("expected at most {limit} characters, this has {length}")]
    TooLong {
        /// The limit in characters.
        limit: usize,
        /// What was given.
        length: usize,
    },
    /// A line break, tab or another control character.
    #[error("expected no control characters (line breaks and tabs included)")]
    Control,
}

/// A name of an organization, a project or a branch: 1 to 200 characters on one line.
pub fn name(text: &str) -> Result<String, BadText> {
    one_line(text, LONGEST_NAME)
}

/// A text on one line: 1 to `limit` characters without control characters; spaces at its ends are cut off.
pub fn one_line(text: &str, limit: usize) -> Result<String, BadText> {
    let text = text.trim_matches(' ');
    if text.trim().is_empty() {
        return Err(BadText::Empty);
    }
    if text.chars().any(char::is_control) {
        return Err(BadText::Control);
    }
    let length = text.chars().count();
    if length > limit {
        return Err(BadText::TooLong { limit, length });
    }
    Ok(text.to_owned())
}

/// A text that a report or CI gave, made storable: control characters other than line breaks and tabs removed, cut
/// to `limit` characters. None where nothing is left.
pub(crate) fn tidy(text: &str, limit: usize) -> Option<String> {
    let kept: String = text
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .take(limit)
        .collect();
    let kept = kept.trim();
    (!kept.is_empty()).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_of_limited_length() {
        assert_eq!(name(" shop / web "), Ok("shop / web".to_owned()));
        assert_eq!(name("  "), Err(BadText::Empty));
        assert_eq!(name("a\u{0}b"), Err(BadText::Control));
        assert_eq!(name("a\nb"), Err(BadText::Control));
        assert_eq!(name(&"é".repeat(200)).map(|name| name.chars().count()), Ok(200));
        assert_eq!(
            name(&"é".repeat(201)),
            Err(BadText::TooLong {
                limit: 200,
                length: 201
            })
        );
    }

    #[test]
    fn foreign_text_is_made_storable_rather_than_refused() {
        assert_eq!(
            tidy("fix\u{0} it\r\n\nbody\u{1b}", 100).as_deref(),
            Some("fix it\n\nbody")
        );
        assert_eq!(tidy("abcdef", 3).as_deref(), Some("abc"));
        assert_eq!(tidy(" \u{0} ", 3), None);
    }
}
