//! The reading loop of formats with one root element.

use std::borrow::Cow;

use super::{Node, Tag, Xml};
use crate::{
    input::Input,
    limits,
    report::{ReadError, Report},
};

/// A reader of one such format.
pub(crate) trait Document<'a>: Default {
    /// The meaning of an open element in the format.
    type Open: Copy;

    /// The format's name in messages.
    const FORMAT: &'static str;
    /// The names that its root may have.
    const ROOTS: &'static [&'static str];
    /// How deep its elements may nest.
    const DEPTH: usize = limits::DEPTH;

    /// Reads the beginning of an element. `around` is the meaning of the enclosing element, none for the root.
    fn opened(&mut self, tag: Tag<'a, '_>, around: Option<Self::Open>) -> Self::Open;

    /// Reads text directly inside an element.
    fn text(&mut self, open: Self::Open, text: Cow<'a, str>);

    /// Reads the end of an element.
    fn closed(&mut self, open: Self::Open);

    /// The number of results that were read so far.
    fn results(&self) -> usize;

    /// The report of all results that were read.
    fn finish(self, input: &Input<'a>) -> Report;
}

/// Reads a file. Fails if it has another root, is broken or too large, or is cut off before its first whole result. A
/// file that is cut off later returns its whole results.
pub(crate) fn read<'a, D: Document<'a>>(input: &Input<'a>) -> Result<Report, ReadError> {
    let mut xml = Xml::with_depth(input, D::FORMAT, D::DEPTH);
    let mut document = D::default();
    let mut open: Vec<D::Open> = Vec::new();
    let mut roots = 0_usize;
    let cut_at = loop {
        match xml.next()? {
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
                open.push(document.opened(tag, open.last().copied()));
            }
            Node::Close => {
                if let Some(closed) = open.pop() {
                    document.closed(closed);
                }
            }
            Node::Text(text) => {
                if let Some(open) = open.last() {
                    document.text(*open, text);
                }
            }
            Node::End => break None,
            Node::CutOff => break Some(xml.line()),
        }
        if document.results() > limits::TESTS {
            return Err(ReadError::TooLarge {
                file: input.name.to_owned(),
                what: "the number of tests",
                limit: format!("{} (line {})", limits::TESTS, xml.line()),
            });
        }
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
    report.cut_off(cut_at);
    if roots > 1 {
        report.warnings.push(format!(
            "{}: {roots} reports in one file; all were read",
            input.name
        ));
    }
    Ok(report)
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
