//! Recognizes the tool that wrote a suite.

use super::{case::Case, suite::Suite};
use crate::xml::Tag;

/// A tool whose files need their own rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Playwright's JUnit reporter: the project is the host name, the file is the class name.
    Playwright,
    /// Vitest: the file is the class name, and each failure may be an attempt.
    Vitest,
    /// pytest, whose reruns are repeated cases without their errors.
    Pytest,
    /// Maven Surefire and Failsafe.
    Surefire,
    /// Gradle, whose retries are repeated cases.
    Gradle,
    /// cargo-nextest.
    Nextest,
    /// gotestsum, whose reruns are repeated cases.
    Gotestsum,
    /// go-junit-report, whose repeats are `-count`.
    GoJunitReport,
    /// Mocha's JUnit reporter: one of name and class name is the full title, the other its last part.
    Mocha,
    /// jest-junit.
    Jest,
    /// Node's test runner, whose titles are the names of the suites.
    NodeTest,
    /// Perl's prove, whose numbered names mean something only within their script.
    Prove,
    /// CTest.
    Ctest,
    /// Robot Framework, whose class names begin with the name of the root suite.
    Robot,
    /// xcbeautify, whose suites have no time.
    Xcbeautify,
    /// Any other tool.
    #[default]
    Other,
}

impl Dialect {
    /// The tool that wrote a suite, recognized by the suite's name, schema and attributes. Most tools write the
    /// attributes in an order that no other tool uses.
    pub(super) fn of_suite(tag: &Tag<'_, '_>, name: &str, parent: Option<Self>) -> Self {
        let has = |attribute: &str| tag.attributes().any(|(key, _)| key == attribute);
        if tag.name == "testsuites" {
            return if has("uuid") {
                Self::Nextest
            } else {
                match name {
                    "pytest tests" => Self::Pytest,
                    "jest tests" => Self::Jest,
                    "Mocha Tests" => Self::Mocha,
                    "All tests" if begins_with(tag, "name tests failures") => Self::Xcbeautify,
                    _ => parent.unwrap_or(Self::Other),
                }
            };
        }
        match parent {
            // Other tools call their root "All tests", too.
            Some(Self::Xcbeautify) if has("time") || has("errors") || has("file") => {}
            Some(Self::Other) | None => {}
            Some(known) => return known,
        }
        if tag
            .attributes()
            .any(|(key, value)| key.ends_with("noNamespaceSchemaLocation") && value.contains("surefire"))
        {
            return Self::Surefire;
        }
        // Before version 6, pytest writes the attributes in the order of other Python tools.
        if name == "pytest" && has("errors") {
            return Self::Pytest;
        }
        ORDERS
            .iter()
            .find(|(order, _)| begins_with(tag, order))
            .map_or(Self::Other, |(_, dialect)| *dialect)
    }

    /// Whether the tool of a suite writes UTC without saying so. Most tools that leave out the zone write local time.
    pub(super) fn writes_utc(self, tag: &Tag<'_, '_>) -> bool {
        matches!(self, Self::Jest | Self::Mocha | Self::Gradle) || (self == Self::Other && is_of_karma(tag))
    }

    /// Whether a retry that passes looks like a pass.
    pub(super) const fn hides_retries(self) -> bool {
        matches!(
            self,
            Self::Playwright | Self::Vitest | Self::Jest | Self::Mocha | Self::Ctest
        )
    }

    /// Whether the names of its tests are unique in a repository.
    pub(super) const fn has_qualified_names(self) -> bool {
        matches!(
            self,
            Self::Surefire | Self::Gradle | Self::Nextest | Self::Gotestsum | Self::GoJunitReport
        )
    }

