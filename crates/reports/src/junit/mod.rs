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
mod set_up;
mod span;
mod suite;

pub(crate) use self::errors::of_output as error_of_output;

use std::borrow::Cow;

use assay_domain::{
    attempt::{Attempt, ErrorDetail},
    recording::RunContext,
    run::RunState,
};

use self::{
    case::{Case, Child, ChildKind},
    dialect::Dialect,
    names::Names,
    repeats::Repeats,
    set_up::Subject,
    span::Span,
    suite::{Header, Suite},
};
use crate::{
    attempt_output::Collected,
    go,
    header::missing_failures,
    hooks,
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
    /// A test of Go ended another one, so that the rest of that one did not run.
    is_cut_short: bool,
    span: Span,
    names: Names<'a>,
    tests: Repeats,
    errors: Vec<ErrorDetail>,
    /// What the outermost suites count and show.
    header: Header,
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
    /// Other output of a case.
    Console,
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
            is_cut_short: false,
            span: Span::default(),
            names: Names::default(),
            tests: Repeats::for_file(input.text.len()),
            errors: Vec::new(),
            header: Header::default(),
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
            Some(ElementKind::Stack | ElementKind::Output | ElementKind::Console | ElementKind::Markup) => {
                ElementKind::Markup
            }
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
        self.span.suite(&self.input, &suite);
        self.suites.push(suite);
        ElementKind::Suite
    }

    fn in_case(&mut self) -> ElementKind {
        let tag = self.xml.tag();
        if let Some(kind) = ChildKind::of(&tag) {
            self.child = Some(Child::new(kind, tag));
            ElementKind::Child
        } else if tag.name == "system-out" && self.case.has_error_in_output() {
            ElementKind::Output
        } else if matches!(tag.name, "system-out" | "system-err") {
            ElementKind::Console
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
            Some(ElementKind::Console) => {
                append(&mut self.case.console, text);
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
            ElementKind::Suite => self.close_suite(),
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
            | ElementKind::Console
            | ElementKind::Markup
            | ElementKind::Other => {}
        }
        Ok(())
    }

    /// Closes a suite. What it shows and misses counts for the suite around it, too.
    fn close_suite(&mut self) {
        if let Some(suite) = self.suites.pop() {
            let outer = self.suites.last_mut().map(|outer| &mut outer.header);
            outer.unwrap_or(&mut self.header).add(suite);
        }
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
        self.span.case(&self.input, &self.case);
        let dialect = Dialect::of_case(suite, &self.case);
        // pytest writes a nameless case: at the end if it was interrupted, in between if a worker crashed.
        self.pytest_interrupted = dialect == Dialect::Pytest && self.case.is_nameless();
        if self.pytest_interrupted {
            return Ok(());
        }
        if let (name, 1..) = retry_name::split(&self.case.name) {
            self.case.name = Cow::Owned(name.to_owned());
        }
        if matches!(dialect, Dialect::Gotestsum | Dialect::GoJunitReport) {
            let mut outcomes = self.case.children.iter();
            self.is_cut_short |= outcomes.any(|child| child.body().lines().any(go::is_goexit));
        }
        let mut execution = attempts::of(&self.input, dialect, suite, &self.case);
        // The output of a case is that of its attempts. The last failure is the one that people look at.
        if let Some(failed) = execution.iter_mut().rfind(|attempt| attempt.status.is_failure()) {
            let mut collected = Collected::default();
            collected.console(&self.input, &self.case.console);
            collected.give_to(failed);
        }
        let failed = execution.last().is_some_and(|last| last.status.is_failure());
        let failures = self.case.failures().max(usize::from(failed));
        let subject = set_up::subject(dialect, suite, &mut self.case, failed);
        let is_hook = match subject {
            Subject::Test => false,
            Subject::HookOfTest => true,
            Subject::Other(name) => {
                self.count_failures(failures);
                if failed {
                    self.push_error(&name, execution);
                }
                return Ok(());
            }
        };
        let test = self.names.test(&self.input, dialect, &self.suites, &self.case);
        if is_hook {
            self.tests.add_hook(suite, test, execution);
        } else {
            let has_reason = self.case.is_skipped_for_reason();
            self.tests.add(dialect, suite, test, execution, has_reason);
        }
        self.count_failures(failures);
        Ok(())
    }

    fn count_failures(&mut self, failures: usize) {
        if let Some(suite) = self.suites.last_mut() {
            let failures = u64::try_from(failures).unwrap_or(u64::MAX);
            suite.header.shown = suite.header.shown.saturating_add(failures);
        }
    }

    /// Adds the failure of something that is not a test.
    fn push_error(&mut self, name: &str, execution: Vec<Attempt>) {
        // jest-junit writes a file that did not load twice, in two forms.
        let is_repeated = self
            .errors
            .last()
            .and_then(|last| last.message.as_deref()?.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with(':'));
        let details = execution.into_iter().flat_map(|attempt| attempt.errors);
        if !is_repeated {
            hooks::push_error(&mut self.errors, name, details.collect());
        }
    }

    fn close_suite_error(&mut self) {
        let Some(child) = self.child.take() else { return };
        self.count_failures(1);
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
        let counted = self.header.shown.saturating_add(self.header.missing);
        let missing = missing_failures(self.input.name, counted, self.header.shown);
        let mut errors = self.errors;
        errors.extend(missing.filter(|_| !self.cut_off));
        let tests = self.tests.finish();
        if self.cut_off && tests.is_empty() && errors.is_empty() {
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
            duration_ms: None,
            state: if self.cut_off || self.pytest_interrupted || self.is_cut_short {
                RunState::Interrupted
            } else {
                RunState::Completed
            },
            errors,
            tests,
            warnings,
        })
    }
}
