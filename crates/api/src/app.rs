//! The state of the routes.

use std::sync::Arc;

use assay_access::{
    directory::{AdmissionShare, Directory},
    limit::RateLimiter,
    usage::KeyUsage,
};
use assay_domain::{store::Store, timestamp::Clock};
use assay_flakiness::Diagnose;
use assay_listener::{AdmissionControl, MetricsRegistry, TimeLimits};

use crate::{cors::Origins, memory::AnswerMemory, metrics::Metrics};

/// Default number of blocking threads.
const THREADS: usize = 512;
/// Default limit of the answers in memory, in bytes.
const ANSWER_BYTES: usize = 256 << 20;

/// The state of the routes. Clones share everything.
#[derive(Clone)]
pub struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) engine: Arc<dyn Diagnose>,
    pub(crate) limiter: Arc<dyn RateLimiter>,
    pub(crate) clock: Clock,
    pub(crate) usage: Arc<KeyUsage>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) admission: Arc<AdmissionControl<AdmissionShare>>,
    pub(crate) memory: Arc<AnswerMemory>,
    pub(crate) origins: Origins,
}

impl App {
    /// Creates an application that reads from `store`, judges with `engine`, counts requests with `limiter` and reads
    /// the time of each request from `clock`. `engine` must be the one that computed the stored verdicts.
    pub fn new(
        store: Arc<dyn Store>,
        engine: Arc<dyn Diagnose>,
        limiter: Arc<dyn RateLimiter>,
        clock: Clock,
    ) -> Self {
        Self {
            directory: Arc::new(Directory::new(Arc::<dyn Store>::clone(&store))),
            store,
            engine,
            limiter,
            clock,
            usage: Arc::default(),
            metrics: Arc::default(),
            admission: Arc::new(AdmissionControl::new(THREADS, TimeLimits::READ)),
            origins: Origins::default(),
            memory: Arc::new(AnswerMemory::new(ANSWER_BYTES)),
        }
    }

    /// Limits the bytes of answers that are being built or sent. Each key may use a quarter. Clones made before are not
    /// changed.
    #[must_use]
    pub fn with_answer_bytes(self, bytes: usize) -> Self {
        Self {
            memory: Arc::new(AnswerMemory::new(bytes)),
            ..self
        }
    }

    /// Allows web pages of these origins to read the API.
    #[must_use]
    pub fn with_origins(self, origins: Origins) -> Self {
        Self { origins, ..self }
    }

    /// The registry of `/metrics`, for the metrics of other listeners.
    pub fn metrics_registry(&self) -> MetricsRegistry {
        self.metrics.registry.clone()
    }

    /// The admission to the blocking threads, for other listeners that read from the same store.
    pub fn admission(&self) -> Arc<AdmissionControl<AdmissionShare>> {
        Arc::clone(&self.admission)
    }

    /// Sets the number of blocking threads for all workers together. Clones made before are not changed.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self {
            admission: Arc::new(AdmissionControl::new(threads, TimeLimits::READ)),
            ..self
        }
    }
}
