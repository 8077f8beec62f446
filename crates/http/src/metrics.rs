//! The table of all metrics, and the registry that all listeners of a process share.
//!
//! Names and units follow Prometheus' conventions: base units, `_total` on counters, one prefix. A label never holds
//! text of a client, because its number of values would be unlimited.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use actix_web::http::StatusCode;
use assay_domain::{store::ProjectFigures, verdict::VerdictStatus};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};

/// Bucket bounds in seconds, from a cached status to the live flaky list of a large project.
const OF_ANSWERS: [f64; 13] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];
/// Bucket bounds in seconds, from a small report to one that waited long for its turn.
const OF_UPLOADS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];

/// One label, as name and value.
pub type Label<V> = [(&'static str, V); 1];

/// Declares a set of metrics, each with its name, its kind, its help and its unit.
macro_rules! metrics {
    ($(#[$doc:meta])+ $set:ident { $($name:ident: $kind:ty = $new:expr, $help:literal $(, $unit:ident)?;)+ }) => {
        $(#[$doc])+
        #[derive(Clone)]
        pub struct $set {
            $(#[doc = $help] pub $name: $kind,)+
        }

        impl $set {
            fn registered(registry: &mut Registry) -> Self {
                let metrics = Self { $($name: $new,)+ };
                $(metrics!(@register registry, stringify!($name), $help, metrics.$name.clone() $(, $unit)?);)+
                metrics
            }
        }
    };
    (@register $registry:ident, $name:expr, $help:expr, $metric:expr) => {
        $registry.register($name, $help, $metric)
    };
    (@register $registry:ident, $name:expr, $help:expr, $metric:expr, $unit:ident) => {
        $registry.register_with_unit($name, $help, Unit::$unit, $metric)
    };
}

metrics! {
    /// The metrics of one listener's requests. Clones share them.
    HttpMetrics {
        http_requests: Family<AnswerLabels, Counter> = Family::default(),
            "Requests by route, status and code";
        http_request_duration: Family<Label<&'static str>, Histogram> =
            Family::new_with_constructor(|| Histogram::new(OF_ANSWERS)),
            "Time to answer by route", Seconds;
        http_requests_in_flight: Gauge = Gauge::default(), "Requests under way";
    }
}

metrics! {
    /// The other metrics of the read API. Clones share them.
    ReadMetrics {
        rate_limit_decisions: Family<Label<&'static str>, Counter> = Family::default(),
            "Decisions of the rate limit on requests with a key";
        engine_duration: Histogram = Histogram::new(OF_ANSWERS), "Time to judge a project's window", Seconds;
        engine_observations: Counter = Counter::default(), "Results that the engine judged";
        database_connections: Family<Label<&'static str>, Gauge> = Family::default(), "Open connections by state";
        database_connections_max: Gauge = Gauge::default(), "Maximum number of connections";
        database_reads: Family<Label<&'static str>, Counter> = Family::default(),
            "Reads of data by the kind of node that answered";
    }
}

metrics! {
    /// The other metrics of uploads. Clones share them.
    UploadMetrics {
        ingest_uploads_stored: Family<Label<&'static str>, Counter> = Family::default(),
            "Uploads that were accepted, by their effect";
        ingest_uploads_over_budget: Counter = Counter::default(),
            "Uploads that were refused because their key has stored what it may store on a day";
        ingest_last_upload_timestamp: Family<Label<String>, Gauge> = Family::default(),
            "Time at which this process accepted a project's last upload", Seconds;
        ingest_phase_duration: Family<Label<&'static str>, Histogram> =
            Family::new_with_constructor(|| Histogram::new(OF_UPLOADS)),
            "Time of an upload in each of its phases", Seconds;
        ingest_uploads_waiting: Gauge = Gauge::default(), "Uploads that wait for their turn or are being stored";
        ingest_memory_reserved: Gauge = Gauge::default(), "Memory reserved for reading", Bytes;
    }
}

metrics! {
    /// The metrics of tokens and sign-ins. Clones share them.
    IdentityMetrics {
        identity_tokens: Family<Label<&'static str>, Counter> = Family::default(),
            "Tokens of CI jobs by the outcome of their verification";
        identity_key_fetches: Family<Label<&'static str>, Counter> = Family::default(),
            "Fetches of an issuer's description and keys by outcome";
        identity_sign_ins: Family<Label<&'static str>, Counter> = Family::default(),
            "Sign-ins of people at a provider by outcome";
    }
}

impl IdentityMetrics {
    /// Counts one more of an outcome.
    pub fn count(family: &Family<Label<&'static str>, Counter>, outcome: &'static str) {
        family.get_or_create(&[("outcome", outcome)]).inc();
    }
}

metrics! {
    /// The figures of projects, as of their last judgement.
    ProjectMetrics {
        project_tests: Family<Labels, Gauge> = Family::default(), "Tests of 14 days by verdict";
        project_runs: Family<Labels, Gauge> = Family::default(), "Runs of 14 days";
        project_failed_runs: Family<Labels, Gauge> = Family::default(), "Failed runs of 14 days";
        project_flaky_lost: Family<Labels, Gauge> = Family::default(),
            "Time of failed attempts of flaky tests in 14 days", Seconds;
        project_flake_budget_exceeded: Family<Labels, Gauge> = Family::default(),
            "Whether the flake budget is exceeded";
    }
}

/// Several labels.
type Labels = Vec<(&'static str, String)>;

impl ProjectMetrics {
    /// These figures in the OpenMetrics text format.
    pub fn text(projects: &[ProjectFigures]) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("assay");
        let metrics = Self::registered(&mut registry);
        for of in projects {
            let project = || vec![("project_id", of.id.to_string()), ("project", of.name.clone())];
            for (status, tests) in VerdictStatus::LISTED.into_iter().zip(of.judged.tests) {
                let mut labels = project();
                labels.push(("verdict", status.as_str().to_owned()));
                metrics.project_tests.get_or_create(&labels).set(tests);
            }
            for (family, value) in [
                (&metrics.project_runs, of.judged.runs),
                (&metrics.project_failed_runs, of.judged.failed_runs),
                (&metrics.project_flaky_lost, of.judged.flaky_lost_ms / 1_000),
                (
                    &metrics.project_flake_budget_exceeded,
                    i64::from(of.is_budget_exceeded),
                ),
            ] {
                family.get_or_create(&project()).set(value);
            }
        }
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

/// All metrics of a process, each named `assay_…`. Clones share one registry.
#[derive(Clone)]
pub struct MetricsRegistry(Arc<Mutex<Registry>>);

impl MetricsRegistry {
    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All metrics in the OpenMetrics text format.
    pub fn open_metrics(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.lock())?;
        Ok(text)
    }

    /// Registers the metrics of the read API: those of its requests, as `http_requests` and so on, and the others.
    pub fn read_metrics(&self) -> (HttpMetrics, ReadMetrics) {
        let mut registry = self.lock();
        (
            HttpMetrics::registered(&mut registry),
            ReadMetrics::registered(&mut registry),
        )
    }

    /// Registers the metrics of tokens and sign-ins.
    pub fn identity_metrics(&self) -> IdentityMetrics {
        IdentityMetrics::registered(&mut self.lock())
    }

    /// Registers the metrics of uploads apart from those of their requests.
    pub fn upload_metrics(&self) -> UploadMetrics {
        UploadMetrics::registered(&mut self.lock())
    }
}

impl Default for MetricsRegistry {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("assay");
        registry.register(
            "build",
            "The running program",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        Self(Arc::new(Mutex::new(registry)))
    }
}

/// The labels of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct AnswerLabels {
    route: &'static str,
    status: u16,
    code: &'static str,
}

impl HttpMetrics {
    /// Registers the metrics of another listener's requests. For `front` they are named `front_http_requests` and so
    /// on.
    pub fn of_listener(name: &'static str, registry: &MetricsRegistry) -> Self {
        Self::registered(registry.lock().sub_registry_with_prefix(name))
    }

    /// Counts an answered request. `code` is the error's code, or a word for success.
    pub(crate) fn observe(
        &self,
        route: &'static str,
        status: StatusCode,
        code: &'static str,
        took: Duration,
    ) {
        let labels = AnswerLabels {
            route,
            status: status.as_u16(),
            code,
        };
        self.http_requests.get_or_create(&labels).inc();
        self.http_request_duration
            .get_or_create(&[("route", route)])
            .observe(took.as_secs_f64());
    }

    /// Counts a request as in progress until the returned guard is dropped, also when the client disconnects.
    pub(crate) fn under_way(&self) -> GaugeGuard {
        GaugeGuard::of(&self.http_requests_in_flight)
    }
}

/// Counts one more in a gauge until it is dropped.
pub struct GaugeGuard(Gauge);

impl GaugeGuard {
    /// Counts in this gauge.
    pub fn of(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}
