//! The names and files of cases.

use std::borrow::Cow;

use assay_domain::test::TestName;

pub(crate) use super::dialect::is_constant_suite;
use super::{case::Case, dialect::Dialect, playwright, suite::Suite};
use crate::{
    collect::{LocatedTest, named},
    input::Input,
    paths, text, xml,
};

/// Names and files of cases. Neighbours are usually in the same file, so the last file is cached.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    last_file: Option<(&'a str, Option<String>)>,
    last_class: Option<(String, Option<String>)>,
}

impl<'a> Names<'a> {
    /// The name and file of a case. `suites` are the enclosing suites, the innermost last.
    pub(super) fn test(
        &mut self,
        input: &Input<'_>,
        dialect: Dialect,
        suites: &[Suite<'a>],
        case: &Case<'a>,
    ) -> LocatedTest {
        let suite = suites.last();
        let test = match dialect {
            Dialect::Playwright => return playwright::test(input, suite, case),
            Dialect::Vitest => named(
                [&*case.name],
                self.written_file(input, suite, case)
                    .or_else(|| paths::source_file(case.class()).map(|file| input.stored_path(file))),
            ),
            Dialect::NodeTest => {
                let titles = suites
                    .iter()
                    .filter(|suite| !suite.is_group)
                    .map(|suite| &*suite.name);
                named(titles.chain([&*case.name]), self.written_file(input, suite, case))
            }
            // A package that fails by itself is a case without the package's name.
            Dialect::Gotestsum if case.class().is_empty() => {
                return LocatedTest::from(named([suite.map_or("", |suite| &*suite.name), &*case.name], None));
            }
            Dialect::Prove => named(
                [suite.map_or("", |suite| &*suite.name), &*case.name],
                suite
                    .filter(|suite| suite.is_path)
                    .map(|suite| input.stored_path(&suite.name))
                    .or_else(|| self.written_file(input, suite, case)),
            ),
            Dialect::Pytest
            | Dialect::Surefire
            | Dialect::Gradle
            | Dialect::Nextest
            | Dialect::Gotestsum
            | Dialect::GoJunitReport
            | Dialect::Mocha
            | Dialect::Jest
            | Dialect::Ctest
            | Dialect::Robot
            | Dialect::Xcbeautify
            | Dialect::Other => self.of_class(input, dialect, suites, case),
        };
        // The only file of the checkout that fits the class name, where the report has none.
        let is_looked_up =
            test.file_path.is_none() && !matches!(dialect, Dialect::Vitest | Dialect::NodeTest);
        let found_file = if is_looked_up {
            self.known_file(input, case)
        } else {
            None
        };
        LocatedTest { test, found_file }
    }

    /// The name and file of a case that its class and its suites name.
    fn of_class(
        &mut self,
        input: &Input<'_>,
        dialect: Dialect,
        suites: &[Suite<'a>],
        case: &Case<'a>,
    ) -> TestName {
        let suite = suites.last();
        let variant = suite.and_then(|suite| suite.variant.as_ref());
        // The rest of the suite's name beside the browser.
        let subject = variant.map(|variant| &*variant.rest);
        let of_suites = || suites.iter().rev().find(|suite| suite.is_path);
        let names_file = subject
            .filter(|subject| paths::is_path(subject))
            .or_else(|| of_suites().map(|suite| &*suite.name));
        let file_path = self
            .written_file(input, suite, case)
            .or_else(|| names_file.map(|file| input.stored_path(file)));
        let subject = subject.filter(|subject| {
            case.class().trim().is_empty() && !subject.is_empty() && !paths::is_path(subject)
        });
        let platform = variant.map(|variant| &*variant.platform).into_iter();
        let name = match subject {
            Some(subject) => text::joined(platform.chain(class_and_name(subject, &case.name))),
            None => {
                let class = class_of(dialect, suites, case);
                let labels = labels(dialect, suites, class, case);
                text::joined(platform.chain(labels).chain(parts(dialect, class, &case.name)))
            }
        };
        TestName { name, file_path }
    }

    fn written_file(
        &mut self,
        input: &Input<'_>,
        suite: Option<&Suite<'a>>,
        case: &Case<'a>,
    ) -> Option<String> {
        let raw = [case.file, suite.and_then(|suite| suite.file)]
            .into_iter()
            .flatten()
            .find(|file| !file.trim_ascii_start().is_empty() && !paths::is_address(file))?;
        match &self.last_file {
            Some((last, stored)) if *last == raw => stored.clone(),
            _ => {
                // A path such as `./` is empty after normalization.
                let stored = Some(input.stored_path(&xml::decode(raw))).filter(|stored| !stored.is_empty());
                self.last_file = Some((raw, stored.clone()));
                stored
            }
        }
    }

    fn known_file(&mut self, input: &Input<'_>, case: &Case<'a>) -> Option<String> {
        let files = input.known_files?;
        // For a module that did not load, pytest writes the module as the name, with an empty class name.
        let dotted = if case.class().is_empty() {
            &*case.name
        } else {
            case.class()
        };
        match &self.last_class {
            Some((last, file)) if last == dotted => file.clone(),
            _ => {
                let file = files.of_dotted(dotted).map(str::to_owned);
                self.last_class = Some((dotted.to_owned(), file.clone()));
                file
            }
        }
    }
}

/// The class name without the part that depends on which tests were selected: the name of Robot Framework's root suite,
/// which contains the folder or all files of the command line.
fn class_of<'c>(dialect: Dialect, suites: &[Suite<'_>], case: &'c Case<'_>) -> &'c str {
    let class = case.class();
    if let Some(variant) = suites.last().and_then(|suite| suite.variant.as_ref())
        && variant.rest.is_empty()
        && let Some(rest) = after_platform(class, &variant.platform)
    {
        return rest;
    }
    let root = suites.first().filter(|_| dialect == Dialect::Robot);
    root.and_then(|root| class.strip_prefix(&*root.name)?.strip_prefix('.'))
        .unwrap_or(class)
}

