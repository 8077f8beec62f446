//! The shared parts of every listener: HTTP/1.1 connections with time limits, TLS, the check of keys, admission
//! control, request ids, the access log, content codings, metrics and shared amounts.
//!
//! A program binds a socket with [`bind()`], describes the listener with [`Listener`] and starts it with a closure that
//! mounts routes on an actix application. The routes answer through [`observe()`], which measures each request, gives
//! it an id and writes its line in the access log. [`Reception::receive`] checks the request's key and runs the route's
//! work, and [`Problem`] is its refusal.

mod access_log;
mod admission;
mod authorization;
mod bind;
mod capacity;
mod causes;
mod connection;
mod descriptors;
mod encoding;
mod form;
mod held;
mod metrics;
mod observe;
mod problem;
mod reception;
mod refusal;
mod reply;
mod request_id;
mod server;
mod signals;
mod tls;
mod unanswerable;

pub use self::{
    access_log::{RATE_LIMITED, SUCCESS},
    admission::{AdmissionControl, Key, Precedence, Rejected, Shares, TimeLimits},
    authorization::authorization,
    bind::{bind, reachable},
    capacity::{Capacity, Holder, Share},
    causes::with_causes,
    connection::Answering,
    descriptors::room_for_connections,
    encoding::{Coding, Encoder},
    form::{Pairs, decode},
    held::{Bound, Held, Part},
    metrics::{
        GaugeGuard, HttpMetrics, IdentityMetrics, Label, MetricsRegistry, ProjectMetrics, ReadMetrics,
        UploadMetrics,
    },
    observe::{Outcome, observe, record_answer},
    problem::{Fault, Problem, refusal},
    reception::{CountedBy, IngestReception, ReadReception, Reception, count},
    reply::{Preferences, Tag},
    request_id::RequestId,
    server::{Continue, Listener},
    signals::{Signals, hangups, ignore_hangups},
    tls::{Certificate, CertificateError, FileFault, Files},
    unanswerable::{Unanswerable, single_test},
};