    /// The tool that wrote a case, if only the case shows it.
    pub(super) fn of_case(suite: &Suite<'_>, case: &Case<'_>) -> Self {
        let dialect = suite.dialect;
        let may_be_node = dialect == Self::NodeTest || (dialect == Self::Other && suite.is_group);
        // Newer versions write the titles of the suites as the class: `cart.totals`.
        let has_titles = || {
            let outer = case.class().strip_suffix(&*suite.name);
            outer.is_some_and(|outer| outer.is_empty() || outer.ends_with('.'))
        };
        let is_of_node =
            case.class() == "test" || dialect == Self::NodeTest && !suite.is_group && has_titles();
        if may_be_node && is_of_node {
            Self::NodeTest
        } else if dialect == Self::NodeTest {
            Self::Other
        } else if dialect == Self::Other && case.classname.is_none() && is_tap(&case.name) {
            Self::Prove
        } else {
            dialect
        }
    }
}

/// The first attributes of a suite, per tool; longer orders first.
const ORDERS: &[(&str, Dialect)] = &[
    (
        "name timestamp hostname tests failures skipped time errors",
        Dialect::Playwright,
    ),
    (
        "name timestamp hostname tests failures errors skipped time",
        Dialect::Vitest,
    ),
    (
        "name errors failures skipped tests time timestamp hostname",
        Dialect::Pytest,
    ),
    // Before version 6, pytest sorted the attributes.
    (
        "errors failures hostname name skipped tests time timestamp",
        Dialect::Pytest,
    ),
    // Before version 5.
    ("errors failures name skips", Dialect::Pytest),
    ("name errors failures skipped timestamp time tests", Dialect::Jest),
    (
        "name tests skipped failures errors timestamp hostname time",
        Dialect::Gradle,
    ),
    (
        "name time disabled errors tests failures skipped hostname",
        Dialect::NodeTest,
    ),
    // Newer versions.
    (
        "name time disabled errors tests failures skipped timestamp hostname",
        Dialect::NodeTest,
    ),
    (
        "name tests failures disabled skipped hostname time timestamp",
        Dialect::Ctest,
    ),
    (
        "name tests errors failures skipped time timestamp",
        Dialect::Robot,
    ),
    ("name tests failures errors id hostname", Dialect::GoJunitReport),
    ("name timestamp tests file time failures", Dialect::Mocha),
    ("name timestamp tests time failures", Dialect::Mocha),
];

/// Whether a suite has a name that its tool writes whatever the tests are.
pub(super) fn is_constant(tag: &Tag<'_, '_>, name: &str) -> bool {
    // Another suite of this name is one of several, such as `openshift-tests-upgrade`.
    const OPENSHIFT: &str = "name tests skipped failures time";
    is_constant_suite(name) || (name == "openshift-tests" && begins_with(tag, OPENSHIFT))
}

/// Whether a name is one that tools write for every suite without a name of its own.
pub(crate) fn is_constant_suite(name: &str) -> bool {
    CONSTANTS.contains(&name.trim())
}

/// Names that tools write for every suite without a name of its own.
const CONSTANTS: &[&str] = &[
    "(empty)",
    "All Tests",
    "All tests",
    "AllTests",
    "CLI Arguments",
    "Command line suite",
    "Command line test",
    "Cucumber",
    "Default Suite",
    "Default suite",
    "Default test",
    "Gradle suite",
    "Gradle test",
    "JUnit Jupiter",
    "JUnit Vintage",
    "Mocha Tests",
    "Root Suite",
    "Surefire suite",
    "Surefire test",
    "Test Suite",
    "Test suite",
    "cucumber-js",
    "default",
    "jest tests",
    "nose2-junit",
    "nosetests",
    "pytest",
    "rspec",
    "test",
    "tests",
    "undefined",
    "unittest",
    "vitest tests",
];

fn is_of_karma(tag: &Tag<'_, '_>) -> bool {
    begins_with(tag, "name package timestamp id hostname")
}

/// Whether a tag begins with these attributes.
fn begins_with(tag: &Tag<'_, '_>, order: &str) -> bool {
    let mut keys = tag.attributes().map(|(key, _)| key);
    order.split(' ').all(|name| keys.next() == Some(name))
}

/// `3` or `3 - adds up`.
fn is_tap(name: &str) -> bool {
    let rest = name.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < name.len() && (rest.is_empty() || rest.starts_with(' '))
}