/// The class behind its browser, which Karma writes before it with underscores in place of spaces and dots.
fn after_platform<'c>(class: &'c str, platform: &str) -> Option<&'c str> {
    let head = class.get(..platform.len())?;
    let is_same = |(written, platform): (u8, u8)| match platform {
        b' ' | b'.' => written == b'_',
        platform => written == platform,
    };
    let rest = class.get(platform.len()..)?;
    let is_platform = head.bytes().zip(platform.bytes()).all(is_same);
    let rest = rest
        .strip_prefix('.')
        .or(Some(rest).filter(|rest| rest.is_empty()))?;
    is_platform.then_some(rest)
}

/// The names of the enclosing suites that are part of a test's name, the outermost first. They depend on the case and
/// on what encloses it alone, so that a test has one name whichever other suites are in the report.
///
/// A class with a qualified name identifies the test without its suites. So does a class whose suite repeats it.
fn labels<'s>(
    dialect: Dialect,
    suites: &'s [Suite<'_>],
    class: &str,
    case: &Case<'_>,
) -> impl Iterator<Item = &'s str> {
    let (class, written_class, name) = (class.trim(), case.class(), case.name.trim());
    let is_repeated = |suite: &Suite<'_>| {
        let label = suite.name.trim();
        if label.is_empty() {
            return false;
        }
        let repeats_class = names_same_class(class, label) || names_same_class(label, class);
        begins_with(name, label) || (!class.is_empty() && repeats_class)
    };
    let is_of_root = |root: &Suite<'_>| dialect == Dialect::Robot && written_class.starts_with(&*root.name);
    let may_lead = matches!(
        dialect,
        Dialect::Jest | Dialect::Robot | Dialect::Xcbeautify | Dialect::Other
    );
    // The classes of other tools, or in place of them their titles, are complete.
    let is_complete = !may_lead
        || suites.first().is_some_and(is_of_root)
        || is_qualified(class)
        || suites.last().is_none_or(is_repeated);
    let suites = if is_complete { &[] } else { suites };
    suites
        .iter()
        .filter(|suite| suite.variant.is_none() && !suite.is_path)
        .filter_map(Suite::label)
}

