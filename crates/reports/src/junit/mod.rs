//! JUnit XML, as about thirty tools write it.
//!
//! There is no standard. The reader accepts any order of attributes, suites at any depth, and several outcomes in a
//! case. A [`Dialect`] holds the rules of one tool.

mod attempts;
mod case;
mod dialect;
mod errors;
pub(crate) mod names;
mod playwright;
mod repeats;
mod span;
mod suite;

pub(crate) use self::errors::of_output as error_of_output;

use std::borrow::Cow;

use assay_domain::{attempt::ErrorDetail, recording::RunContext, run::RunState};

use self::{
    case::{Case, Child, ChildKind},
    dialect::Dialect,
    names::Names,
    repeats::Repeats,
    span::Span,
    suite::Suite,
};
use crate::{
    input::Input,
    limits, memory,
    report::{Format, ReadError, Report},
    retry_name,
    xml::{Node, Xml, append, cut_before_first_test},
};

/// The format's name in messages.
const FORMAT: &str = "JUnit XML";

/// Reads a file. Fails if the root is not `testsuites` or `testsuite`, if elements do not match, or if a limit is
/// exceeded. A file that is cut off returns its whole elements.
pub(crate) fn read(input: &Input<'_>) -> Result<Report, ReadError> {
    let mut reader = JunitReader::new(input);
    reader.run()?;
    reader.finish()
}

/// Reads one file.
struct JunitReader<'a> {
    input: Input<'a>,
    xml: Xml<'a>,
    /// The open elements, the innermost last.
    open: Vec<ElementKind>,
    suites: Vec<Suite<'a>>,
    /// The open case, if any.
    case: Case<'a>,
    child: Option<Child<'a>>,
    roots: usize,
    suite_count: usize,
    cut_off: bool,
    /// The latest case is a nameless one of pytest. As the last case it means that pytest was interrupted.
    pytest_interrupted: bool,
    span: Span,
    names: Names<'a>,
    tests: Repeats,
    errors: Vec<ErrorDetail>,
}

/// The kind of an open element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementKind {
    Suite,
    Properties,
    Case,
    /// An outcome of a case.
    Child,
    /// The stack trace in an outcome of a case.
    Stack,
    /// Output of a case that contains its error.
    Output,
    /// An error of a suite.
    SuiteError,
    /// Markup inside a text; it has no meaning of its own.
    Markup,
    /// Ignored with its contents.
    Other,
}

