//! Reading XML as tools write it: without recursion, never expanding an entity, up to where the file is cut off.

use std::borrow::Cow;

use quick_xml::{
    Reader,
    errors::{Error, IllFormedError},
    events::{Event, attributes::Attributes},
};

use crate::{input::Input, limits, report::ReadError};

/// A walk over the nodes of a document.
pub(crate) struct Xml<'a> {
    input: Input<'a>,
    text: &'a str,
    reader: Reader<&'a [u8]>,
    format: &'static str,
    depth: usize,
    /// An element without content was opened and is to be closed.
    closes: bool,
}

/// What the walk meets.
pub(crate) enum Node<'a> {
    /// An element begins; a `Close` follows, also for one without content.
    Open(Tag<'a>),
    /// The innermost open element ends.
    Close,
    /// Text, with what its references stand for.
    Text(Cow<'a, str>),
    /// The document is whole and at its end.
    End,
    /// The document ends before it is whole.
    CutOff,
}

/// The beginning of an element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag<'a> {
    /// Its name without a namespace's prefix.
    pub(crate) name: &'a str,
    content: &'a str,
    name_length: usize,
}

impl<'a> Tag<'a> {
    /// The attributes in the order of the document: names as they are written, values still to be decoded. One that
    /// is no attribute is left out.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut attributes = Attributes::new(self.content, self.name_length);
        attributes.with_checks(false);
        attributes
            .filter_map(Result::ok)
            .filter_map(|attribute| match attribute.value {
                Cow::Borrowed(value) => Some((attribute.key.0, value)),
                // Unreachable: the iterator borrows from the content.
                Cow::Owned(_) => None,
            })
    }

    /// The decoded value of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        self.attributes()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| decode(value))
    }
}

impl<'a> Xml<'a> {
    /// Begins at the start of the input; `format` is for messages.
    pub(crate) fn new(input: &Input<'a>, format: &'static str) -> Self {
        // The reader takes a mark off without counting it.
        let text = input.text.trim_start_matches('\u{feff}');
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.allow_dangling_amp = true;
        config.check_comments = false;
        Self {
            input: *input,
            text,
            reader,
            format,
            depth: 0,
            closes: false,
        }
    }

    /// The next node. After `End` or `CutOff` there is none.
    pub(crate) fn next(&mut self) -> Result<Node<'a>, ReadError> {
        if self.closes {
            self.closes = false;
            self.depth = self.depth.saturating_sub(1);
            return Ok(Node::Close);
        }
        loop {
            let start = self.position();
            match self.reader.read_event() {
                Ok(Event::Start(tag)) => {
                    let length = tag.name().0.len();
                    return self.open(start, length);
                }
                Ok(Event::Empty(tag)) => {
                    let length = tag.name().0.len();
                    self.closes = true;
                    return self.open(start, length);
                }
                Ok(Event::End(_)) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(Node::Close);
                }
                Ok(Event::Text(text)) => return Ok(Node::Text(text.into_inner())),
                Ok(Event::CData(text)) => return Ok(Node::Text(text.into_inner())),
                Ok(Event::GeneralRef(reference)) => {
                    let mut text = String::new();
                    push_reference(&mut text, &reference);
                    return Ok(Node::Text(Cow::Owned(text)));
                }
                Ok(Event::Eof) if self.depth > 0 => return Ok(Node::CutOff),
                Ok(Event::Eof) => return Ok(Node::End),
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_))
                | Err(Error::IllFormed(
                    IllFormedError::MissingDeclVersion(_)
                    | IllFormedError::UnknownVersion
                    | IllFormedError::MissingDoctypeName
                    | IllFormedError::DoubleHyphenInComment
                    | IllFormedError::UnclosedReference,
                )) => {}
                Err(Error::Syntax(_) | Error::IllFormed(IllFormedError::MissingEndTag(_))) => {
                    return Ok(Node::CutOff);
                }
                Err(Error::IllFormed(IllFormedError::MismatchedEndTag { expected, found })) => {
                    return Err(self.broken_here(format!("expected </{expected}>, found </{found}>")));
                }
                Err(Error::IllFormed(IllFormedError::UnmatchedEndTag(found))) => {
                    return Err(
                        self.broken_here(format!("</{found}> closes an element that was never opened"))
                    );
                }
                Err(
                    error @ (Error::Io(_)
                    | Error::InvalidAttr(_)
                    | Error::Encoding(_)
                    | Error::Escape(_)
                    | Error::Namespace(_)),
                ) => return Err(self.broken_here(format!("expected XML, but {error}"))),
            }
        }
    }

    /// The error of a document that is broken where the walk stands.
    pub(crate) fn broken_here(&self, problem: String) -> ReadError {
        let at = self
            .reader
            .error_position()
            .max(u64::try_from(self.position()).unwrap_or(u64::MAX));
        self.input
            .broken_at(usize::try_from(at).unwrap_or(usize::MAX), self.format, problem)
    }

    /// The line where the walk stands, from 1.
    pub(crate) fn line(&self) -> usize {
        let before = self.text.as_bytes().get(..self.position()).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    fn open(&mut self, start: usize, name_length: usize) -> Result<Node<'a>, ReadError> {
        self.depth += 1;
        if self.depth > limits::DEPTH {
            return Err(ReadError::TooLarge {
                file: self.input.name.to_owned(),
                what: "the nesting of elements",
                limit: format!("{} levels (line {})", limits::DEPTH, self.line()),
            });
        }
        // The events borrow from themselves, so the tag is taken from the text anew: `<`, content, `>` or `/>`.
        let content = self
            .text
            .get(start..self.position())
            .and_then(|tag| tag.strip_prefix('<')?.strip_suffix('>'))
            .unwrap_or_default();
        let content = content.strip_suffix('/').unwrap_or(content);
        let name = content.get(..name_length).unwrap_or_default();
        Ok(Node::Open(Tag {
            name: match name.bytes().rposition(|byte| byte == b':') {
                Some(colon) => name.get(colon + 1..).unwrap_or_default(),
                None => name,
            },
            content,
            name_length,
        }))
    }
}

