//! The metrics of the read API.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use assay_access::limit::{Admission, Admitting, RateLimiter};
use assay_domain::{
    store::{Connections, NodeReads},
    timestamp::Timestamp,
};
use assay_http::{HttpMetrics, MetricsRegistry};
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Unit,
};

/// Histogram bounds in seconds: from a project of a few runs to a large one.
const BUCKETS: [f64; 13] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// Counters of this process.
pub(crate) struct Metrics {
    pub(crate) registry: MetricsRegistry,
    /// The metrics of all requests.
    pub(crate) http: HttpMetrics,
    admissions: Family<AdmissionLabels, Counter>,
    engine_seconds: Histogram,
    observations: Counter,
    connections: Family<ConnectionLabels, Gauge>,
    connections_max: Gauge,
    reads: Family<NodeLabels, Counter>,
    standby_connections: Family<NodeLabels, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AdmissionLabels {
    decision: Decision,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the label's values")]
enum Decision {
    admitted,
    refused,
    uncounted,
}

/// A node of the database, by its address. The store bounds the number of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabels {
    node: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConnectionLabels {
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
        let registry = MetricsRegistry::default();
        let metrics = Self {
            http: HttpMetrics::of_the_api(&registry),
            registry,
            admissions: Family::default(),
            engine_seconds: Histogram::new(BUCKETS),
            observations: Counter::default(),
            connections: Family::default(),
            connections_max: Gauge::default(),
            reads: Family::default(),
            standby_connections: Family::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    /// Counts the rate limit's decision on a request.
    fn decided(&self, admission: &Admission) {
        let decision = match admission {
            Admission::Unlimited => Decision::uncounted,
            Admission::Admitted(_) => Decision::admitted,
            Admission::Refused => Decision::refused,
        };
        self.admissions.get_or_create(&AdmissionLabels { decision }).inc();
    }

    /// Counts one judgement of `observations` results.
    pub(crate) fn judged(&self, observations: u64, took: Duration) {
        self.observations.inc_by(observations);
        self.engine_seconds.observe(took.as_secs_f64());
    }

    /// All metrics in the OpenMetrics text format.
    pub(crate) fn open_metrics(
        &self,
        connections: Connections,
        nodes: Vec<NodeReads>,
    ) -> Result<String, fmt::Error> {
        for (state, count) in [
            (ConnectionState::busy, connections.busy),
            (ConnectionState::idle, connections.idle),
        ] {
            self.connections
                .get_or_create(&ConnectionLabels { state })
                .set(i64::from(count));
        }
        self.connections_max.set(i64::from(connections.most));
        for NodeReads {
            node,
            reads,
            standby_connections,
        } in nodes
        {
            let labels = NodeLabels { node };
            // The counter of the store is the source; each scrape copies its value.
            self.reads
                .get_or_create(&labels)
                .inner()
                .store(reads, Ordering::Relaxed);
            if let Some(connections) = standby_connections {
                self.standby_connections
                    .get_or_create(&labels)
                    .set(i64::from(connections));
            }
        }
        self.registry.open_metrics()
    }

    fn register(&self) {
        let mut registry = self.registry.lock();
        registry.register(
            "rate_limit_decisions",
            "Decisions of the rate limit on requests with a key",
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
            "Maximum number of connections",
            self.connections_max.clone(),
        );
        registry.register(
            "database_reads",
            "Reads of data by the node that answered",
            self.reads.clone(),
        );
        registry.register(
            "database_standby_connections",
            "Open connections to each standby",
            self.standby_connections.clone(),
        );
    }
}

/// A rate limiter whose decisions are counted.
pub(crate) struct MeasuredLimiter {
    limiter: Arc<dyn RateLimiter>,
    metrics: Arc<Metrics>,
}

impl MeasuredLimiter {
    pub(crate) fn new(limiter: Arc<dyn RateLimiter>, metrics: Arc<Metrics>) -> Self {
        Self { limiter, metrics }
    }
}

impl RateLimiter for MeasuredLimiter {
    fn admit<'a>(&'a self, budget_id: &'a [u8], now: Timestamp) -> Admitting<'a> {
        Box::pin(async move {
            let admission = self.limiter.admit(budget_id, now).await;
            self.metrics.decided(&admission);
            admission
        })
    }
}
