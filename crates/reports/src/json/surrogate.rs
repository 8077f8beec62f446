//! Lone surrogates: JavaScript cuts texts between the halves of a pair and writes the rest as `\ud83d`.

/// The text with U+FFFD for each lone surrogate; none if it has no lone surrogate.
pub(super) fn replaced(text: &str) -> Option<String> {
    let mut replaced_text = String::new();
    let mut copied_to = 0;
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += offset;
        match (unit(text, at), unit(text, at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at += 12,
            (Some(0xD800..=0xDFFF), _) => {
                replaced_text.push_str(text.get(copied_to..at)?);
                replaced_text.push_str("\\ufffd");
                at += 6;
                copied_to = at;
            }
            (Some(_), _) => at += 6,
            // Another escape. It may escape a backslash. A multi-byte character is not part of an escape.
            (None, _) => at += if text.is_char_boundary(at + 2) { 2 } else { 1 },
        }
    }
    (copied_to > 0).then(|| replaced_text + text.get(copied_to..).unwrap_or_default())
}

/// The UTF-16 unit of the escape at this byte.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    let hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    hexadecimal.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_pairs_are_not() {
        for (text, expected) in [
            (r#"["a \ud83d"]"#, Some(r#"["a \ufffd"]"#)),
            (r#"["\udc00 b \uD83D"]"#, Some(r#"["\ufffd b \ufffd"]"#)),
            (r#"["\ud83d\ud83d\ude00"]"#, Some(r#"["\ufffd\ud83d\ude00"]"#)),
            (r#"["\ud83d\u0041"]"#, Some(r#"["\ufffd\u0041"]"#)),
            (r#"["\ud83d\ude00"]"#, None),
            (r#"["\\ud83d"]"#, None),
            (r#"["\\\ud83d"]"#, Some(r#"["\\\ufffd"]"#)),
            (r#"["\é \u12 \"#, None),
            ("", None),
        ] {
            assert_eq!(replaced(text).as_deref(), expected, "{text}");
        }
    }
}
