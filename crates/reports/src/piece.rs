//! A report of a file before it is merged with others.

use assay_domain::timestamp::Timestamp;

use crate::{allure, report::Report, retries};

/// A report in a file, with the facts for merging. A file may contain several.
pub(crate) struct Piece {
    /// The file's name.
    pub(crate) name: String,
    /// The time of its last change, if known.
    pub(crate) modified: Option<Timestamp>,
    /// The report.
    pub(crate) report: Report,
    /// What a file of Allure says about others. `None` for other formats.
    pub(crate) allure: Option<allure::Part>,
}

impl Piece {
    /// Whether a test of it failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.report.tests.iter().any(retries::has_failed)
    }
}
