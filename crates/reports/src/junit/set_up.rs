//! Cases that are no tests: hooks, set-ups and files that do not load. Tools write them only if they failed.

use std::borrow::Cow;

use assay_domain::set_up;

use super::{case::Case, dialect::Dialect, suite::Suite};
use crate::{
    hooks::{self, Owner},
    input::Input,
    paths, text,
};

/// What a case stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A test.
    Test,
    /// The hook of the test whose name the case has got in place of its own.
    HookOfTest,
    /// The set-up or tear-down of a class, with its name in errors. Its failure is an error of the run and a result of its
    /// own. The case has got the names of both.
    SetUpOfClass(String),
    /// Something else than a test, with its name. Its failure is an error of the run.
    Other(String),
}

/// What a case stands for. `failed` is whether it failed.
pub(super) fn subject(
    input: &Input<'_>,
    dialect: Dialect,
    suite: &Suite<'_>,
    case: &mut Case<'_>,
    failed: bool,
) -> Subject {
    // These suites hold nothing else, failed or not.
    let is_set_up_suite = (dialect == Dialect::Nextest && suite.name.starts_with("@setup-script:"))
        || (dialect == Dialect::Vitest && suite.name == "vitest unhandled errors");
    if is_set_up_suite {
        return Subject::Other(text::joined([&*suite.name, &*case.name]));
    }
    if !failed {
        return Subject::Test;
    }
    if let Some(subject) = hook(dialect, suite, case) {
        return subject;
    }
    if dialect == Dialect::NodeTest && suite.is_group && paths::is_of_file(&case.name, case.file) {
        return Subject::Other(input.stored_path(&case.name));
    }
    // Bun's hooks have this name. Its tests have a line.
    if suite.is_of_bun && case.name == "(unnamed)" && !case.has_line {
        // The set-up comes before all results, the tear-down behind them.
        let kind = match suite.has_run {
            false => set_up::NAME,
            true => set_up::TEAR_DOWN,
        };
        case.name = Cow::Borrowed(kind);
        let place = [case.class(), &*suite.name]
            .into_iter()
            .find(|name| !name.is_empty());
        return Subject::SetUpOfClass(text::joined(place.into_iter().chain([kind])));
    }
    let (class, name) = (case.class(), &*case.name);
    // JUnit 4 and older versions of Surefire name the set-up as the class.
    let is_named_as_class = matches!(dialect, Dialect::Surefire | Dialect::Gradle) && {
        let simple = class.rsplit(['.', '$']).next().unwrap_or_default();
        name.is_empty() || name == class || name == simple
    };
    let is_of_junit = matches!(
        dialect,
        Dialect::Surefire | Dialect::Gradle | Dialect::Xcbeautify | Dialect::Other
    );
    let is_set_up = is_named_as_class
        || (is_of_junit && is_set_up_of_class(name))
        || (dialect == Dialect::Gotestsum && class.is_empty() && name == "TestMain");
    let is_other = match dialect {
        Dialect::Surefire | Dialect::Gradle => is_set_up,
        Dialect::Pytest => {
            // A module that did not load.
            class.is_empty()
                && case
                    .children
                    .iter()
                    .any(|child| child.message == "collection failure")
        }
        Dialect::Jest => class == DID_NOT_LOAD || name == DID_NOT_LOAD,
        // A package that failed by itself.
        Dialect::Gotestsum => class.is_empty(),
        Dialect::GoJunitReport => name.starts_with('[') && name.ends_with(" failed]"),
        // GoogleTest's failures outside of a test have no names.
        Dialect::Xcbeautify | Dialect::Other => is_set_up || (name.is_empty() && class.is_empty()),
        Dialect::Playwright
        | Dialect::Vitest
        | Dialect::Nextest
        | Dialect::Mocha
        | Dialect::NodeTest
        | Dialect::Prove
        | Dialect::Robot
        | Dialect::Ctest => false,
    };
    if !is_other {
        return Subject::Test;
    }
    let suite_name = if dialect != Dialect::Pytest && class.is_empty() && name != suite.name {
        &*suite.name
    } else {
        ""
    };
    let class = if class == name || class == DID_NOT_LOAD {
        ""
    } else {
        class
    };
    let full = text::joined([suite_name, class, name]);
    if !is_set_up {
        return Subject::Other(full);
    }
    if case.class().is_empty() {
        case.classname = Some(Cow::Owned(suite.name.to_string()));
    }
    case.name = Cow::Borrowed(set_up::NAME);
    Subject::SetUpOfClass(full)
}

/// The class of a test file of Jest that did not load.
const DID_NOT_LOAD: &str = "Test suite failed to run";

/// JUnit's names for the set-up of a class.
fn is_set_up_of_class(name: &str) -> bool {
    let bare = name.split_once('(').map_or(name, |(name, _)| name);
    matches!(bare, "initializationError" | "classMethod" | "executionError")
}

/// A hook of Mocha. The case gets the name of the hook's test, if the title has it.
fn hook(dialect: Dialect, suite: &Suite<'_>, case: &mut Case<'_>) -> Option<Subject> {
    let (by_class, by_name) = (hooks::owner(case.class()), hooks::owner(&case.name));
    // One of the two has the full title, the other one may have its last part.
    let is_in_class = by_name.is_none() || by_class.is_some() && case.class().len() > case.name.len();
    let (full, last) = if is_in_class {
        (by_class, by_name)
    } else {
        (by_name, by_class)
    };
    let Owner::Test { outer, title } = full? else {
        let full = if is_in_class { case.class() } else { &case.name };
        return Some(Subject::Other(text::joined([full])));
    };
    // A class that is no hook has the titles of the suites.
    let is_full = is_in_class || last.is_some() || case.class().is_empty();
    let full = if dialect == Dialect::Mocha && is_full {
        in_suite(&suite.name, outer, title)
    } else {
        format!("{outer}{title}")
    };
    let last = last.map(|_| title.to_owned());
    let (class, name) = if is_in_class {
        (Some(full), last)
    } else {
        (last, Some(full))
    };
    if let Some(class) = class {
        case.classname = Some(Cow::Owned(class));
    }
    if let Some(name) = name {
        case.name = Cow::Owned(name);
    }
    Some(Subject::HookOfTest)
}

/// The full title of a test in a suite. The hook may be that of a suite around it, or of all files: then its title lacks
/// the suite's.
fn in_suite(suite: &str, outer: &str, title: &str) -> String {
    let (suite, outer) = (suite.trim(), outer.trim_end());
    let is_part = !outer.is_empty() && suite.ends_with(outer);
    let titles = if suite == "Root Suite" || outer.ends_with(suite) || is_part {
        outer.to_owned()
    } else if suite.starts_with(outer) {
        suite.to_owned()
    } else {
        format!("{outer} {suite}")
    };
    format!("{titles} {title}").trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_of_an_outer_suite_belongs_to_the_test_of_the_inner_one() {
        for (suite, outer, expected) in [
            ("checkout", "checkout ", "checkout pays"),
            ("checkout", "", "checkout pays"),
            ("checkout", "shop ", "shop checkout pays"),
            ("shop checkout", "shop ", "shop checkout pays"),
            ("acme shop", "shop ", "shop pays"),
            ("Root Suite", "", "pays"),
            ("", "shop ", "shop pays"),
        ] {
            assert_eq!(in_suite(suite, outer, "pays"), expected, "{suite:?} {outer:?}");
        }
    }
}
