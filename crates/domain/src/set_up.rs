//! The set-up and the tear-down of a class or file as tests of their own.
//!
//! Tools report them only if they failed. They are then tests, named after their class. In a run that has results of the
//! class's tests and none of its set-up, the set-up passed; so did the tear-down.
//!
//! A group of subtests is likewise a test only where it failed by itself. A report says which groups passed.

use std::collections::BTreeSet;

use crate::{
    attempt::{Attempt, AttemptStatus},
    recording::Recording,
    test::TestName,
};

/// The name of a set-up behind that of its class. The set-up of a file has no other name.
pub const NAME: &str = "(set-up)";
/// The same of a tear-down.
pub const TEAR_DOWN: &str = "(tear-down)";

/// What joins the parts of a name.
const JOINT: &str = " > ";

/// The name of the class whose set-up or tear-down has this name, empty for that of a file; none for another test.
pub fn class_of(name: &str) -> Option<&str> {
    [NAME, TEAR_DOWN]
        .iter()
        .find_map(|kind| match name.strip_suffix(kind)? {
            "" => Some(""),
            class => class.strip_suffix(JOINT),
        })
}

/// Whether a test is of a class, or of a file whose class is empty.
pub fn is_of_class(test: &TestName, class: &str, file_path: Option<&str>) -> bool {
    test.file_path.as_deref() == file_path
        && match class {
            "" => file_path.is_some(),
            class => test
                .name
                .strip_prefix(class)
                .is_some_and(|rest| rest.starts_with(JOINT)),
        }
}

/// The attempt of a set-up or group that passed without being reported.
pub const fn passed() -> Attempt {
    Attempt {
        status: AttemptStatus::Passed,
        duration_ms: None,
        started_at: None,
        browser: None,
        skip_reason: None,
        output: None,
        errors: Vec::new(),
    }
}

impl Recording {
    /// What passed if it is a test: set-ups and tear-downs of each class, suite or file around a test that ran, and groups
    /// of subtests. Only those of which the recording has no result.
    pub fn possible_passes(&self) -> Vec<TestName> {
        let ran = self.tests.iter().filter(|test| {
            let outcome = test.outcome();
            outcome.is_some_and(|outcome| !outcome.status.is_skip())
        });
        let classes: BTreeSet<(&str, Option<&str>)> = ran
            .flat_map(|test| {
                let TestName { name, file_path } = &test.test;
                let file = file_path.as_deref();
                let ends = name.match_indices(JOINT).map(|(end, _)| end);
                let classes = ends.filter_map(move |end| Some((name.get(..end)?, file)));
                classes.chain(file.map(|file| ("", Some(file))))
            })
            .collect();
        let names = classes.into_iter().flat_map(|(class, file)| {
            [NAME, TEAR_DOWN].map(|kind| TestName {
                name: match class {
                    "" => kind.to_owned(),
                    class => [class, JOINT, kind].concat(),
                },
                file_path: file.map(str::to_owned),
            })
        });
        let reported: BTreeSet<&TestName> = self.tests.iter().map(|test| &test.test).collect();
        let names = names.chain(self.passed_groups.iter().cloned());
        names.filter(|name| !reported.contains(name)).collect()
    }
}
