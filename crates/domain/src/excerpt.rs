//! Excerpts of long texts, for lists.

/// Most characters of an error message in a list. The attempts route shows whole messages.
pub const EXCERPT_CHARS: usize = 2_000;

/// Most entries of a list within a signature: tests, runs, names.
pub const MOST_ENTRIES: usize = 1_000;

/// The text, or its first [`EXCERPT_CHARS`] characters with `…` as the last one if it is longer.
///
/// A store may pass a text that is already cut. It must keep at least `EXCERPT_CHARS + 1` characters, so that this
/// function recognizes that the text is longer.
pub fn excerpt(mut text: String) -> String {
    if text.chars().nth(EXCERPT_CHARS).is_some() {
        let end = text.char_indices().nth(EXCERPT_CHARS - 1);
        text.truncate(end.map_or(0, |(end, _)| end));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_is_too_long_is_cut() {
        for fits in [String::new(), "é".repeat(EXCERPT_CHARS)] {
            assert_eq!(excerpt(fits.clone()), fits);
        }
        let cut = excerpt("é".repeat(EXCERPT_CHARS + 1));
        assert_eq!(cut, "é".repeat(EXCERPT_CHARS - 1) + "…");
    }
}
