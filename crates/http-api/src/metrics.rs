//! What the read API measures besides its requests.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use assay_access::limit::{Admission, Admitting, RateLimiter};
use assay_domain::{store::Connections, timestamp::Timestamp};
use assay_http::{HttpMetrics, MetricsRegistry, ReadMetrics};

/// The metrics of this process.
pub(crate) struct Metrics {
    pub(crate) registry: MetricsRegistry,
    /// The metrics of all requests.
    pub(crate) http: HttpMetrics,
    read: ReadMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = MetricsRegistry::default();
        let (http, read) = registry.read_metrics();
        Self { registry, http, read }
    }
}

impl Metrics {
    /// Counts the rate limit's decision on a request.
    fn decided(&self, admission: &Admission) {
        let decision = match admission {
            Admission::Unlimited => "uncounted",
            Admission::Admitted(_) => "admitted",
            Admission::Refused => "refused",
        };
        self.read
            .rate_limit_decisions
            .get_or_create(&[("decision", decision)])
            .inc();
    }

    /// Counts one judgement of `observations` results.
    pub(crate) fn judged(&self, observations: u64, took: Duration) {
        self.read.engine_observations.inc_by(observations);
        self.read.engine_duration.observe(took.as_secs_f64());
    }

    /// All metrics in the OpenMetrics text format.
    pub(crate) fn open_metrics(
        &self,
        connections: Connections,
        reads: [(&'static str, u64); 2],
    ) -> Result<String, fmt::Error> {
        let read = &self.read;
        for (state, count) in [("busy", connections.busy), ("idle", connections.idle)] {
            read.database_connections
                .get_or_create(&[("state", state)])
                .set(i64::from(count));
        }
        read.database_connections_max.set(i64::from(connections.most));
        for (node, count) in reads {
            // The counter of the store is the source; each scrape copies its value.
            let counter = read.database_reads.get_or_create(&[("node", node)]);
            counter.inner().store(count, Ordering::Relaxed);
        }
        self.registry.open_metrics()
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
