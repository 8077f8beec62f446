//! The tables of an export: their columns, and the rows of failures.
//!
//! `docs/export.md` has the same columns. A column is never removed or renamed.

use assay_answers::failures::ExplainedFailure;
use assay_repository::{ExportRow, ExportValue};

/// A table of an export.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// The name, with which its files begin.
    pub(crate) name: &'static str,
    /// The columns, in Parquet's language of schemas.
    pub(crate) columns: &'static str,
}

pub(crate) const RUNS: Table = Table {
    name: "runs",
    columns: "
        required int32 run; required binary id (string); optional binary suite (string);
        optional binary branch (string); optional binary commit_sha (string);
        optional binary tested_revision (string); optional int64 pull_request_number;
        optional binary run_url (string); required binary status (string); required boolean trusted;
        required int64 started_at (timestamp(millis,true));
        optional int64 finished_at (timestamp(millis,true)); optional int64 duration_ms;
        required int32 tests; required int32 passed; required int32 failed; required int32 skipped;
        required int32 recovered; optional int32 shards_received; optional int32 shards_expected;",
};
pub(crate) const RESULTS: Table = Table {
    name: "results",
    columns: "
        required int32 run; required int64 run_started_at (timestamp(millis,true));
        required int32 test; required binary status (string);
        optional int64 started_at (timestamp(millis,true)); optional int64 duration_ms;
        required int32 attempts; optional binary browser (string);",
};
pub(crate) const ATTEMPTS: Table = Table {
    name: "attempts",
    columns: "
        required int32 run; required int64 run_started_at (timestamp(millis,true));
        required int32 test; required int32 execution; required int32 retry; required boolean is_final;
        required binary status (string); optional int64 started_at (timestamp(millis,true));
        optional int64 duration_ms; optional binary browser (string);
        optional binary fingerprint (string); optional binary message (string);
        optional binary skip_reason (string);",
};
pub(crate) const FAILURES: Table = Table {
    name: "failures",
    columns: "
        required int32 run; required int64 run_started_at (timestamp(millis,true));
        required int32 test; required binary status (string); required int32 attempts;
        required binary cause (string); required double mine; required double flake;
        required double environment; required double broken_before; required double earlier_on_branch;
        required double this_change; required binary action (string); required boolean in_mass_failure;
        required binary explanation (string); optional binary fingerprint (string);
        optional binary title (string);",
};
pub(crate) const TESTS: Table = Table {
    name: "tests",
    columns: "
        required int32 test; required binary test_name (string); optional binary file_path (string);
        optional binary status (string); optional binary reason (string);
        optional binary explanation (string); optional double flake_score; optional double flake_rate;
        optional double broken_probability; optional double impact; optional int64 time_lost_ms;
        optional int64 evaluated_at (timestamp(millis,true));",
};

/// The tables of a piece. The file of the last one is renamed last.
pub(crate) const OF_PIECE: [&Table; 4] = [&RESULTS, &ATTEMPTS, &FAILURES, &RUNS];

/// The row of a failure. `key` is that of its run.
pub(crate) fn failure_row(key: &[ExportValue], failure: ExplainedFailure) -> ExportRow {
    let probabilities = &failure.probabilities;
    let values = [
        failure.test.into(),
        failure.status.as_str().into(),
        failure.attempts.into(),
        failure.cause.as_str().into(),
        failure.mine.into(),
        probabilities.flake.into(),
        probabilities.environment.into(),
        probabilities.broken_before.into(),
        probabilities.earlier_on_branch.into(),
        probabilities.this_change.into(),
        failure.action.as_str().into(),
        failure.in_mass_failure.into(),
        failure.explanation.into(),
        failure.fingerprint.into(),
        failure.title.into(),
    ];
    [key, &values].concat()
}
