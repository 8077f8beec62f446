//! The names and files of cases.

use std::borrow::Cow;

use assay_domain::test::TestName;

use super::{case::Case, dialect::Dialect, playwright, suite::Suite};
use crate::{input::Input, text, xml};

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
    ) -> TestName {
        let suite = suites.last();
        match dialect {
            Dialect::Playwright => playwright::test(input, suite, case),
            Dialect::Vitest => TestName {
                name: text::joined([&*case.name]),
                file_path: self
                    .written_file(input, suite, case)
                    .or_else(|| source_file(case.class()).map(|file| input.stored_path(file))),
            },
            Dialect::NodeTest => {
                let titles = suites
                    .iter()
                    .filter(|suite| !suite.is_group)
                    .map(|suite| &*suite.name);
                TestName {
                    name: text::joined(titles.chain([&*case.name])),
                    file_path: self.written_file(input, suite, case),
                }
            }
            // A package that fails by itself is a case without the package's name.
            Dialect::Gotestsum if case.class().is_empty() => TestName {
                name: text::joined([suite.map_or("", |suite| &*suite.name), &*case.name]),
                file_path: None,
            },
            Dialect::Prove => TestName {
                name: text::joined([suite.map_or("", |suite| &*suite.name), &*case.name]),
                file_path: self.file(input, suite, case),
            },
            Dialect::Pytest
            | Dialect::Surefire
            | Dialect::Gradle
            | Dialect::Nextest
            | Dialect::Gotestsum
            | Dialect::GoJunitReport
            | Dialect::Mocha
            | Dialect::Jest
            | Dialect::Ctest
            | Dialect::Other => {
                let variant = suite.and_then(|suite| suite.variant.as_ref());
                // The rest of the suite's name beside the browser.
                let subject = variant.map(|variant| &*variant.rest);
                let names_file = suite
                    .map(|suite| &*suite.name)
                    .into_iter()
                    .chain(subject)
                    .find(|name| is_path(name));
                let file_path = self
                    .written_file(input, suite, case)
                    .or_else(|| names_file.map(|file| input.stored_path(file)))
                    .or_else(|| self.known_file(input, case));
                // With an empty class name, the suite's name completes the test's name.
                let empty_class = case
                    .classname
                    .as_deref()
                    .is_some_and(|class| class.trim().is_empty());
                let by_suite = empty_class && names_file.is_none() && dialect == Dialect::Other;
                let label = suite.filter(|_| by_suite).and_then(Suite::label);
                let subject = subject.filter(|subject| {
                    case.class().trim().is_empty() && !subject.is_empty() && !is_path(subject)
                });
                let parts = match subject.or(label) {
                    Some(label) => class_and_name(label, &case.name),
                    None => parts(dialect, case.class(), &case.name),
                };
                TestName {
                    name: text::joined(variant.map(|variant| &*variant.platform).into_iter().chain(parts)),
                    file_path,
                }
            }
        }
    }

    /// The file in the report, else the only file of the checkout that fits the class name.
    fn file(&mut self, input: &Input<'_>, suite: Option<&Suite<'a>>, case: &Case<'a>) -> Option<String> {
        self.written_file(input, suite, case)
            .or_else(|| self.known_file(input, case))
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
            .find(|file| !file.trim_ascii_start().is_empty())?;
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

fn ends_with(name: &str, part: &str) -> bool {
    name.strip_suffix(part).is_some_and(|rest| rest.ends_with(' '))
}

/// The path if it has the suffix of a source file.
pub(super) fn source_file(path: &str) -> Option<&str> {
    const SUFFIXES: &[&str] = &[
        "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte",
    ];
    let (_, suffix) = path.rsplit_once('.')?;
    SUFFIXES.contains(&suffix).then_some(path)
}

/// Whether a suite's name is the path of a source file.
fn is_path(name: &str) -> bool {
    let other = || {
        const SUFFIXES: &[&str] = &[
            "py", "rb", "php", "go", "rs", "dart", "feature", "robot", "swift", "kt", "java", "cs",
        ];
        let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
        name.contains(['/', '\\']) && suffix.is_some_and(|suffix| SUFFIXES.contains(&suffix))
    };
    !name.contains([' ', '\n']) && (source_file(name).is_some() || other())
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
