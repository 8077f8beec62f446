//! Request metrics, and the registry that all listeners of a process share.
//!
//! Names and units follow Prometheus' conventions: base units, `_total` on counters, one prefix. A label never holds
//! text of a client, because its number of values would be unlimited.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use actix_web::http::StatusCode;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};

/// Bucket bounds in seconds, from a cached status to the live flaky list of a large project.
const BUCKETS: [f64; 13] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// All metrics of a process, each named `assay_…`. Clones share one registry.
#[derive(Clone)]
pub struct MetricsRegistry(Arc<Mutex<Registry>>);

impl MetricsRegistry {
    /// Locks the registry for registration at the start of a program.
    pub fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All metrics in the OpenMetrics text format.
    pub fn open_metrics(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.lock())?;
        Ok(text)
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

/// The metrics of one listener's requests. Clones share them.
#[derive(Clone)]
pub struct HttpMetrics {
    requests: Family<AnswerLabels, Counter>,
    seconds: Family<RouteLabels, Histogram>,
    in_flight: Gauge,
}

/// A route, by its pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    route: &'static str,
    status: u16,
    code: &'static str,
}

impl HttpMetrics {
    /// Registers the metrics of the read API's requests, as `http_requests` and so on.
    pub fn of_the_api(registry: &MetricsRegistry) -> Self {
        Self::registered(&mut registry.lock())
    }

    /// Registers the metrics of another listener's requests. For `front` they are named `front_http_requests` and so
    /// on.
    pub fn of_listener(name: &'static str, registry: &MetricsRegistry) -> Self {
        Self::registered(registry.lock().sub_registry_with_prefix(name))
    }

    fn registered(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            in_flight: Gauge::default(),
        };
        registry.register(
            "http_requests",
            "Requests by route, status and code",
            metrics.requests.clone(),
        );
        registry.register_with_unit(
            "http_request_duration",
            "Time to answer by route",
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        registry.register(
            "http_requests_in_flight",
            "Requests under way",
            metrics.in_flight.clone(),
        );
        metrics
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
        self.requests.get_or_create(&labels).inc();
        self.seconds
            .get_or_create(&RouteLabels { route })
            .observe(took.as_secs_f64());
    }

    /// Counts a request as in progress until the returned guard is dropped, also when the client disconnects.
    pub(crate) fn under_way(&self) -> UnderWay<'_> {
        self.in_flight.inc();
        UnderWay(self)
    }
}

/// A request in progress.
pub(crate) struct UnderWay<'a>(&'a HttpMetrics);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}
