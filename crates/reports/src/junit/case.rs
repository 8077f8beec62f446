//! A test case, as read from the file.

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
};

use assay_domain::attempt::AttemptStatus;

use super::dialect::Dialect;
use crate::{
    outcome,
    xml::{Element, Tag, append, decode},
};

/// A `testcase` element.
#[derive(Debug, Default)]
pub(super) struct Case<'a> {
    pub(super) name: Cow<'a, str>,
    /// `None` if the attribute is missing; tools also write it empty.
    pub(super) classname: Option<Cow<'a, str>>,
    /// The raw value.
    pub(super) file: Option<&'a str>,
    pub(super) time: Option<&'a str>,
    pub(super) timestamp: Option<&'a str>,
    pub(super) status: &'a str,
    pub(super) result: &'a str,
    /// Whether it passed in the end, after an attempt that failed: `flaky="true"` in a suite with `flakes`.
    pub(super) is_flaky: bool,
    /// Whether it has the number of a line.
    pub(super) has_line: bool,
    /// Whether it has the hash of a configuration, which Bitrise writes.
    pub(super) is_of_bitrise: bool,
    /// A hash of the attributes that tell cases of one name apart: a line, a group, an id, a device.
    pub(super) attributes: u64,
    pub(super) children: Vec<Child<'a>>,
    /// Standard output, read only if it contains the error.
    pub(super) output: Cow<'a, str>,
    /// What it printed, unless that contains the error.
    pub(super) console: Cow<'a, str>,
}

impl<'a> Case<'a> {
    /// Reads a case. Returns the cases inside of it, too.
    pub(super) fn of(element: Element<'a>) -> (Self, Vec<Element<'a>>) {
        let mut case = Self::of_tag(element.tag());
        let mut inner = Vec::new();
        for part in element.elements {
            match part.name {
                "testcase" => inner.push(part),
                "system-out" if case.has_error_in_output() => append(&mut case.output, part.text),
                "system-out" | "system-err" => append(&mut case.console, part.text),
                _ => match ChildKind::of(&part.tag()) {
                    Some(kind) => case.children.push(Child::new(kind, part)),
                    None => case.add_failures_in(part, &mut inner),
                },
            }
        }
        (case, inner)
    }

    /// Adds the failures, and the cases, inside an element that no tool is known to write. busted writes cases in others.
    fn add_failures_in(&mut self, element: Element<'a>, inner: &mut Vec<Element<'a>>) {
        for part in element.elements {
            match part.name {
                "testcase" => inner.push(part),
                "failure" | "error" => self.children.push(Child::new(ChildKind::Error, part)),
                _ => self.add_failures_in(part, inner),
            }
        }
    }

    fn of_tag(tag: Tag<'a, '_>) -> Self {
        let mut case = Self::default();
        for (key, value) in tag.attributes() {
            // Bytes are compared faster than strings here: most names already differ in length.
            match key.as_bytes() {
                b"name" => case.name = decode(value),
                b"classname" => case.classname = Some(decode(value)),
                b"file" => case.file = Some(value),
                b"time" => case.time = Some(value),
                b"timestamp" => case.timestamp = Some(value),
                b"status" => case.status = value,
                b"result" => case.result = value,
                b"flaky" => case.is_flaky = value == "true",
                b"assertions" => {}
                _ => {
                    case.has_line |= key == "line";
                    case.is_of_bitrise |= key == "configuration-hash";
                    let mut hasher = DefaultHasher::new();
                    (case.attributes, key, value).hash(&mut hasher);
                    case.attributes = hasher.finish();
                }
            }
        }
        case
    }

    /// Takes the marks that TestCafe appends to a name. `(unstable)` means that an attempt failed.
    pub(super) fn take_marks_of_testcafe(&mut self) {
        let mut name: &str = &self.name;
        if let Some((before, _)) = name
            .rsplit_once(" (screenshots: ")
            .filter(|_| name.ends_with(')'))
        {
            name = before;
        }
        if let Some(stable) = name.strip_suffix(" (unstable)") {
            name = stable;
            self.is_flaky |= !self.has(ChildKind::Error);
        }
        if name.len() < self.name.len() {
            self.name = Cow::Owned(name.to_owned());
        }
    }

    /// The class name; empty where there is none.
    pub(super) fn class(&self) -> &str {
        self.classname.as_deref().unwrap_or_default()
    }

    /// Whether the case identifies no test: it has no name, no class name and no outcome.
    pub(super) fn is_nameless(&self) -> bool {
        self.name.is_empty() && self.classname.is_none() && self.children.is_empty()
    }

    /// Whether the output contains the error. CTest and Cucumber write an empty failure and put the error into the
    /// output. CTest writes the output before the failure, so its `status` decides.
    fn has_error_in_output(&self) -> bool {
        self.status == "fail"
            || self
                .children
                .last()
                .is_some_and(|child| child.kind == ChildKind::Error && child.is_empty())
    }

    /// Whether it is skipped with a reason.
    pub(super) fn is_skipped_for_reason(&self) -> bool {
        self.children
            .iter()
            .any(|child| child.kind == ChildKind::Skipped && !child.is_empty())
    }

