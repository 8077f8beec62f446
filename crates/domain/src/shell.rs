//! Texts in the commands that the product shows.

/// A text as one word of a POSIX shell, in single quotes.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
