//! What the second listener tells Prometheus.
//!
//! Names and units follow Prometheus' conventions: base units, `_total` on counters, one prefix. No label ever holds a
//! client's own text, which has no end of values.

use std::{fmt, time::Duration};

use actix_web::http::StatusCode;
use assay_access::limit::Admission;
use assay_domain::store::Connections;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};

/// Upper bounds in seconds: from a cached status to a live flaky list of a large project.
const BUCKETS: [f64; 13] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// Counters of this process.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Family<Asked, Histogram>,
    in_flight: Gauge,
    admissions: Family<Decided, Counter>,
    engine_seconds: Histogram,
    observations: Counter,
    connections: Family<Connected, Gauge>,
    connections_max: Gauge,
}

/// A route by its pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    route: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    status: u16,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decided {
    decision: Decision,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the label's values")]
enum Decision {
    admitted,
    refused,
    uncounted,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Connected {
    state: ConnectionState,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the label's values")]
enum ConnectionState {
    busy,
    idle,
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Registry::with_prefix("assay"),
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            in_flight: Gauge::default(),
            admissions: Family::default(),
            engine_seconds: Histogram::new(BUCKETS),
            observations: Counter::default(),
            connections: Family::default(),
            connections_max: Gauge::default(),
        };
        metrics.registered()
    }
}

impl Metrics {
    /// Counts one answered request; `code` is the error's, or a word for a success.
    pub(crate) fn observe(
        &self,
        route: &'static str,
        status: StatusCode,
        code: &'static str,
        took: Duration,
    ) {
        let answered = Answered {
            route,
            status: status.as_u16(),
            code,
        };
        self.requests.get_or_create(&answered).inc();
        self.seconds
            .get_or_create(&Asked { route })
            .observe(took.as_secs_f64());
    }

    /// Counts what the rate limit said of a request.
    pub(crate) fn decided(&self, admission: &Admission) {
        let decision = match admission {
            Admission::Unlimited => Decision::uncounted,
            Admission::Admitted(_) => Decision::admitted,
            Admission::Refused => Decision::refused,
        };
        self.admissions.get_or_create(&Decided { decision }).inc();
    }

    /// Counts one judgement of `observations` results.
    pub(crate) fn judged(&self, observations: u64, took: Duration) {
        self.observations.inc_by(observations);
        self.engine_seconds.observe(took.as_secs_f64());
    }

    /// Counts a request as under way until what is returned is dropped, as it also is when the client goes away.
    pub(crate) fn under_way(&self) -> UnderWay<'_> {
        self.in_flight.inc();
        UnderWay(self)
    }

    /// All metrics in the OpenMetrics text format.
    pub(crate) fn open_metrics(&self, connections: Connections) -> Result<String, fmt::Error> {
        for (state, count) in [
            (ConnectionState::busy, connections.busy),
            (ConnectionState::idle, connections.idle),
        ] {
            self.connections
                .get_or_create(&Connected { state })
                .set(i64::from(count));
        }
        self.connections_max.set(i64::from(connections.most));
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register(
            "build",
            "The running program",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        registry.register(
            "http_requests",
            "Requests by route, status and code",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "http_request_duration",
            "Time to answer by route",
            Unit::Seconds,
            self.seconds.clone(),
        );
        registry.register(
            "http_requests_in_flight",
            "Requests under way",
            self.in_flight.clone(),
        );
        registry.register(
            "rate_limit_decisions",
            "What the rate limit said of requests with a key",
            self.admissions.clone(),
        );
        registry.register_with_unit(
            "engine_duration",
            "Time to judge a project's window",
            Unit::Seconds,
            self.engine_seconds.clone(),
        );
        registry.register(
            "engine_observations",
            "Results that the engine judged",
            self.observations.clone(),
        );
        registry.register(
            "database_connections",
            "Open connections by state",
            self.connections.clone(),
        );
        registry.register(
            "database_connections_max",
            "How many connections there may be",
            self.connections_max.clone(),
        );
        self
    }
}

/// A request under way.
pub(crate) struct UnderWay<'a>(&'a Metrics);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}
