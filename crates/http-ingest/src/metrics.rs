//! What uploads count.

use std::time::Duration;

use assay_domain::{id::ProjectId, rules::RuleViolation, store::RecordError, timestamp::Timestamp};

use crate::app::AppState;

impl AppState {
    /// Counts an upload that was stored or had no effect.
    pub(crate) fn count_stored(&self, effect: &'static str, project: ProjectId, now: Timestamp) {
        let metrics = &self.metrics;
        metrics
            .ingest_uploads_stored
            .get_or_create(&[("effect", effect)])
            .inc();
        // By its id, since its name may change.
        metrics
            .ingest_last_upload_timestamp
            .get_or_create(&[("project", project.to_string())])
            .set(now.unix_ms() / 1_000);
    }

    /// Counts an upload that was refused because of its key's budget.
    pub(crate) fn count_refused(&self, error: &RecordError) {
        if let RecordError::NotAllowed(RuleViolation::DayUsedUp { .. }) = error {
            self.metrics.ingest_uploads_over_budget.inc();
        }
    }

    /// Counts the time that an upload spent in a phase: `receive` its body, `parse` it, `wait` for its turn, `store` it,
    /// or `judge` its project.
    pub(crate) fn count_phase(&self, phase: &'static str, took: Duration) {
        self.metrics
            .ingest_phase_duration
            .get_or_create(&[("phase", phase)])
            .observe(took.as_secs_f64());
    }
}
