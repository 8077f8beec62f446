//! Observation of every answer: request id, metrics and access log.

use std::time::Instant;

use actix_web::{HttpRequest, HttpResponse, http::Method};

use crate::{RequestId, access_log::AccessLine, metrics::HttpMetrics};

/// A response with its labels for the access log and the metrics.
pub struct Outcome {
    /// The response.
    pub response: HttpResponse,
    /// The pattern of the route that answered.
    pub route: &'static str,
    /// The error's code, or [`SUCCESS`](crate::SUCCESS).
    pub code: &'static str,
}

/// Answers a request with `respond`, which gets the request's id.
pub async fn observe(
    metrics: &HttpMetrics,
    request: &HttpRequest,
    respond: impl AsyncFnOnce(&RequestId) -> Outcome,
) -> HttpResponse {
    let started = Instant::now();
    let id = RequestId::of(request);
    let _under_way = metrics.under_way();
    let outcome = respond(&id).await;
    record_answer(metrics, request.method(), &id, started, outcome)
}

/// Measures and logs an answer to a request that arrived at `started`, and adds the request's id to it.
pub fn record_answer(
    metrics: &HttpMetrics,
    method: &Method,
    id: &RequestId,
    started: Instant,
    outcome: Outcome,
) -> HttpResponse {
    let Outcome {
        mut response,
        route,
        code,
    } = outcome;
    if id.is_the_clients() || !response.status().is_client_error() {
        // A refusal gets no random id: the answers for a missing project and for another organization's must be equal
        // bytes.
        response.headers_mut().insert(RequestId::HEADER, id.value());
    }
    let took = started.elapsed();
    metrics.observe(route, response.status(), code, took);
    AccessLine {
        method,
        route,
        status: response.status(),
        code,
        took,
        id,
    }
    .log();
    response
}
