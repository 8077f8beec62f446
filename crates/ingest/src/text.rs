//! Validates and cleans texts from outside.
//!
//! Unlike [`assay_domain::plain::plain`], this module keeps the visible part of an escape sequence, because stored run
//! keys depend on it.

use std::fmt::Write as _;

use assay_domain::{plain::is_removable, project::NAME_CHARS};
use sha2::{Digest as _, Sha256};

/// Longest address of a page, in characters.
const LONGEST_ADDRESS: usize = 2_000;

/// The reason why a text from the user is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadText {
    /// Empty, or only spaces.
    #[error("expected at least one character that is not a space")]
    Empty,
    /// Too long.
    #[error("expected at most {limit} characters, this has {length}")]
    TooLong {
        /// The limit in characters.
        limit: usize,
        /// The given length.
        length: usize,
    },
    /// A line break, tab or another control character.
    #[error("expected no control characters (line breaks and tabs included)")]
    Control,
    /// A name of git that means another commit each time.
    #[error("expected the id of a commit, as `git rev-parse HEAD` prints it")]
    MovingName,
}

/// A name of an organization, a project or a branch: 1 to 200 characters on one line.
pub fn name(text: &str) -> Result<String, BadText> {
    one_line(text, NAME_CHARS)
}

/// A text on one line: 1 to `limit` characters without control characters. Trims spaces.
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

/// The address of a page that a browser may open; none if the text is not such an address. An address with a user or a
/// password is refused, since everyone would see it.
pub(crate) fn web_address(text: &str) -> Option<String> {
    let text = text.trim();
    let (scheme, rest) = text.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_address = ["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
        && !host.is_empty()
        && !host.contains('@')
        && text.chars().count() <= LONGEST_ADDRESS
        && !text
            .chars()
            .any(|c| c.is_control() || c.is_whitespace() || matches!(c, '"' | '<' | '>' | '\\' | '`'));
    is_address.then(|| text.to_owned())
}

/// The name of a branch for storing: at most as long as a filter may be. A longer one is cut and ends with a hash of
/// the whole, so that different branches stay different.
pub(crate) fn branch(name: &str) -> String {
    const HASH: usize = 16;
    if name.chars().count() <= NAME_CHARS {
        return name.to_owned();
    }
    let mut beginning: String = name.chars().take(NAME_CHARS - HASH - 1).collect();
    beginning.push('~');
    for byte in Sha256::digest(name.as_bytes()).iter().take(HASH / 2) {
        // Writing to a String cannot fail.
        let _ = write!(beginning, "{byte:02x}");
    }
    beginning
}

/// A text of a report or of CI, ready for storing: without control characters other than line breaks and tabs, and cut
/// to `limit` characters. None if it is empty.
pub(crate) fn storable_text(text: &str, limit: usize) -> Option<String> {
    let storable: String = text.chars().filter(|c| !is_removable(*c)).take(limit).collect();
    let storable = storable.trim();
    (!storable.is_empty()).then(|| storable.to_owned())
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
    fn a_shortened_branch_is_a_valid_filter_and_stays_unique() {
        let long = |end: &str| format!("{}{end}", "é".repeat(480));
        assert_eq!(branch(&"é".repeat(200)), "é".repeat(200));
        let names = [branch(&long("1")), branch(&long("2")), branch(&"é".repeat(201))];
        for name in &names {
            assert_eq!(name.chars().count(), 200);
            assert!(name.starts_with(&"é".repeat(183)) && super::name(name).is_ok());
        }
        assert!(names[0] != names[1] && names[1] != names[2]);
        assert_eq!(names[0], branch(&long("1")));
    }

    #[test]
    fn foreign_text_is_made_storable_rather_than_refused() {
        assert_eq!(
            storable_text("fix\u{0} it\r\n\nbody\u{1b}", 100).as_deref(),
            Some("fix it\n\nbody")
        );
        assert_eq!(storable_text("abcdef", 3).as_deref(), Some("abc"));
        assert_eq!(storable_text(" \u{0} ", 3), None);
    }
}
