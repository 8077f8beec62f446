//! Counters of requests, as the second listener tells them.

use std::{fmt, time::Duration};

use actix_web::http::StatusCode;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Upper bounds in seconds: from a cached status to a live flaky list of a large project.
const BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];

/// How many requests were answered how, and how long it took.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Family<Asked, Histogram>,
}

/// A route by its pattern: never a client's own text, which has no end of values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    route: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    status: u16,
}

impl Default for Metrics {
    fn default() -> Self {
        let requests = Family::default();
        let seconds: Family<Asked, Histogram> = Family::new_with_constructor(|| Histogram::new(BUCKETS));
        let mut registry = Registry::with_prefix("assay");
        registry.register("http_requests", "Requests by route and status", requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time to answer by route",
            Unit::Seconds,
            seconds.clone(),
        );
        Self {
            registry,
            requests,
            seconds,
        }
    }
}

impl Metrics {
    /// Counts one answered request.
    pub(crate) fn observe(&self, route: &'static str, status: StatusCode, took: Duration) {
        let answered = Answered {
            route,
            status: status.as_u16(),
        };
        self.requests.get_or_create(&answered).inc();
        self.seconds
            .get_or_create(&Asked { route })
            .observe(took.as_secs_f64());
    }

    /// All counters in the OpenMetrics text format.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