impl<'a> JunitReader<'a> {
    fn new(input: &Input<'a>) -> Self {
        Self {
            input: *input,
            xml: Xml::new(input, FORMAT),
            open: Vec::new(),
            suites: Vec::new(),
            case: Case::default(),
            child: None,
            roots: 0,
            suite_count: 0,
            cut_off: false,
            pytest_interrupted: false,
            span: Span::default(),
            names: Names::default(),
            tests: Repeats::for_file(input.text.len()),
            errors: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), ReadError> {
        loop {
            match self.xml.next()? {
                Node::Open => {
                    let open = self.begin_element()?;
                    self.open.push(open);
                }
                Node::Close => {
                    if let Some(closed) = self.open.pop() {
                        self.end_element(closed)?;
                    }
                }
                Node::Text(text) => self.text(text),
                Node::End => return Ok(()),
                Node::CutOff => {
                    self.cut_off = true;
                    return Ok(());
                }
            }
        }
    }

    fn begin_element(&mut self) -> Result<ElementKind, ReadError> {
        let tag = self.xml.tag();
        Ok(match self.open.last() {
            None => self.root()?,
            Some(ElementKind::Suite) => match tag.name {
                "testcase" => {
                    self.case.begin(tag);
                    ElementKind::Case
                }
                "testsuite" | "testsuites" => self.suite(),
                "properties" => ElementKind::Properties,
                "error" | "failure" => {
                    self.child = Some(Child::new(ChildKind::Error, tag));
                    ElementKind::SuiteError
                }
                _ => ElementKind::Other,
            },
            Some(ElementKind::Properties) => {
                if tag.attribute("name").as_deref() == Some("go.version")
                    && let Some(suite) = self.suites.last_mut()
                {
                    suite.mark_as_go();
                }
                ElementKind::Other
            }
            Some(ElementKind::Case) => self.in_case(),
            Some(ElementKind::Child | ElementKind::SuiteError) => match tag.name {
                "stackTrace" => ElementKind::Stack,
                "system-out" | "system-err" => ElementKind::Other,
                _ => ElementKind::Markup,
            },
            Some(ElementKind::Stack | ElementKind::Output | ElementKind::Markup) => ElementKind::Markup,
            Some(ElementKind::Other) => ElementKind::Other,
        })
    }

    fn root(&mut self) -> Result<ElementKind, ReadError> {
        self.roots += 1;
        match self.xml.tag().name {
            "testsuites" | "testsuite" => Ok(self.suite()),
            other => Err(self.xml.broken_here(format!(
                "expected <testsuites> or <testsuite> as the root, found <{other}>"
            ))),
        }
    }

    fn suite(&mut self) -> ElementKind {
        let suite = Suite::new(self.xml.tag(), self.suites.last(), self.suite_count);
        self.suite_count += 1;
        self.span.suite(&suite);
        self.suites.push(suite);
        ElementKind::Suite
    }

    fn in_case(&mut self) -> ElementKind {
        let tag = self.xml.tag();
        if let Some(kind) = ChildKind::named(tag.name) {
            self.child = Some(Child::new(kind, tag));
            ElementKind::Child
        } else if tag.name == "system-out" && self.case.has_error_in_output() {
            ElementKind::Output
        } else {
            ElementKind::Other
        }
    }

    fn text(&mut self, text: Cow<'a, str>) {
        // Text in markup belongs to the innermost element that is not markup.
        let innermost = self.open.iter().rev().find(|open| **open != ElementKind::Markup);
        match innermost {
            Some(ElementKind::Child | ElementKind::SuiteError) => {
                if let Some(child) = &mut self.child {
                    append(&mut child.text, text);
                }
            }
            Some(ElementKind::Stack) => {
                if let Some(child) = &mut self.child {
                    append(&mut child.stack, text);
                }
            }
            Some(ElementKind::Output) => {
                append(&mut self.case.output, text);
            }
            Some(
                ElementKind::Suite
                | ElementKind::Properties
                | ElementKind::Case
                | ElementKind::Markup
                | ElementKind::Other,
            )
            | None => {}
        }
    }

    fn end_element(&mut self, closed: ElementKind) -> Result<(), ReadError> {
        match closed {
            ElementKind::Suite => {
                self.suites.pop();
            }
            ElementKind::Case => return self.close_case(),
            ElementKind::Child => {
                if let Some(child) = self.child.take() {
                    self.case.add(child);
                }
            }
            ElementKind::SuiteError => self.close_suite_error(),
            ElementKind::Properties
            | ElementKind::Stack
            | ElementKind::Output
            | ElementKind::Markup
            | ElementKind::Other => {}
        }
        Ok(())
    }

    fn close_case(&mut self) -> Result<(), ReadError> {
        let Some(suite) = self.suites.last() else {
            return Ok(());
        };
        if self.tests.len() >= limits::TESTS {
            return Err(ReadError::TooLarge {
                file: self.input.name.to_owned(),
                what: "the number of tests",
                limit: format!("{} (line {})", limits::TESTS, self.xml.line()),
            });
        }
        // Every outcome of the case may be an attempt, which names the browser.
        memory::charge(suite.outer_bytes.saturating_mul(1 + self.case.children.len()));
        memory::check(self.input.name)?;
        self.span.case(&self.case);
        let dialect = Dialect::of_case(suite, &self.case);
        // pytest writes a nameless case: at the end if it was interrupted, in between if a worker crashed.
        self.pytest_interrupted = dialect == Dialect::Pytest && self.case.is_nameless();
        if self.pytest_interrupted {
            return Ok(());
        }
        if let (name, 1..) = retry_name::split(&self.case.name) {
            self.case.name = Cow::Owned(name.to_owned());
        }
        let test = self.names.test(&self.input, dialect, &self.suites, &self.case);
        let execution = attempts::of(&self.input, dialect, suite, &self.case);
        let has_reason = self.case.is_skipped_for_reason();
        self.tests.add(dialect, suite, test, execution, has_reason);
        Ok(())
    }

    fn close_suite_error(&mut self) {
        let Some(child) = self.child.take() else { return };
        let outer_bytes = self.suites.last().map_or(0, |suite| suite.outer_bytes);
        if self.errors.len() >= limits::REPORT_ERRORS || !memory::charge(outer_bytes) {
            return;
        }
        let dialect = self.suites.last().map_or(Dialect::Other, |suite| suite.dialect);
        let mut error = errors::of(&self.input, dialect, &child);
        if let (Some(error), Some(suite)) = (&mut error, self.suites.last())
            && let Some(message) = &mut error.message
            && !suite.name.is_empty()
        {
            *message = format!("{}: {message}", suite.name);
        }
        self.errors.extend(error);
    }

    fn finish(self) -> Result<Report, ReadError> {
        if self.roots == 0 {
            let content = if self.input.text.trim().is_empty() {
                "the file is empty"
            } else {
                "the file has no whole element"
            };
            return Err(self.input.broken(
                1,
                FORMAT,
                format!("{content}; expected <testsuites> or <testsuite>"),
            ));
        }
        let mut warnings = Vec::new();
        let tests = self.tests.finish();
        if self.cut_off && tests.is_empty() && self.errors.is_empty() {
            return Err(cut_before_first_test(&self.input, self.xml.line(), FORMAT));
        }
        if self.cut_off {
            warnings.push(format!(
                "{}: cut off in line {}; its complete results were read",
                self.input.name,
                self.input.text.lines().count()
            ));
        }
        if self.roots > 1 {
            warnings.push(format!(
                "{}: {} reports in one file; all were read",
                self.input.name, self.roots
            ));
        }
        if self.pytest_interrupted {
            warnings.push(format!(
                "{}: pytest was interrupted in a test that the report does not name",
                self.input.name
            ));
        }
        Ok(Report {
            format: Format::Junit,
            context: RunContext::default(),
            run_key: None,
            shard: None,
            started_at: self.span.started_at(),
            finished_at: self.span.finished_at(),
            state: if self.cut_off || self.pytest_interrupted {
                RunState::Interrupted
            } else {
                RunState::Completed
            },
            errors: self.errors,
            tests,
            warnings,
        })
    }
}
