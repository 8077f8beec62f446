//! The metrics of uploads.

use std::time::Duration;

use assay_domain::{id::ProjectId, rules::RuleViolation, store::RecordError, timestamp::Timestamp};
use assay_http::MetricsRegistry;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Unit,
};

/// Histogram bounds in seconds: from a small report to one that waited long for its turn.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];

/// Counters of this process.
pub(crate) struct UploadMetrics {
    stored: Family<StoredLabels, Counter>,
    over_budget: Counter,
    last: Family<ProjectLabels, Gauge>,
    seconds: Family<PhaseLabels, Histogram>,
    waiting: Gauge,
    /// Bytes reserved for reading.
    pub(crate) memory: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoredLabels {
    effect: &'static str,
}

/// Labels the project by its id, since its name may change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProjectLabels {
    project: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    phase: Phase,
}

/// A phase of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the label's values")]
pub(crate) enum Phase {
    /// Receiving the body.
    receive,
    /// Unpacking and parsing.
    parse,
    /// Waiting for its turn.
    wait,
    /// Storing.
    store,
    /// Judging its project.
    judge,
}

impl UploadMetrics {
    pub(crate) fn registered(registry: &MetricsRegistry) -> Self {
        let metrics = Self {
            stored: Family::default(),
            over_budget: Counter::default(),
            last: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            waiting: Gauge::default(),
            memory: Gauge::default(),
        };
        let mut registry = registry.lock();
        registry.register(
            "ingest_uploads_stored",
            "Uploads that were accepted, by their effect",
            metrics.stored.clone(),
        );
        registry.register(
            "ingest_uploads_over_budget",
            "Uploads that were refused because their key has stored what it may store on a day",
            metrics.over_budget.clone(),
        );
        registry.register_with_unit(
            "ingest_last_upload_timestamp",
            "Time at which this process accepted a project's last upload",
            Unit::Seconds,
            metrics.last.clone(),
        );
        registry.register_with_unit(
            "ingest_phase_duration",
            "Time of an upload in each of its phases",
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        registry.register(
            "ingest_uploads_waiting",
            "Uploads that wait for their turn or are being stored",
            metrics.waiting.clone(),
        );
        registry.register_with_unit(
            "ingest_memory_reserved",
            "Memory reserved for reading",
            Unit::Bytes,
            metrics.memory.clone(),
        );
        drop(registry);
        metrics
    }

    /// Counts an upload that was stored or had no effect.
    pub(crate) fn stored(&self, effect: &'static str, project: ProjectId, now: Timestamp) {
        self.stored.get_or_create(&StoredLabels { effect }).inc();
        let labels = ProjectLabels {
            project: project.to_string(),
        };
        self.last.get_or_create(&labels).set(now.unix_ms() / 1_000);
    }

    /// Counts an upload that was refused because of its key's budget.
    pub(crate) fn refused(&self, error: &RecordError) {
        if let RecordError::NotAllowed(RuleViolation::DayUsedUp { .. }) = error {
            self.over_budget.inc();
        }
    }

    /// Counts the time that an upload spent in a phase.
    pub(crate) fn spent(&self, phase: Phase, took: Duration) {
        self.seconds
            .get_or_create(&PhaseLabels { phase })
            .observe(took.as_secs_f64());
    }

    /// Counts an upload as waiting until the returned guard is dropped.
    pub(crate) fn waiting(&self) -> GaugeGuard {
        GaugeGuard::of(&self.waiting, 1)
    }
}

/// Increases a gauge until it is dropped.
pub(crate) struct GaugeGuard(Gauge, i64);

impl GaugeGuard {
    fn of(gauge: &Gauge, amount: i64) -> Self {
        gauge.inc_by(amount);
        Self(gauge.clone(), amount)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec_by(self.1);
    }
}
