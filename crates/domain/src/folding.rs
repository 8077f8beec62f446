//! Case-insensitive comparison of texts, for searches and for the order of branches.

/// The text with each character replaced by its simple case folding, as defined by Unicode 16.
///
/// Simple folding depends on the character alone, so the folded text contains the fold of each of its parts. Lower case
/// does not have this property: it writes a sigma at the end of a word differently.
pub fn fold(text: &str) -> String {
    let fold = |char| {
        let folded = unicode_case_mapping::case_folded(char);
        folded.and_then(|code| char::from_u32(code.get())).unwrap_or(char)
    };
    text.chars().map(fold).collect()
}

/// Whether the text contains another one that is already folded.
pub fn contains_folded(text: &str, folded: &str) -> bool {
    if !text.is_ascii() {
        return fold(text).contains(folded);
    }
    // Searches look through 100,000 names, and most are ASCII. Folding such a text only lowers its letters.
    let (text, folded) = (text.as_bytes(), folded.as_bytes());
    folded.is_empty()
        || text
            .windows(folded.len())
            .any(|part| part.eq_ignore_ascii_case(folded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_does_not_matter_in_any_script_or_place() {
        for (text, search) in [
            ("ΟΔΟΣΑ", "ΟΔΟΣ"),
            ("οδοσα", "ΟΔΟΣ"),
            ("Ὀδυσσεύς", "ὈΔΥΣΣΕΎΣ"),
            ("Checkout > PAYS", "checkout > pays"),
            ("STRAẞE", "straße"),
            ("\u{212a}elvin", "KELVIN"),
        ] {
            assert!(contains_folded(text, &fold(search)), "{text} {search}");
        }
    }

    #[test]
    fn a_text_of_ascii_is_folded_like_any_other() {
        let texts = ["", "Checkout > PAYS", "[x] Z{z} @`", "s\u{17f}"];
        for text in texts {
            for search in [
                "",
                "checkout",
                "pays",
                "z{Z",
                "@`",
                "[X",
                "\u{17f}",
                "\u{212a}",
                "checkout > pays now",
            ] {
                let search = fold(search);
                assert_eq!(
                    contains_folded(text, &search),
                    fold(text).contains(&search),
                    "{text} {search}"
                );
            }
        }
    }

    #[test]
    fn different_letters_stay_different() {
        for (text, search) in [("strasse", "straße"), ("İ", "i"), ("e\u{301}", "é")] {
            assert!(!contains_folded(text, &fold(search)), "{text} {search}");
        }
    }
}
