//! The access log: one line a request.

use std::time::Duration;

use actix_web::http::{Method, StatusCode};

use crate::RequestId;

/// The target of the access log, by which it can be switched off: `RUST_LOG=info,access=off`.
const TARGET: &str = "access";
/// The code of a request that was answered.
pub const SUCCESS: &str = "ok";
/// The code of a request over the limit, whose response has no body to carry one.
pub const RATE_LIMITED: &str = "rate_limited";

/// What the access log says of one request, as fields that text and JSON logs both show.
///
/// Nothing in it is a client's own text: no path, query, key or body, but the route's pattern, words of ours,
/// numbers, and an id that was checked. So nobody can forge a line.
pub(crate) struct AccessLine<'a> {
    pub(crate) method: &'a Method,
    pub(crate) route: &'static str,
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) took: Duration,
    pub(crate) id: &'a RequestId,
}

impl AccessLine<'_> {
    pub(crate) fn log(&self) {
        log::info!(
            target: TARGET,
            method = self.method(),
            route = self.route,
            status = self.status.as_u16(),
            code = self.code,
            duration_ms = milliseconds(self.took),
            request_id:% = self.id;
            "request"
        );
    }

    /// The method where it is a usual one: a method may be any word, of any length.
    fn method(&self) -> &str {
        const USUAL: [Method; 7] = [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ];
        if USUAL.contains(self.method) {
            self.method.as_str()
        } else {
            "other"
        }
    }
}

/// To the microsecond.
fn milliseconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}
