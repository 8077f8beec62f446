//! A report of a file before it is merged with others.

use assay_domain::timestamp::Timestamp;

use crate::report::Report;

/// A report in a file, with the facts for merging. A file may contain several.
pub(crate) struct Piece {
    /// The file's name.
    pub(crate) name: String,
    /// The time of its last change, if known.
    pub(crate) modified: Option<Timestamp>,
    /// The report.
    pub(crate) report: Report,
    /// Allure's history id, which all attempts of one test share. `None` for other formats.
    pub(crate) history_id: Option<String>,
}
