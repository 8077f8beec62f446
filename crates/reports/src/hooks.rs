//! Hooks of Mocha and of tools that are built on it. A hook is in a report only if it failed, with a title that says
//! whose hook it is.

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    set_up,
    test::TestName,
};

use crate::{
    collect::{Collector, LocatedTest},
    failure, limits, text,
};

/// What a hook belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Owner<'a> {
    /// A test, by its own title and the titles of the suites around the hook.
    Test { outer: &'a str, title: &'a str },
    /// All tests of a suite.
    Suite,
}

const BEFORE_ALL: &str = "\"before all\" hook";
const AFTER_ALL: &str = "\"after all\" hook";

/// The owner of the hook that a title names; none for the title of a test.
///
/// `shop "before each" hook for "pays"` belongs to the test `shop pays`; `"before all" hook in "shop"` to a suite.
pub(crate) fn owner(title: &str) -> Option<Owner<'_>> {
    const NAMES: [&str; 4] = [
        "\"before each\" hook",
        "\"after each\" hook",
        BEFORE_ALL,
        AFTER_ALL,
    ];
    if !title.contains(" hook") {
        return None;
    }
    let (at, name) = NAMES
        .iter()
        .filter_map(|name| Some((title.find(name)?, name)))
        .min()?;
    let before = title.get(..at)?;
    let after = title.get(at + name.len()..)?;
    // A hook with a name of its own has it between: `"before each" hook: signs in for "pays"`.
    if !(after.is_empty() || after.starts_with([':', ' '])) {
        return None;
    }
    // A hook before all tests names the first test that it kept from running.
    let test = (*name != AFTER_ALL)
        .then(|| after.split_once(" for \"")?.1.strip_suffix('"'))
        .flatten();
    Some(match test {
        Some(title) => Owner::Test { outer: before, title },
        None => Owner::Suite,
    })
}

/// Adds a failed result if its name is that of a hook: to the test that the name mentions, else to the errors of the
/// run. Returns whether it is a hook's.
pub(crate) fn add(
    tests: &mut Collector,
    errors: &mut Vec<ErrorDetail>,
    name: &TestName,
    attempts: &[Attempt],
) -> bool {
    match owner(&name.name) {
        None => return false,
        Some(Owner::Test { outer, title }) => {
            let test = TestName {
                name: format!("{outer}{title}"),
                file_path: name.file_path.clone(),
            };
            add_to_test(tests, test, attempts.last().into_iter().cloned().collect());
        }
        Some(Owner::Suite) => {
            let details = attempts.last().into_iter().flat_map(|last| &last.errors);
            let file = name.file_path.as_deref();
            add_to_suite(tests, errors, &name.name, file, details.cloned().collect());
        }
    }
    true
}

/// Adds the failure of a hook of a suite to the errors of the run. If its file is known, it is also the set-up or
/// tear-down of the file.
pub(crate) fn add_to_suite(
    tests: &mut Collector,
    errors: &mut Vec<ErrorDetail>,
    title: &str,
    file_path: Option<&str>,
    details: Vec<ErrorDetail>,
) {
    let kind = match title {
        _ if title.contains(BEFORE_ALL) => set_up::NAME,
        _ if title.contains(AFTER_ALL) => set_up::TEAR_DOWN,
        _ => return push_error(errors, title, details),
    };
    push_error(errors, title, details.clone());
    if let Some(file) = file_path {
        let test = TestName {
            name: kind.to_owned(),
            file_path: Some(file.to_owned()),
        };
        tests.add(
            test,
            vec![failure::attempt(AttemptStatus::Failed, details, None, None)],
        );
    }
}

/// Adds the failure of a hook to its test.
pub(crate) fn add_to_test(tests: &mut Collector, test: impl Into<LocatedTest>, hook: Vec<Attempt>) {
    tests.add_or_join(test, hook, |_, earlier, hook| {
        join(earlier, hook);
        None
    });
}

/// Adds the failure of a hook to the attempts of its test, which had ended before.
pub(crate) fn join(earlier: &mut [Attempt], hook: Vec<Attempt>) {
    if let (Some(last), Some(hook)) = (earlier.last_mut(), hook.into_iter().next_back()) {
        if !last.status.is_failure() {
            last.status = hook.status;
            last.skip_reason = None;
        }
        last.errors.extend(hook.errors);
    }
}

/// Adds the errors of something that is not a test to those of the run, after its name. Without an error the name alone
/// is one.
pub(crate) fn push_error(errors: &mut Vec<ErrorDetail>, name: &str, details: Vec<ErrorDetail>) {
    if errors.len() > limits::REPORT_ERRORS {
        return;
    }
    let first = details.into_iter().next().unwrap_or_default();
    let message = match &first.message {
        Some(message) => format!("{name}: {message}"),
        None => format!("{name} failed"),
    };
    errors.push(ErrorDetail {
        message: text::message(&message),
        ..first
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_belongs_to_the_test_that_its_title_names() {
        let test = |outer, title| Some(Owner::Test { outer, title });
        for (title, expected) in [
            ("shop \"before each\" hook for \"pays\"", test("shop ", "pays")),
            (
                "\"after each\" hook for \"pays \"in\" cash\"",
                test("", "pays \"in\" cash"),
            ),
            (
                "shop \"before each\" hook: signs in for \"pays\"",
                test("shop ", "pays"),
            ),
            ("\"before all\" hook in \"shop\"", Some(Owner::Suite)),
            ("shop \"before all\" hook for \"pays\"", test("shop ", "pays")),
            ("shop \"after all\" hook for \"pays\"", Some(Owner::Suite)),
            ("\"after all\" hook: stops", Some(Owner::Suite)),
            ("\"before each\" hook", Some(Owner::Suite)),
            ("shop has a hook for \"pays\"", None),
            ("a \"before each\" hooks up", None),
            ("pays", None),
        ] {
            assert_eq!(owner(title), expected, "{title}");
        }
    }
}
