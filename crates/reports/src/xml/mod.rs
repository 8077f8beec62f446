//! Reads XML as tools write it: without recursion, without expanding entities, and up to the byte where a file is cut
//! off.
//!
//! We use our own reader because half of a large report's reading time is spent here. It finds an element's end and
//! attributes in one pass. It accepts text that is not quite XML. A test compares it with a strict library's reader.

mod document;
mod element;
mod markup;
mod references;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use memchr::{memchr, memmem};

use self::markup::{Beginning, other_markup_length};
pub(crate) use self::{
    document::{Document, Part, RESULT, read},
    element::Element,
    references::{append, decode},
};
use crate::{input::Input, report::ReadError};

/// Walks over the nodes of a document.
pub(crate) struct Xml<'a> {
    input: Input<'a>,
    text: &'a str,
    /// The current byte of the walk.
    at: usize,
    format: &'static str,
    /// How deep elements may nest.
    depth: usize,
    /// The names of the open elements as they are written, the innermost last.
    open: Vec<&'a str>,
    /// Whether the latest element is empty and the next node closes it.
    closes: bool,
    /// The name of the latest element, as written.
    name: &'a str,
    /// Its attributes.
    attributes: Vec<(&'a str, &'a str)>,
}

/// A node of the document.
pub(crate) enum Node<'a> {
    /// The beginning of an element; [`Xml::tag`] returns it. A `Close` follows, also for an element without content.
    Open,
    /// The end of the innermost open element.
    Close,
    /// Text with its references decoded.
    Text(Cow<'a, str>),
    /// The text of a comment.
    Comment(&'a str),
    /// The end of a whole document.
    End,
    /// The end of a document that is cut off.
    CutOff,
}

/// The beginning of an element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag<'a, 'x> {
    /// Its name without a namespace's prefix.
    pub(crate) name: &'a str,
    attributes: &'x [(&'a str, &'a str)],
}

impl<'a> Tag<'a, '_> {
    /// The attributes in the order of the document: names as written, values still encoded. Text that is not an
    /// attribute is left out.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.attributes.iter().copied()
    }

    /// The decoded value of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        self.attributes()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| decode(value))
    }

    /// The same; empty without the attribute.
    pub(crate) fn value(&self, name: &str) -> Cow<'a, str> {
        self.attribute(name).unwrap_or_default()
    }
}

impl<'a> Xml<'a> {
    /// A walk from the start of the input. Messages name the `format`. Elements may nest `depth` levels deep.
    pub(crate) fn new(input: &Input<'a>, format: &'static str, depth: usize) -> Self {
        let content = input.text.trim_start_matches('\u{feff}');
        Self {
            input: *input,
            text: input.text,
            at: input.text.len() - content.len(),
            format,
            depth,
            open: Vec::new(),
            closes: false,
            name: "",
            attributes: Vec::new(),
        }
    }

    /// The next node. No node follows `End` or `CutOff`.
    pub(crate) fn next(&mut self) -> Result<Node<'a>, ReadError> {
        if self.closes {
            self.closes = false;
            self.open.pop();
            return Ok(Node::Close);
        }
        loop {
            let rest = self.rest();
            let markup = match rest.as_bytes() {
                [] if self.open.is_empty() => return Ok(Node::End),
                [] => return Ok(Node::CutOff),
                [b'<', markup, ..] => *markup,
                [b'<'] => return Ok(Node::CutOff),
                text => {
                    let length = memchr(b'<', text).unwrap_or(text.len());
                    self.at += length;
                    return Ok(Node::Text(decode(rest.get(..length).unwrap_or_default())));
                }
            };
            match markup {
                b'/' => return self.end(rest),
                b'!' if rest.starts_with("<![CDATA[") => {
                    let text = rest.get("<![CDATA[".len()..).unwrap_or_default();
                    let Some(length) = memmem::find(text.as_bytes(), b"]]>") else {
                        return Ok(Node::CutOff);
                    };
                    self.at += "<![CDATA[".len() + length + "]]>".len();
                    return Ok(Node::Text(Cow::Borrowed(text.get(..length).unwrap_or_default())));
                }
                b'!' | b'?' => {
                    let Some(length) = other_markup_length(rest.as_bytes()) else {
                        return Ok(Node::CutOff);
                    };
                    self.at += length;
                    if let Some(comment) = rest.get(..length).and_then(|markup| markup.strip_prefix("<!--")) {
                        return Ok(Node::Comment(comment.trim_end_matches("-->")));
                    }
                }
                _ => return self.begin(),
            }
        }
    }

    /// The latest element.
    pub(crate) fn tag(&self) -> Tag<'a, '_> {
        Tag {
            // A namespace's prefix may precede the name.
            name: match self.name.bytes().rposition(|byte| byte == b':') {
                Some(colon) => self.name.get(colon + 1..).unwrap_or_default(),
                None => self.name,
            },
            attributes: &self.attributes,
        }
    }

    /// The error of a document that is broken at the current byte.
    pub(crate) fn broken_here(&self, problem: String) -> ReadError {
        self.input.broken_at(self.at, self.format, problem)
    }

    /// The current line, from 1.
    pub(crate) fn line(&self) -> usize {
        let before = self.text.as_bytes().get(..self.at).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Reads `</name>` at the current byte.
    fn end(&mut self, rest: &'a str) -> Result<Node<'a>, ReadError> {
        let Some(close) = memchr(b'>', rest.as_bytes()) else {
            return Ok(Node::CutOff);
        };
        let name = rest.get(2..close).unwrap_or_default().trim_ascii_end();
        match self.open.pop() {
            Some(expected) if expected == name => {
                self.at += close + 1;
                Ok(Node::Close)
            }
            Some(expected) => Err(self.broken_here(format!("expected </{expected}>, found </{name}>"))),
            None => Err(self.broken_here(format!("</{name}> closes an element that was never opened"))),
        }
    }

    /// Reads the beginning of an element at the current byte, which is its `<`.
    fn begin(&mut self) -> Result<Node<'a>, ReadError> {
        self.attributes.clear();
        let Some(beginning) = Beginning::read(self.text, self.at, &mut self.attributes) else {
            return Ok(Node::CutOff);
        };
        self.name = beginning.name;
        self.closes = beginning.closes;
        self.at = beginning.end;
        self.open.push(self.name);
        if self.open.len() > self.depth {
            let limit = format!("{} levels (line {})", self.depth, self.line());
            return Err(ReadError::too_large(
                self.input.name,
                "the nesting of elements",
                limit,
            ));
        }
        Ok(Node::Open)
    }
}
