//! Finds the end of markup and the attributes of an element.

use memchr::{memchr, memmem};

use crate::limits;

/// The beginning of an element, from its `<` to its `>`.
pub(super) struct Beginning<'a> {
    /// The element's name as it is written.
    pub(super) name: &'a str,
    /// Whether the element has no content.
    pub(super) closes: bool,
    /// The byte behind the `>`.
    pub(super) end: usize,
}

impl<'a> Beginning<'a> {
    /// Reads the beginning of an element whose `<` is at a byte of the text, in one pass, and adds its attributes. None
    /// if it has no end. A `>` between quotes never ends it.
    pub(super) fn read(text: &'a str, at: usize, attributes: &mut Vec<(&'a str, &'a str)>) -> Option<Self> {
        let bytes = text.as_bytes();
        let closing = |quote: u8, at: usize| Some(at + memchr(quote, bytes.get(at..)?)?);
        let start = at + 1;
        let mut at = position_from(bytes, start, |byte| is_space(byte) || matches!(byte, b'>' | b'/'))?;
        let name = text.get(start..at)?;
        loop {
            at = position_from(bytes, at, |byte| !is_space(byte))?;
            match *bytes.get(at)? {
                b'>' => break,
                quote @ (b'"' | b'\'') => at = closing(quote, at + 1)? + 1,
                b'=' | b'/' => at += 1,
                _ => {
                    let key = at;
                    at = position_from(bytes, at, |byte| ends_value(byte) || byte == b'=')?;
                    let key = text.get(key..at)?;
                    at = position_from(bytes, at, |byte| !is_space(byte))?;
                    if bytes.get(at) != Some(&b'=') {
                        continue;
                    }
                    at = position_from(bytes, at + 1, |byte| !is_space(byte))?;
                    match *bytes.get(at)? {
                        quote @ (b'"' | b'\'') => {
                            let end = closing(quote, at + 1)?;
                            if attributes.len() < limits::ATTRIBUTES {
                                attributes.push((key, text.get(at + 1..end)?));
                            }
                            at = end + 1;
                        }
                        // Not an attribute: its value has no quotes.
                        _ => at = position_from(bytes, at, ends_value)?,
                    }
                }
            }
        }
        Some(Self {
            name,
            closes: bytes.get(at - 1) == Some(&b'/'),
            end: at + 1,
        })
    }
}

/// The index of the first byte from `from` on for which `accept` holds.
fn position_from(bytes: &[u8], from: usize, accept: impl Fn(u8) -> bool) -> Option<usize> {
    Some(from + bytes.get(from..)?.iter().position(|byte| accept(*byte))?)
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a byte ends a value without quotes.
const fn ends_value(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'>' | b'"' | b'\'')
}

/// The length of the comment, instruction or declaration at the beginning of a text; none if it has no end.
pub(super) fn other_markup_length(text: &[u8]) -> Option<usize> {
    let after = |end: &[u8], from: usize| {
        let length = memmem::find(text.get(from..)?, end)?;
        Some(from + length + end.len())
    };
    if text.starts_with(b"<!--") {
        after(b"-->", 4)
    } else if text.starts_with(b"<?") {
        after(b"?>", 2)
    } else {
        declaration(text)
    }
}

/// The length of a document type, which may contain declarations, comments and instructions.
fn declaration(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (1, 1usize);
    loop {
        let rest = text.get(at..)?;
        match *rest.first()? {
            quote @ (b'"' | b'\'') => at += 2 + memchr(quote, rest.get(1..)?)?,
            b'<' if rest.starts_with(b"<!--") || rest.starts_with(b"<?") => at += other_markup_length(rest)?,
            b'<' => {
                depth += 1;
                at += 1;
            }
            b'>' => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
}
