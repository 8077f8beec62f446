//! The loop that reads XML formats.

use std::borrow::Cow;

use super::{Element, Node, Tag, Xml, append};
use crate::{
    input::Input,
    limits, memory,
    report::{Format, ReadError, Report},
};

/// A reader of an XML format.
pub(crate) trait Document<'a>: Default {
    /// The format.
    const FORMAT: Format;
    /// Its name in messages.
    const NAME: &'static str;
    /// The names that its root may have.
    const ROOTS: &'static [&'static str];
    /// How deep its elements may nest.
    const DEPTH: usize = limits::DEPTH;
    /// The elements that are read whole, such as results.
    const WHOLE: &'static [&'static str] = &[];
    /// The elements inside those that are kept.
    const PARTS: &'static [&'static str] = &[];

    /// What becomes of an element inside of one that is read whole.
    fn part(tag: &Tag<'a, '_>, _parent: &Element<'a>) -> Part {
        match Self::PARTS.contains(&tag.name) {
            true => Part::Kept,
            false => Part::LeftOut,
        }
    }

    /// Reads an element of [`Document::WHOLE`].
    fn element(&mut self, _input: &Input<'a>, _report: &mut Report, _element: Element<'a>) {}

    /// Reads the beginning of another element in a parent, or of the root in "". Returns whether its contents are read.
    fn begin(&mut self, _input: &Input<'a>, _report: &mut Report, _tag: Tag<'a, '_>, _parent: &str) -> bool {
        true
    }

    /// Reads text directly inside such an element.
    fn text(&mut self, _name: &str, _parent: &str, _text: Cow<'a, str>) {}

    /// Reads a comment directly inside such an element.
    fn comment(&mut self, _comment: &'a str) {}

    /// Reads the end of such an element whose contents are read.
    fn end(&mut self, _report: &mut Report, _name: &str, _parent: &str) {}

    /// The number of results that were read so far.
    fn results(&self) -> usize;

    /// Adds all results that were read to the report.
    fn finish(self, input: &Input<'a>, report: &mut Report);
}

/// What becomes of an element inside of one that is read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Kept,
    /// With its contents.
    LeftOut,
    /// Only its text counts, as that of the element around it. So do the elements in it.
    Markup,
}

/// What a reader holds of an element that is not a result, such as a suite, beside its texts.
const ELEMENT: usize = 96;
/// What a reader that keeps results holds of each beside its texts.
pub(crate) const RESULT: usize = 512;

/// Reads a file. Fails if it has another root, is broken or too large, or is cut off before its first whole result. A
/// file that is cut off later returns its whole results.
pub(crate) fn read<'a, D: Document<'a>>(input: &Input<'a>) -> Result<Report, ReadError> {
    // Texts with references are copied.
    if input.text.contains('&') {
        memory::hold(input.text.len());
    }
    let mut xml = Xml::new(input, D::NAME, D::DEPTH);
    let (mut document, mut report) = (D::default(), Report::empty(D::FORMAT));
    let mut open: Vec<&str> = Vec::new();
    // The element that is read whole, with the open elements inside it.
    let mut whole: Vec<Element<'_>> = Vec::new();
    // How deep the walk is in an element whose contents are left out, and in markup.
    let (mut unread_depth, mut markup_depth) = (0_usize, 0_usize);
    let mut roots = 0_usize;
    let cut_at = loop {
        match xml.next()? {
            Node::Open if unread_depth > 0 => unread_depth += 1,
            Node::Open if markup_depth > 0 => markup_depth += 1,
            Node::Open => {
                let tag = xml.tag();
                if open.is_empty() {
                    if !D::ROOTS.contains(&tag.name) {
                        let problem =
                            format!("expected {} as the root, found <{}>", expected::<D>(), tag.name);
                        return Err(xml.broken_here(problem));
                    }
                    roots += 1;
                }
                let is_result = whole.first().is_some_and(|result| result.name == tag.name);
                match whole.last() {
                    Some(parent) => match D::part(&tag, parent) {
                        Part::Kept if is_result || parent.has_room_for(tag.name) => {
                            let element = Element::of(tag);
                            memory::charge(element.bytes());
                            whole.push(element);
                        }
                        Part::Kept | Part::LeftOut => unread_depth += 1,
                        Part::Markup => markup_depth += 1,
                    },
                    None if D::WHOLE.contains(&tag.name) => whole.push(Element::of(tag)),
                    None => {
                        memory::hold(ELEMENT);
                        match document.begin(input, &mut report, tag, innermost(&open)) {
                            true => open.push(tag.name),
                            false => unread_depth += 1,
                        }
                    }
                }
            }
            Node::Close if unread_depth > 0 => unread_depth -= 1,
            Node::Close if markup_depth > 0 => markup_depth -= 1,
            Node::Close => {
                if let Some(element) = whole.pop() {
                    match whole.last_mut() {
                        Some(outer) => outer.elements.push(element),
                        None => document.element(input, &mut report, element),
                    }
                } else if let Some(closed) = open.pop() {
                    document.end(&mut report, closed, innermost(&open));
                }
            }
            Node::Text(_) if unread_depth > 0 => {}
            Node::Text(text) => {
                if let Some(element) = whole.last_mut() {
                    append(&mut element.text, text);
                } else if let Some((name, outer)) = open.split_last() {
                    document.text(name, innermost(outer), text);
                }
            }
            Node::Comment(comment) if unread_depth == 0 && whole.is_empty() => document.comment(comment),
            Node::Comment(_) => {}
            Node::End => break None,
            Node::CutOff => break Some(xml.line()),
        }
        memory::check(input.name)?;
        input.check_tests(document.results(), || xml.line())?;
    };
    if roots == 0 {
        let content = match input.text.trim().is_empty() {
            true => "the file is empty",
            false => "the file has no whole element",
        };
        let problem = format!("{content}; expected {}", expected::<D>());
        return Err(input.broken(1, D::NAME, problem));
    }
    document.finish(input, &mut report);
    report.mark_cut_off(input.name, cut_at);
    if roots > 1 {
        report.warnings.push(format!(
            "{}: {roots} reports in one file; all were read",
            input.name
        ));
    }
    Ok(report)
}

fn innermost<'a>(open: &[&'a str]) -> &'a str {
    open.last().copied().unwrap_or_default()
}

fn expected<'a, D: Document<'a>>() -> String {
    let names: Vec<String> = D::ROOTS.iter().map(|root| format!("<{root}>")).collect();
    names.join(" or ")
}
