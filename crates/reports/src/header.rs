//! Compares the failures that a report's header counts with those that its results show.

use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail},
    run::RunState,
};

use crate::{
    failure::error_saying,
    limits,
    report::{Format, Report, ReportedTest, outcome},
};

impl Report {
    /// Adds an error if the header counts more failures than the results and errors show. The run then fails: a failure
    /// that the report does not show is no pass.
    pub(crate) fn check_header(&mut self, file: &str, counted: Option<f64>) {
        // A list of attempts that was cut has lost failures that the header counts.
        let is_cut = |test: &ReportedTest| test.attempts.len() >= limits::ATTEMPTS;
        if self.tests.iter().any(is_cut) {
            return;
        }
        // Tools count a test that was interrupted as failed.
        let is_counted =
            |status: &AttemptStatus| status.is_failure() || *status == AttemptStatus::Interrupted;
        let shown = self.ends().filter(is_counted).count() + self.errors.len();
        let counted = counted.and_then(crate::time::duration_ms).unwrap_or(0);
        let shown = u64::try_from(shown).unwrap_or(u64::MAX);
        self.errors.extend(missing_failures(file, counted, shown));
    }

    /// Adds an error if the tool's summary says that the run failed and nothing in the report did. `word` is what the
    /// summary says.
    pub(crate) fn check_summary(&mut self, file: &str, failed: bool, word: &str) {
        if failed && !self.ends().any(AttemptStatus::is_failure) {
            self.add_summary_error(file, word);
        }
    }

    /// Adds an error for a word of the tool's summary that no result explains, unless another error may.
    pub(crate) fn add_summary_error(&mut self, file: &str, word: &str) {
        if self.errors.is_empty() {
            self.errors.push(error_saying(format!(
                "{file}: the report's summary says {word:?}, and no result explains it. The cause is unknown."
            )));
        }
    }

    /// The status of each execution. A failed attempt before a pass explains no failure of the run.
    fn ends(&self) -> impl Iterator<Item = AttemptStatus> {
        let executions = self.tests.iter().flat_map(|test| test.attempts.executions());
        executions.filter_map(|attempts| Some(outcome([attempts])?.status))
    }

    /// Adds errors outside of tests, which are warnings, too.
    pub(crate) fn add_errors(&mut self, texts: Vec<String>) {
        self.errors.extend(texts.iter().map(error_saying));
        self.warnings.extend(texts);
    }

    /// Adds an error if the report was cut short before its first result.
    pub(crate) fn check_begun(&mut self, file: &str) {
        if self.state == RunState::Interrupted && self.is_without_results() {
            let begun =
                format!("{file}: the report begins and has no results. Its runner crashed or was ended.");
            self.errors.push(error_saying(begun));
        }
    }

    /// Adds an error if the command that wrote reports of these formats ended with a status that nothing in the report
    /// explains: it failed without a failed test, or with a status that its runner does not use for failed tests.
    pub(crate) fn add_command_error(&mut self, status: u8, formats: &[Format]) {
        let has_failed = |test: &&ReportedTest| {
            let outcome = test.outcome();
            outcome.is_some_and(|outcome| outcome.status.is_failure())
        };
        let failed = u64::try_from(self.tests.iter().filter(has_failed).count()).unwrap_or(u64::MAX);
        let is_explained = !self.errors.is_empty()
            || self.state == RunState::Interrupted
            || formats.iter().any(|format| format.fails_with(status, failed));
        if status == 0 || is_explained {
            return;
        }
        let why = match failed {
            0 => "and no test failed",
            _ => "which failed tests alone may not explain",
        };
        self.errors.push(error_saying(format!(
            "The test command ended with status {status}, {why}."
        )));
    }
}

/// The error of a header that counts more failures than the results show.
pub(crate) fn missing_failures(file: &str, counted: u64, shown: u64) -> Option<ErrorDetail> {
    (counted > shown).then(|| {
        let failures = if counted == 1 { "failure" } else { "failures" };
        error_saying(format!(
            "{file}: the report's header counts {counted} {failures}, and its results show {shown}. The others are \
             unknown."
        ))
    })
}

#[cfg(test)]
mod tests {
    use crate::{Options, SourceFile, read};

    #[test]
    fn a_command_that_no_failed_test_explains_is_an_error() {
        let errors = |body: &str, status| {
            let file = SourceFile {
                name: "junit.xml".to_owned(),
                bytes: format!("<testsuite>{body}</testsuite>").into_bytes(),
                modified: None,
            };
            let options = Options {
                command_status: Some(status),
                ..Options::default()
            };
            read([file], &options).unwrap().errors.len()
        };
        let passed = "<testcase name='a'/>";
        let failed = "<testcase name='a'><failure message='wrong'/></testcase>";
        assert_eq!((errors(passed, 0), errors(failed, 1)), (0, 0));
        assert_eq!(
            (errors(passed, 1), errors(passed, 137), errors(failed, 137)),
            (1, 1, 1)
        );
        // The error of the report explains it.
        let not_loaded =
            "<testcase name='a'/><system-err/><testcase><error message='not loaded'/></testcase>";
        assert_eq!(errors(not_loaded, 2), errors(not_loaded, 0));
    }
}
