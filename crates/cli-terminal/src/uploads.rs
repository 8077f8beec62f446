//! Uploads as rows of a table.

use assay_domain::{decision::StoredDecision, ingest::ProjectUpload, timestamp::Timestamp};

use crate::{output, table::Cell, when::when};

/// The headings of [`row`].
pub const HEADINGS: [&str; 7] = ["TIME", "KEY", "RUN", "EFFECT", "GATE", "FILES", "SIZE"];

/// The row of an upload. `key` names its key.
pub fn row(upload: &ProjectUpload, key: Cell, now: Timestamp) -> Vec<Cell> {
    vec![
        when(upload.at, now).into(),
        key,
        upload.run_number.to_string().into(),
        upload.effect.to_string().into(),
        upload.decision.as_ref().map(gate).unwrap_or_default().into(),
        upload.files.to_string().into(),
        output::bytes(i64::try_from(upload.bytes).unwrap_or(i64::MAX)).into(),
    ]
}

/// The outcome, and how many of the failed tests were excused.
fn gate(decision: &StoredDecision) -> String {
    match decision.failed {
        0 => decision.outcome.to_string(),
        failed => format!(
            "{}, excused {} of {failed}",
            decision.outcome,
            decision.excused.len()
        ),
    }
}
