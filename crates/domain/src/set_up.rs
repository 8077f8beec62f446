//! The set-up of a class as a test of its own.
//!
//! Tools report a set-up only if it failed. It is then a test, named after its class. In a run that has results of the
//! class's tests and none of its set-up, the set-up passed.

use std::collections::BTreeSet;

use crate::{
    attempt::{Attempt, AttemptStatus},
    recording::Recording,
    test::TestName,
};

/// The name of a set-up behind that of its class.
pub const NAME: &str = "(set-up)";

/// What joins the parts of a name.
const JOINT: &str = " > ";

/// The name of the class whose set-up has this name; none for another test.
pub fn class_of(name: &str) -> Option<&str> {
    name.strip_suffix(NAME)?.strip_suffix(JOINT)
}

/// The attempt of a set-up that passed without being reported.
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
    /// The set-ups that passed if they exist: of each class or suite around a test that ran, if the recording has no
    /// result of it.
    pub fn possible_set_ups(&self) -> Vec<TestName> {
        let ran = self.tests.iter().filter(|test| {
            let outcome = test.outcome();
            outcome.is_some_and(|outcome| !outcome.status.is_skip())
        });
        let classes: BTreeSet<(&str, Option<&str>)> = ran
            .flat_map(|test| {
                let TestName { name, file_path } = &test.test;
                let ends = name.match_indices(JOINT).map(|(end, _)| end);
                ends.filter_map(|end| Some((name.get(..end)?, file_path.as_deref())))
            })
            .collect();
        let reported: BTreeSet<(&str, Option<&str>)> = self
            .tests
            .iter()
            .filter_map(|test| Some((class_of(&test.test.name)?, test.test.file_path.as_deref())))
            .collect();
        let others = classes.difference(&reported);
        others
            .map(|(class, file)| TestName {
                name: [class, JOINT, NAME].concat(),
                file_path: file.map(str::to_owned),
            })
            .collect()
    }
}