/// Whether a class name is one that no other class of the project has: it has the name of its package or module before
/// it. A title is not a class name.
fn is_qualified(class: &str) -> bool {
    let has = |fits: fn(u8) -> bool| class.bytes().any(fits);
    let is_name = !has(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
    is_name && (has(|byte| matches!(byte, b'.' | b'/' | b'\\')) || class.contains("::"))
}

/// Class name and name. If one begins with the other, the shorter one is replaced by an empty text.
pub(crate) fn class_and_name<'a>(class: &'a str, name: &'a str) -> [&'a str; 2] {
    if class.trim_start().is_empty() || begins_with(name, class) {
        ["", name]
    } else if name.trim_start().is_empty() || begins_with(class, name) {
        [class, ""]
    } else {
        [class, name]
    }
}

/// Like [`class_and_name`], for Mocha's reporter: one has the full title, the other its last part.
fn parts<'a>(dialect: Dialect, class: &'a str, name: &'a str) -> [&'a str; 2] {
    match class_and_name(class, name) {
        [class, name] if dialect == Dialect::Mocha && ends_with(name, class) => ["", name],
        [class, name] if dialect == Dialect::Mocha && ends_with(class, name) => [class, ""],
        parts => parts,
    }
}

/// Whether a name begins with a complete part: `Order.total` begins with `Order`, `Orders` does not.
fn begins_with(name: &str, part: &str) -> bool {
    name.strip_prefix(part)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Whether the class is the label, as a whole, with further parts, or with a word for tests: `MiscTests - OS X` and `Misc`.
fn names_same_class(class: &str, label: &str) -> bool {
    const TESTS: &[&str] = &["Test", "Tests", "TestCase", "TestSuite", "Spec", "Specs", "Suite"];
    let with_word = || {
        let rest = class.strip_prefix(label)?;
        TESTS.iter().find(|word| begins_with(rest, word))
    };
    begins_with(class, label) || with_word().is_some()
}

fn ends_with(name: &str, part: &str) -> bool {
    name.strip_suffix(part).is_some_and(|rest| rest.ends_with(' '))
}

/// Replaces a tool's separator between titles with [`text::JOINT`].
pub(super) fn rejoined<'a>(titles: &'a str, separator: &str) -> Cow<'a, str> {
    if titles.contains(separator) {
        Cow::Owned(text::joined(titles.split(separator)))
    } else {
        Cow::Borrowed(titles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_the_other_begins_with_is_left_out() {
        for (class, name, expected) in [
            ("org.shop.OrderTest", "addsUp", "org.shop.OrderTest > addsUp"),
            ("org.shop.OrderTest", "org.shop.OrderTest", "org.shop.OrderTest"),
            (
                "Shop.OrderTests",
                "Shop.OrderTests.Total",
                "Shop.OrderTests.Total",
            ),
            ("orders totals", "orders", "orders totals"),
            ("Order", "Orders add up", "Order > Orders add up"),
            ("", "tests.test_broken", "tests.test_broken"),
            ("org.shop.OrderTest", "", "org.shop.OrderTest"),
            ("adds up", "orders adds up", "adds up > orders adds up"),
        ] {
            assert_eq!(text::joined(parts(Dialect::Other, class, name)), expected);
        }
        assert_eq!(
            text::joined(parts(Dialect::Mocha, "adds up", "orders adds up")),
            "orders adds up"
        );
        assert_eq!(
            text::joined(parts(Dialect::Mocha, "orders adds up", "adds up")),
            "orders adds up"
        );
    }
}