    /// Its failure if that says that it passed on a retry. cargo-nextest writes it with `flaky-result = "fail"`.
    pub(super) fn failure_as_flaky(&self) -> Option<&Child<'a>> {
        let mut failures = self
            .children
            .iter()
            .filter(|child| child.kind == ChildKind::Error);
        let first = failures.next().filter(|first| first.type_name == "flaky failure");
        first.filter(|_| self.has(ChildKind::Flaky) && failures.next().is_none())
    }

    /// Whether the tool expects a failure of the case and does not count it.
    pub(super) fn is_muted(&self) -> bool {
        ["disabled", "ignored"]
            .iter()
            .any(|word| self.status.eq_ignore_ascii_case(word))
    }

    /// Whether its failure is one that the test expects: a `todo` of Node, or `[!mayfail]` of Catch2. Beside any other
    /// reason for skipping, a failure is one, such as that of a tear-down.
    pub(super) fn is_expected_to_fail(&self) -> bool {
        let skipped = |child: &&Child<'_>| child.kind == ChildKind::Skipped;
        self.children
            .iter()
            .filter(skipped)
            .any(|skip| skip.type_name == "todo" || skip.message.starts_with("TEST_CASE tagged with "))
    }

    /// The number of failed outcomes that a header may count. Surefire counts those of a case that passed in the end,
    /// nextest and Playwright do not.
    pub(super) fn failures(&self, dialect: Dialect) -> usize {
        if self.is_muted() || self.is_expected_to_fail() {
            return 0;
        }
        let is_counted = |kind: ChildKind| match kind {
            ChildKind::Error | ChildKind::Rerun => true,
            ChildKind::Flaky => !matches!(dialect, Dialect::Nextest | Dialect::Playwright),
            ChildKind::Skipped | ChildKind::Unknown => false,
        };
        let counted = self.children.iter().filter(|child| is_counted(child.kind));
        counted.count()
    }

    /// Whether the children include an outcome of this kind.
    pub(super) fn has(&self, kind: ChildKind) -> bool {
        self.children.iter().any(|child| child.kind == kind)
    }
}

/// An outcome inside a case, or an error of a suite.
#[derive(Debug, Default)]
pub(super) struct Child<'a> {
    pub(super) kind: ChildKind,
    /// The element's name.
    pub(super) element: &'a str,
    pub(super) message: Cow<'a, str>,
    /// The `type` attribute.
    pub(super) type_name: Cow<'a, str>,
    pub(super) time: Option<&'a str>,
    pub(super) timestamp: Option<&'a str>,
    pub(super) text: Cow<'a, str>,
    /// The text of a nested `stackTrace` element.
    pub(super) stack: Cow<'a, str>,
}

/// The kind of an element inside a case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ChildKind {
    /// `failure` or `error`: the case, or its first attempt, failed.
    Error,
    /// `skipped`.
    Skipped,
    /// `flakyFailure` or `flakyError`: an earlier attempt of a case that passed.
    Flaky,
    /// `rerunFailure` or `rerunError`: a later attempt of a case that failed.
    Rerun,
    /// An element that may be an outcome, because it has a message, and that no tool is known to write.
    #[default]
    Unknown,
}

impl ChildKind {
    /// The kind of an outcome; none for other contents of a case.
    pub(super) fn of(tag: &Tag<'_, '_>) -> Option<Self> {
        match tag.name {
            "failure" | "error" => Some(Self::Error),
            "skipped" => Some(Self::Skipped),
            "flakyFailure" | "flakyError" => Some(Self::Flaky),
            "rerunFailure" | "rerunError" => Some(Self::Rerun),
            "system-out" | "system-err" | "properties" => None,
            other => match outcome::status(outcome::JUNIT, other) {
                Some(AttemptStatus::Failed | AttemptStatus::TimedOut) => Some(Self::Error),
                Some(AttemptStatus::Skipped | AttemptStatus::Interrupted) => Some(Self::Skipped),
                Some(AttemptStatus::Passed) => None,
                None => tag.attribute("message").map(|_| Self::Unknown),
            },
        }
    }
}

impl<'a> Child<'a> {
    pub(super) fn new(kind: ChildKind, element: Element<'a>) -> Self {
        let tag = element.tag();
        let time_of = |name| {
            tag.attributes()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value)
        };
        let (time, timestamp) = (time_of("time"), time_of("timestamp"));
        let (message, type_name) = (element.value("message"), element.value("type"));
        let mut stacks = element.elements.into_iter();
        Self {
            kind,
            element: element.name,
            message,
            type_name,
            time,
            timestamp,
            text: element.text,
            stack: stacks.next().map(|stack| stack.text).unwrap_or_default(),
        }
    }

    /// Whether it has neither message, type nor text.
    fn is_empty(&self) -> bool {
        self.message.is_empty() && self.type_name.is_empty() && self.body().trim_ascii().is_empty()
    }

    /// The stack trace, or the text if there is none.
    pub(super) fn body(&self) -> &str {
        if self.stack.is_empty() {
            &self.text
        } else {
            &self.stack
        }
    }
}
