//! Error signatures: failures with the same fingerprint of their error text.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    attempt::{AttemptStatus, ErrorDetail},
    id::RunId,
    page::{Page, PerPage},
    period::Period,
    test::TestOrdinal,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary!(
    /// The kind of an error.
    Category {
        /// An expectation was not met.
        Assertion = "assertion",
        /// A time limit was exceeded.
        Timeout = "timeout",
        /// A page's element was missing, hidden or not unique.
        Element = "element",
        /// A connection or a request failed.
        Network = "network",
        /// The process crashed, or the code raised an error that is not an assertion.
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
    /// The version of the algorithm that computed it.
    pub version: u16,
    /// One line of at most 120 characters.
    pub title: String,
    /// Its kind.
    pub category: Category,
}

/// Port of the fingerprint algorithm, so that a store can classify errors within its transaction.
pub trait Classifier: Send + Sync {
    /// The class of a failed attempt with these errors; none if they have no text.
    fn classify(&self, errors: &[ErrorDetail]) -> Option<ErrorClass>;
}

/// An error signature with its figures over a period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Its kind.
    pub category: Category,
    /// The file of the test with the most occurrences.
    pub file_path: Option<String>,
    /// The number of files with occurrences.
    pub file_count: u64,
    /// The number of tests with occurrences.
    pub test_count: u64,
    /// Their names, most occurrences first, each name once.
    pub test_names: Vec<String>,
    /// Whether `testNames` contains only the names with the most occurrences.
    pub truncated: bool,
    /// The number of attempts that ended with it.
    pub occurrence_count: u64,
    /// The number of runs with occurrences.
    pub run_count: u64,
    /// The earliest visible occurrence, in or before the period.
    pub first_seen: Timestamp,
    /// The latest occurrence of the period.
    pub last_seen: Timestamp,
    /// Whether the first visible occurrence is in the period. It is always true for an error in a period as long as the
    /// plan's retention (`days=90` on Pro). Use a shorter period to separate new errors from old ones.
    pub is_new: bool,
}

/// A signature with its tests and runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SignatureDetail {
    /// The signature.
    pub signature: Signature,
    /// Whether it did not occur in the period. The figures then cover all visible occurrences.
    pub window_empty: bool,
    /// The tests, most occurrences first.
    pub tests: Vec<SignatureTest>,
    /// The runs and tests, newest first.
    pub runs: Vec<SignatureRun>,
    /// Whether `tests`, `runs` or `testNames` contain only their first entries. The counts in `signature` are always
    /// exact.
    pub truncated: bool,
}

/// The tests with occurrences of a signature in a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureHits {
    /// The signature's title.
    pub title: String,
    /// The tests, each once.
    pub tests: Vec<TestOrdinal>,
}

/// A test with occurrences of a signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SignatureTest {
    /// The full stored name.
    pub test_name: String,
    /// The stored file of the test.
    pub file_path: Option<String>,
    /// The number of its attempts that ended with the signature.
    pub occurrence_count: u64,
}

/// A test in a run with occurrences of a signature.
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
    /// The run's start.
    pub started_at: Timestamp,
    /// The test's full stored name.
    pub test_name: Arc<str>,
    /// Its stored file.
    pub file_path: Option<Arc<str>>,
    /// The largest number of attempts of one execution of the test in the run.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub attempts: u32,
    /// The number of attempts in all executions that ended with the signature.
    pub occurrences: u64,
    /// The status of the test in the run.
    pub final_status: AttemptStatus,
}

/// An error signature of one test in a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestSignature {
    /// Its fingerprint.
    pub fingerprint: String,
    /// One line of at most 120 characters.
    pub title: String,
    /// Its kind.
    pub category: Category,
    /// The number of the test's attempts that ended with it.
    pub occurrences: u64,
    /// The number of runs with these attempts.
    pub runs: u64,
    /// The start of the newest of these runs.
    pub last_run: Timestamp,
}

/// Filters, order and page of the signature list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureQuery {
    /// Only occurrences in runs that started in this period.
    pub period: Period,
    /// Only occurrences on exactly this branch.
    pub branch: Option<String>,
    /// Only signatures of this category.
    pub category: Option<Category>,
    /// Only signatures whose title, message or file contains this text, ignoring case.
    pub search: Option<String>,
    /// The order.
    pub sort: SignatureSort,
    /// The requested page, from 1.
    pub page: u64,
    /// Signatures per page.
    pub per_page: PerPage,
}

/// One page of the signature list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignaturePage {
    /// The position of the page in the list.
    pub page: Page,
    /// The signatures.
    pub signatures: Vec<Signature>,
    /// Failed attempts of the period and branch without any error text.
    pub unfingerprinted_count: u64,
}
