//! What the routes work with.

use std::sync::Arc;

use assay_access::{limit::RateLimiter, usage::KeyUsage};
use assay_domain::{store::Store, timestamp::Timestamp};
use assay_flakiness::Engine;

use crate::metrics::Metrics;

/// Tells the time of a request.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What the routes work with; its clones share everything.
#[derive(Clone)]
pub struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) limiter: Arc<dyn RateLimiter>,
    pub(crate) clock: Clock,
    pub(crate) usage: Arc<KeyUsage>,
    pub(crate) metrics: Arc<Metrics>,
}

impl App {
    /// An application that reads from `store`, counts requests with `limiter` and takes the time of each request
    /// from `clock`. It judges with the engine's defaults, as the stored verdicts were.
    pub fn new(store: Arc<dyn Store>, limiter: Arc<dyn RateLimiter>, clock: Clock) -> Self {
        Self {
            store,
            engine: Arc::default(),
            limiter,
            clock,
            usage: Arc::default(),
            metrics: Arc::default(),
        }
    }
}
