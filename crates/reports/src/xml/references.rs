//! Decodes XML's character and entity references.

use std::borrow::Cow;

use memchr::memchr;

/// Decodes the references of a raw value. A value without references is borrowed.
pub(crate) fn decode(raw: &str) -> Cow<'_, str> {
    // Most values have none. This search compares many bytes at once.
    if memchr(b'&', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    let (head, mut rest) = raw.split_once('&').unwrap_or((raw, ""));
    let mut text = String::with_capacity(raw.len());
    text.push_str(head);
    loop {
        match reference(rest) {
            Some((name, after)) => {
                push_reference(&mut text, name);
                rest = after;
            }
            None => text.push('&'),
        }
        match rest.split_once('&') {
            Some((plain, after)) => {
                text.push_str(plain);
                rest = after;
            }
            None => {
                text.push_str(rest);
                return Cow::Owned(text);
            }
        }
    }
}

/// Appends `more` to a text, if there is one. A text that was empty is not copied.
pub(crate) fn append<'t, 'a: 't>(text: impl Into<Option<&'t mut Cow<'a, str>>>, more: Cow<'a, str>) {
    match text.into() {
        Some(text) if text.is_empty() => *text = more,
        Some(text) => text.to_mut().push_str(&more),
        None => {}
    }
}

/// The name of the reference at the beginning of the text, after its ampersand, and the rest of the text.
fn reference(text: &str) -> Option<(&str, &str)> {
    const LONGEST: usize = 64;
    // A name contains neither spaces nor quotes nor another ampersand.
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"#._-:".contains(&byte) || !byte.is_ascii();
    let end = text.bytes().take(LONGEST).position(|byte| !in_name(byte))?;
    let after = text.get(end..)?.strip_prefix(';')?;
    (end > 0).then_some((text.get(..end)?, after))
}

/// Appends the value of `&name;`: a character, or the replacement character if XML forbids it. A name that only a
/// document type could define stays a reference.
fn push_reference(text: &mut String, name: &str) {
    let character = match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => name.strip_prefix('#').map(character),
    };
    match character {
        Some(character) => text.push(character),
        None => {
            text.push('&');
            text.push_str(name);
            text.push(';');
        }
    }
}

fn character(number: &str) -> char {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    code.ok()
        .and_then(char::from_u32)
        .filter(|character| match character {
            // XML forbids the escape character, too. It is kept so that colour sequences can be removed later.
            '\u{1b}' | '\t' | '\n' | '\r' => true,
            '\u{fffe}' | '\u{ffff}' => false,
            other => *other >= ' ',
        })
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_decoded_and_unknown_ones_kept() {
        for (raw, expected) in [
            ("plain", "plain"),
            ("a &lt;b&gt; &amp;&quot;&apos;", "a <b> &\"'"),
            ("&#65;&#x42;&#X43;", "ABC"),
            (
                "&#0;&#x1F;&#xFFFE;&#xD800;&#99999999999;&#;",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
            ("a&nbsp;b", "a&nbsp;b"),
            ("?a=1&b=2;c", "?a=1&b=2;c"),
            ("a & b; &&amp;", "a & b; &&"),
            ("tail &", "tail &"),
        ] {
            assert_eq!(decode(raw), expected, "{raw}");
        }
    }
}
