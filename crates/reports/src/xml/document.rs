//! The loop that reads XML formats with one root element.

use std::borrow::Cow;

use super::{Element, Node, Tag, Xml, append};
use crate::{
    input::Input,
    limits, memory,
    report::{ReadError, Report},
};

/// A reader of an XML format with one root element.
pub(crate) trait Document<'a>: Default {
    /// The format's name in messages.
    const FORMAT: &'static str;
    /// The names that its root may have.
    const ROOTS: &'static [&'static str];
    /// How deep its elements may nest.
    const DEPTH: usize = limits::DEPTH;
    /// The elements that are read whole, such as results.
    const WHOLE: &'static [&'static str] = &[];
    /// The elements inside those that are kept.
    const PARTS: &'static [&'static str] = &[];

    /// Reads an element of [`Document::WHOLE`].
    fn element(&mut self, _input: &Input<'a>, _element: Element<'a>) {}

    /// Reads the beginning of another element in a parent, or of the root in "". Returns whether its contents are read.
    fn begin_element(&mut self, _tag: Tag<'a, '_>, _parent: &str) -> bool {
        true
    }

    /// Reads text directly inside such an element.
    fn text(&mut self, _name: &str, _parent: &str, _text: Cow<'a, str>) {}

    /// Reads the end of such an element whose contents are read.
    fn end_element(&mut self, _name: &str, _parent: &str) {}

    /// The number of results that were read so far.
    fn results(&self) -> usize;

    /// The report of all results that were read.
    fn finish(self, input: &Input<'a>) -> Report;
}

/// What a reader holds of an element that is not a result, such as a suite, beside its texts.
const ELEMENT: usize = 96;
/// What a reader holds of a result beside its texts.
pub(crate) const RESULT: usize = 512;

/// Takes the memory of the texts with references, which are copied.
pub(crate) fn hold_copies(input: &Input<'_>) {
    if input.text.contains('&') {
        memory::hold(input.text.len());
    }
}

/// Reads a file. Fails if it has another root, is broken or too large, or is cut off before its first whole result. A
/// file that is cut off later returns its whole results.
pub(crate) fn read<'a, D: Document<'a>>(input: &Input<'a>) -> Result<Report, ReadError> {
    hold_copies(input);
    let mut xml = Xml::with_depth(input, D::FORMAT, D::DEPTH);
    let mut document = D::default();
    let mut open: Vec<&str> = Vec::new();
    // The element that is read whole, with the open elements inside it.
    let mut whole: Vec<Element<'_>> = Vec::new();
    // How deep the walk is in an element whose contents are not read.
    let mut unread_depth = 0_usize;
    let mut roots = 0_usize;
    let mut counted = 0;
    let cut_at = loop {
        match xml.next()? {
            Node::Open => {
                let tag = xml.tag();
                if open.is_empty() && unread_depth == 0 {
                    if !D::ROOTS.contains(&tag.name) {
                        let problem =
                            format!("expected {} as the root, found <{}>", expected::<D>(), tag.name);
                        return Err(xml.broken_here(problem));
                    }
                    roots += 1;
                }
                memory::hold(ELEMENT);
                let names = if whole.is_empty() { D::WHOLE } else { D::PARTS };
                if unread_depth == 0 && names.contains(&tag.name) {
                    let element = Element::of(tag);
                    memory::charge(element.bytes());
                    whole.push(element);
                } else if unread_depth > 0
                    || !whole.is_empty()
                    || !document.begin_element(tag, innermost(&open))
                {
                    unread_depth += 1;
                } else {
                    open.push(tag.name);
                }
            }
            Node::Close if unread_depth > 0 => unread_depth -= 1,
            Node::Close => {
                if let Some(element) = whole.pop() {
                    match whole.last_mut() {
                        Some(outer) => outer.elements.push(element),
                        None => document.element(input, element),
                    }
                } else if let Some(closed) = open.pop() {
                    document.end_element(closed, innermost(&open));
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
            Node::End => break None,
            Node::CutOff => break Some(xml.line()),
        }
        let results = document.results();
        if results > counted {
            memory::hold(RESULT.saturating_mul(results - counted));
            counted = results;
        }
        memory::check(input.name)?;
        input.check_tests(results, || xml.line())?;
    };
    if roots == 0 {
        let problem = format!("expected {} as the root, found no whole element", expected::<D>());
        return Err(input.broken(1, D::FORMAT, problem));
    }
    let mut report = document.finish(input);
    if let Some(line) = cut_at
        && report.is_without_results()
    {
        return Err(cut_before_first_test(input, line, D::FORMAT));
    }
    report.mark_cut_off(cut_at);
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

/// The error of a file that is cut off before its first whole result.
pub(crate) fn cut_before_first_test(input: &Input<'_>, line: usize, format: &'static str) -> ReadError {
    input.broken(
        line,
        format,
        "the file ends here before its first whole test, expected more XML; its writer was stopped",
    )
}

fn expected<'a, D: Document<'a>>() -> String {
    let names: Vec<String> = D::ROOTS.iter().map(|root| format!("<{root}>")).collect();
    names.join(" or ")
}
