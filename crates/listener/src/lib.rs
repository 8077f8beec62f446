//! What every listener shares: HTTP/1.1 connections that end in time, TLS, admission control, request ids, the access log,
//! content codings and the metrics of requests.
//!
//! A program binds a socket with [`bind()`], describes the listener with [`Listener`] and starts it with a closure that
//! mounts routes on an actix application. The routes answer through [`observe()`], so that every request is measured, has an
//! id and a line in the log.

mod access_log;
mod admission;
mod bind;
mod connection;
mod descriptors;
mod encoding;
mod metrics;
mod observe;
mod panic_level;
mod refusal;
mod request_id;
mod server;
mod tls;

pub use self::{
    access_log::{RATE_LIMITED, SUCCESS},
    admission::{AdmissionControl, Key, Rejected, Shares, TimeLimits},
    bind::bind,
    connection::Answering,
    descriptors::room_for_connections,
    encoding::{Coding, Encoder},
    metrics::{HttpMetrics, MetricsRegistry},
    observe::{Outcome, observe},
    panic_level::PanicLevel,
    request_id::RequestId,
    server::{Continue, Listener},
    tls::{Certificate, CertificateError, FileFault, Files},
};
