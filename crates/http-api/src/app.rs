//! The state of the routes.

use std::sync::Arc;

use assay_access::limit::RateLimiter;
use assay_answers::links::PublicPages;
use assay_domain::{store::Store, timestamp::Clock};
use assay_flakiness::Diagnose;
use assay_http::{MetricsRegistry, ReadReception};

use crate::{
    cors::Origins,
    memory::AnswerMemory,
    metrics::{MeasuredLimiter, Metrics},
};

/// Default limit of the answers in memory, in bytes.
const ANSWER_BYTES: usize = 256 << 20;

/// The state of the routes. Clones share everything.
#[derive(Clone)]
pub struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) reception: ReadReception,
    pub(crate) engine: Arc<dyn Diagnose>,
    pub(crate) limiter: Arc<MeasuredLimiter>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) memory: Arc<AnswerMemory>,
    pub(crate) origins: Origins,
    pub(crate) pages: Option<PublicPages>,
}

impl App {
    /// Creates an application that receives requests at `reception`, reads from `store`, judges with `engine`, counts
    /// requests with `limiter` and reads the time of each request from `clock`. `engine` must be the one that computed
    /// the stored verdicts.
    pub fn new(
        reception: ReadReception,
        store: Arc<dyn Store>,
        engine: Arc<dyn Diagnose>,
        limiter: Arc<dyn RateLimiter>,
        clock: Clock,
    ) -> Self {
        let metrics = Arc::<Metrics>::default();
        Self {
            reception,
            store,
            engine,
            limiter: Arc::new(MeasuredLimiter::new(limiter, Arc::clone(&metrics))),
            clock,
            metrics,
            origins: Origins::default(),
            pages: None,
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

    /// Lets prompts name the pages at this address.
    #[must_use]
    pub fn with_pages(self, pages: Option<PublicPages>) -> Self {
        Self { pages, ..self }
    }

    /// The registry of `/metrics`, for the metrics of other listeners.
    pub fn metrics_registry(&self) -> MetricsRegistry {
        self.metrics.registry.clone()
    }
}