/// A raw value with what its references stand for; borrowed where it has none.
pub(crate) fn decode(raw: &str) -> Cow<'_, str> {
    // Most values have none, and this looks at several bytes at once.
    if !raw.as_bytes().contains(&b'&') {
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

/// Adds more to a text; it stays borrowed while it is one piece.
pub(crate) fn append<'a>(text: &mut Cow<'a, str>, more: Cow<'a, str>) {
    if text.is_empty() {
        *text = more;
    } else {
        text.to_mut().push_str(&more);
    }
}

/// The name of the reference that the text begins with, behind its ampersand, and what follows it.
fn reference(text: &str) -> Option<(&str, &str)> {
    const LONGEST: usize = 64;
    let end = text.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let (name, after) = (text.get(..end)?, text.get(end + 1..)?);
    // A name has no space, quote or further ampersand.
    let named = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"#._-:".contains(&byte) || !byte.is_ascii());
    (named && !name.is_empty()).then_some((name, after))
}

/// Adds what `&name;` stands for: a character, the replacement character where XML forbids it, and for a name that
/// only a document type could explain the reference itself.
fn push_reference(text: &mut String, name: &str) {
    let known = match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => name.strip_prefix('#').map(character),
    };
    match known {
        Some(known) => text.push(known),
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
            // Forbidden as well, but only by it are colours recognised and taken out later.
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

    fn nodes(text: &str) -> Result<Vec<String>, ReadError> {
        let input = Input {
            name: "r.xml",
            text,
            root: None,
            known_files: None,
        };
        let mut xml = Xml::new(&input, "XML");
        let mut seen = Vec::new();
        loop {
            seen.push(match xml.next()? {
                Node::Open(tag) => format!(
                    "<{}{}>",
                    tag.name,
                    tag.attributes()
                        .map(|(key, value)| format!(" {key}={}", decode(value)))
                        .collect::<String>()
                ),
                Node::Close => "</>".into(),
                Node::Text(text) => text.into_owned(),
                Node::End => return Ok(seen),
                Node::CutOff => {
                    seen.push("cut".into());
                    return Ok(seen);
                }
            });
        }
    }

    #[test]
    fn elements_without_content_close_too() {
        assert_eq!(
            nodes("\u{feff}<?xml version='1.0'?><j:a x=\"1>2\" y='&lt;'>t&amp;<b/><![CDATA[<c>]]></j:a>")
                .unwrap(),
            ["<a x=1>2 y=<>", "t", "&", "<b>", "</>", "<c>", "</>"]
        );
    }

    #[test]
    fn what_is_no_attribute_is_left_out() {
        assert_eq!(
            nodes("<a x=1 =\"2\" y=\"3\" z/>").unwrap().first().unwrap(),
            "<a y=3>"
        );
    }

    #[test]
    fn a_cut_is_told_from_a_break() {
        for cut in [
            "<a><b",
            "<a><![CDATA[x",
            "<a x='1",
            "<a><!-- x",
            "<a>x",
            "<!DOCTYPE a [<!ENTITY",
        ] {
            assert_eq!(nodes(cut).unwrap().last().unwrap(), "cut", "{cut}");
        }
        let error = nodes("<a>\n<b>\n</c></a>").unwrap_err().to_string();
        assert_eq!(
            error,
            "r.xml:3: not a readable XML report: expected </b>, found </c>"
        );
        assert!(nodes("<a/></a>").is_err());
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = "<a>".repeat(200_000);
        assert!(matches!(nodes(&deep), Err(ReadError::TooLarge { .. })));
    }
}
