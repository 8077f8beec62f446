//! Limits of one import.

use assay_reports::{MOST_ATTEMPTS, MOST_TESTS, Report};

/// Longest test name or file, in bytes of UTF-8.
const LONGEST_TEST: usize = 8_000;

/// An import above a limit of the store. It is rejected as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// Too many tests.
    #[error("{count} tests in one import; at most {limit} are stored: import the report in shards")]
    Tests {
        /// The number of tests.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// A test's name or file is too long.
    #[error("the test {begins:?}… has a {what} of {length} bytes; at most {limit} are stored")]
    Test {
        /// The beginning of its name.
        begins: String,
        /// The part that is too long.
        what: &'static str,
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A test has too many attempts.
    #[error("the test {begins:?}… has {count} attempts; at most {limit} are stored")]
    Attempts {
        /// The beginning of its name.
        begins: String,
        /// The number of attempts.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The run key is too long.
    #[error(
        "the run key with its suite has {length} characters, and at most {limit} are stored; shorten --run-key or --suite"
    )]
    RunKey {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
}

/// Rejects a report above a limit of the store.
pub(crate) fn check(report: &Report) -> Result<(), TooLarge> {
    let count = report.tests.len();
    if count > MOST_TESTS {
        return Err(TooLarge::Tests {
            count,
            limit: MOST_TESTS,
        });
    }
    for reported in &report.tests {
        let begins = || reported.test.name.chars().take(60).collect();
        let file = reported.test.file_path.as_deref().unwrap_or_default();
        for (what, text) in [("name", reported.test.name.as_str()), ("file", file)] {
            if text.len() > LONGEST_TEST {
                return Err(TooLarge::Test {
                    begins: begins(),
                    what,
                    length: text.len(),
                    limit: LONGEST_TEST,
                });
            }
        }
        let count = reported.attempts.len();
        if count > MOST_ATTEMPTS {
            return Err(TooLarge::Attempts {
                begins: begins(),
                count,
                limit: MOST_ATTEMPTS,
            });
        }
    }
    Ok(())
}
