//! The error of a failure as its report has it: the first line of its message, and where it was raised.

use assay_domain::{
    attempt::ErrorDetail,
    id::RunId,
    project::Project,
    store::{Store, StoreError},
    test::{FileSelector, TestLookup, TestName, TestSelector},
    test_attempts::TestAttempts,
};

use crate::commit::CommitFailure;

/// Longest line of a message, in characters.
const LINE_CHARS: usize = 300;

/// The error of a failed test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailedError {
    /// The first line of the message that is not blank.
    pub line: Option<String>,
    /// The file that raised it.
    pub file: Option<String>,
    /// The line in that file, from 1.
    pub line_number: Option<u32>,
}

impl FailedError {
    /// The errors of tests in runs, in the same order.
    pub fn of_failures(
        store: &dyn Store,
        project: &Project,
        failures: &[CommitFailure],
    ) -> Result<Vec<Self>, StoreError> {
        let test = |of: &CommitFailure| TestName {
            name: of.failure.test_name.clone(),
            file_path: of.failure.file_path.clone(),
        };
        let tests: Vec<(RunId, TestName)> = failures.iter().map(|of| (of.run_id, test(of))).collect();
        let errors = store.last_errors(project, &tests)?;
        Ok(errors.iter().map(|errors| Self::of_errors(errors)).collect())
    }

    fn of_errors(errors: &[ErrorDetail]) -> Self {
        let message = errors.iter().find_map(|error| error.message.as_deref());
        let location = errors.iter().find_map(|error| error.location.as_ref());
        Self {
            line: message.and_then(first_line),
            file: location.map(|location| location.file.clone()),
            line_number: location.and_then(|location| location.line),
        }
    }
}

/// The attempts of exactly this test in a run, by its name and file.
pub(crate) fn attempts_of(
    store: &dyn Store,
    project: &Project,
    run: RunId,
    (name, file): (&str, Option<&str>),
) -> Result<Option<TestAttempts>, StoreError> {
    let test = TestSelector {
        name: name.to_owned(),
        file: FileSelector::Exactly(file.map(str::to_owned)),
    };
    let lookup = store.attempts(project, run, &test)?;
    Ok(lookup.and_then(TestLookup::found))
}

/// The first line of a text that is not blank, bounded.
pub fn first_line(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(LINE_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use assay_domain::attempt::Location;

    use super::*;

    #[test]
    fn an_error_is_its_first_line_and_its_place() {
        let error = |message: Option<&str>, location| ErrorDetail {
            message: message.map(str::to_owned),
            stack: None,
            snippet: None,
            location,
        };
        let place = Location {
            file: "cart.spec.ts".to_owned(),
            line: Some(4),
            column: None,
        };
        let errors = [
            error(Some("\n  expected 3\ngot 4"), None),
            error(None, Some(place)),
        ];
        assert_eq!(
            FailedError::of_errors(&errors),
            FailedError {
                line: Some("expected 3".to_owned()),
                file: Some("cart.spec.ts".to_owned()),
                line_number: Some(4),
            }
        );
        assert_eq!(FailedError::of_errors(&[]), FailedError::default());
    }
}
