//! The access log: one line per request.

use std::time::Duration;

use actix_web::http::{Method, StatusCode};

use crate::RequestId;

/// The log target of the access log. `RUST_LOG=info,access=off` switches it off.
const TARGET: &str = "access";
/// The code of a successful request.
pub const SUCCESS: &str = "ok";
/// The code of a request over the rate limit. Its response has no body that could carry a code.
pub const RATE_LIMITED: &str = "rate_limited";

/// The fields of an access-log line, for the text and the JSON format.
///
/// No field holds text of the client: no path, query, key or body. The fields are the route's pattern, fixed words,
/// numbers and a validated id. So a client cannot forge a log line.
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

    /// The method if it is a standard one, because a client may send any word of any length.
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

/// Rounds to microseconds.
fn milliseconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}
