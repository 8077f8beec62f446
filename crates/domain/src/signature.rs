//! Error signatures: failures with the same error, by the fingerprint of their text.

use std::sync::Arc;

use serde::Serialize;

use crate::{
    attempt::{AttemptStatus, ErrorDetail},
    id::RunId,
    page::{Page, PerPage},
    test::TestOrdinal,
    timestamp::Timestamp,
    vocabulary::vocabulary,
    window::Window,
};

vocabulary!(
    /// What kind of failure an error is.
    Category {
        /// An expectation was not met.
        Assertion = "assertion",
        /// Something took too long.
        Timeout = "timeout",
        /// A page's element was missing, hidden or not unique.
        Element = "element",
        /// A connection or a request failed.
        Network = "network",
        /// The process died, or the code raised an error that is no assertion.
        Crash = "crash",
        /// A hook, fixture, import or compilation failed before the test itself.
        Setup = "setup",
        /// None of these.
        Other = "other",
    }
);

vocabulary!(
    /// The order of the signature list; the largest or latest first.
    SignatureSort {
        /// By occurrences.
        Occurrences = "occurrences",
        /// By the number of tests.
        Tests = "tests",
        /// By the latest occurrence.
        LastSeen = "lastSeen",
        /// By the first occurrence.
        FirstSeen = "firstSeen",
    }
);

/// The class of an error text: its fingerprint, title and category.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ErrorClass {
    /// 32 hexadecimal digits.
    pub fingerprint: String,
    /// The version of the algorithm that made it.
    pub version: u16,
    /// One line of at most 120 characters.
    pub title: String,
    /// What kind of failure it is.
    pub category: Category,
}

/// Port of the fingerprint algorithm, so that a store can classify errors within its transaction.
pub trait Classifier: Send + Sync {
    /// The class of a failed attempt with these errors; none if they have no text.
    fn classify(&self, errors: &[ErrorDetail]) -> Option<ErrorClass>;
}

/// An error signature with its figures over a period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Signature {
    /// Its fingerprint.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9A-Za-z_-]{1,128}$"))]
    pub fingerprint: String,
    /// One line of at most 120 characters.
    pub title: String,
    /// The beginning of the latest occurrence's own text: at most 2,000 characters.
    pub message: Option<String>,
    /// What kind of failure it is.
    pub category: Category,
    /// The file of the test that it hits most.
    pub file_path: Option<String>,
    /// How many files it hits.
    pub file_count: u64,
    /// How many tests it hits.
    pub test_count: u64,
    /// Their names, most occurrences first, each name once.
    pub test_names: Vec<String>,
    /// Whether `testNames` shows only the names of the tests that it hits most.
    pub truncated: bool,
    /// How many attempts ended with it.
    pub occurrence_count: u64,
    /// In how many runs.
    pub run_count: u64,
    /// The earliest occurrence that is still visible, whatever the period.
    pub first_seen: Timestamp,
    /// The latest occurrence of the period.
    pub last_seen: Timestamp,
    /// Whether the first visible occurrence is in the period. Always true of an error that occurred in a period as
    /// long as the plan's retention (`days=90` on Pro); use a shorter period to separate new errors from old ones.
    pub is_new: bool,
}

/// A signature with the tests and runs that it hits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SignatureDetail {
    /// The signature.
    pub signature: Signature,
    /// True when it did not occur in the period; the figures then cover everything visible.
    pub window_empty: bool,
    /// The tests, most occurrences first.
    pub tests: Vec<SignatureTest>,
    /// The runs and tests, newest first.
    pub runs: Vec<SignatureRun>,
    /// Whether `tests`, `runs` or `testNames` are cut to their first entries. The counts in `signature` are always
    /// exact.
    pub truncated: bool,
}

/// The tests that a signature hit in a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureHits {
    /// The signature's title.
    pub title: String,
    /// The tests, each once.
    pub tests: Vec<TestOrdinal>,
}

/// A test that a signature hits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SignatureTest {
    /// The full stored name.
    pub test_name: String,
    /// The stored spec file.
    pub file_path: Option<String>,
    /// How many of its attempts ended with the signature.
    pub occurrence_count: u64,
}

/// A test in a run that a signature hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SignatureRun {
    /// The run.
    pub run_id: RunId,
    /// Its number.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// Its branch.
    pub branch: Option<Arc<str>>,
    /// When it started.
    pub started_at: Timestamp,
    /// The test's full stored name.
    pub test_name: Arc<str>,
    /// Its stored spec file.
    pub file_path: Option<Arc<str>>,
    /// The largest number of attempts of one execution of the test in the run.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub attempts: u32,
    /// How many attempts of all executions ended with the signature.
    pub occurrences: u64,
    /// How the test ended in the run.
    pub final_status: AttemptStatus,
}

/// An error signature as one test showed it in a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestSignature {
    /// Its fingerprint.
    pub fingerprint: String,
    /// One line of at most 120 characters.
    pub title: String,
    /// What kind of failure it is.
    pub category: Category,
    /// How many of the test's attempts ended with it.
    pub occurrences: u64,
    /// In how many runs.
    pub runs: u64,
    /// The start of the newest of these runs.
    pub last_run: Timestamp,
}

/// How often an error signature occurred, day by day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureDays {
    /// Its fingerprint.
    pub fingerprint: String,
    /// Occurrences of each 24 hours of the period, the newest first.
    pub days: Vec<u64>,
}

/// Which signatures to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureQuery {
    /// Only occurrences in runs that started in this period.
    pub window: Window,
    /// Only occurrences on exactly this branch.
    pub branch: Option<String>,
    /// Only signatures of this category.
    pub category: Option<Category>,
    /// Only signatures whose title, message or file contains this text, ignoring case.
    pub search: Option<String>,
    /// The order.
    pub sort: SignatureSort,
    /// The page asked for, from 1.
    pub page: u64,
    /// Signatures a page.
    pub per_page: PerPage,
}

/// One page of the signature list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignaturePage {
    /// Where the page lies.
    pub page: Page,
    /// The signatures.
    pub signatures: Vec<Signature>,
    /// Failed attempts of the period and branch without any error text.
    pub unfingerprinted_count: u64,
}
