//! The dependencies and shared state of the routes.

use std::{num::NonZero, sync::Arc, thread, time::Duration};

use assay_access::{check::IngestGrant, limit::RateLimiter, token::Tokens};
use assay_answers::links::{self, PublicPages};
use assay_domain::{
    id::{KeyId, ProjectId, RunId},
    ingest::IngestKeys,
    key::KeyHash,
    store::{Recorder, Store},
    timestamp::Clock,
};
use assay_flakiness::Diagnose;
use assay_http::{
    AdmissionControl, Capacity, Holder, HttpMetrics, IdentityMetrics, IngestReception, MetricsRegistry,
    Precedence, Share, TimeLimits, UploadMetrics,
};
use tokio::sync::watch;

use crate::{error::IngestError, limits::Limits, memory::UploadMemory, queue::StoringQueue};

/// Threads that look up keys.
const LOOK_UP_THREADS: usize = 2;
/// Threads that fetch the keys of issuers. One issuer holds at most half of them.
const FETCH_THREADS: usize = 2;
/// Threads that explain failures and store decisions of gates. A project holds at most half of them.
const EXPLANATION_THREADS: usize = 4;
/// Connections to the database beside those of the writers: one for each of these threads.
pub const CONNECTIONS_BESIDE_WRITERS: usize = LOOK_UP_THREADS + EXPLANATION_THREADS;
/// The least time for storing an upload after its turn has begun. Storing continues past it, but the client gets a
/// retry answer.
const STORED_WITHIN: Duration = Duration::from_secs(600);
/// Uploads that are read or wait for it, for each one of a key.
const KEYS_THAT_READ: u64 = 20;

/// The dependencies and shared state of the routes. Clones share both.
#[derive(Clone)]
pub struct App(pub(crate) Arc<AppState>);

pub(crate) struct AppState {
    pub(crate) keys: Arc<dyn IngestKeys>,
    pub(crate) recorder: Arc<dyn Recorder>,
    pub(crate) judge: Arc<dyn Diagnose>,
    /// The stored runs that explain the failures of a report.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) reception: IngestReception,
    /// The check of tokens in the place of a key.
    pub(crate) tokens: Tokens,
    /// Admission control for fetching the keys of issuers.
    pub(crate) fetches: AdmissionControl<KeyHash>,
    pub(crate) limiter: Arc<dyn RateLimiter>,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    /// The pages for people, if their address is known.
    pub(crate) pages: Option<PublicPages>,
    pub(crate) http: HttpMetrics,
    pub(crate) metrics: UploadMetrics,
    pub(crate) identity: IdentityMetrics,
    /// Admission control for explaining failures and storing decisions.
    pub(crate) explanations: AdmissionControl<ProjectId>,
    /// Admission control for storing: one upload per project at a time, in order of arrival.
    pub(crate) turns: AdmissionControl<ProjectId>,
    /// The uploads that `turns` admits, by their size.
    pub(crate) queue: Arc<StoringQueue>,
    /// Whether the server is stopping.
    closing: watch::Sender<bool>,
    /// Admission control for unpacking and reading: as many threads as processors.
    pub(crate) readers: AdmissionControl<KeyId>,
    /// Memory for reading.
    memory: Arc<Capacity>,
    /// Bytes of temporary files.
    spool: Arc<Capacity>,
}

impl App {
    /// Creates the application: `database` stores the reports and the ingest keys, `judge` computes the verdicts, `tokens`
    /// checks what CI jobs send in the place of keys. Answers link to the pages under `pages_url`.
    #[expect(clippy::too_many_arguments, reason = "the program wires the parts here, once")]
    pub fn new<D: IngestKeys + Recorder + Store + 'static>(
        database: Arc<D>,
        judge: Arc<dyn Diagnose>,
        tokens: Tokens,
        limiter: Arc<dyn RateLimiter>,
        clock: Clock,
        limits: Limits,
        pages_url: Option<String>,
        registry: &MetricsRegistry,
        identity: IdentityMetrics,
    ) -> Self {
        let turns = TimeLimits {
            waiting: limits.turn_within,
            answering: limits.turn_within + STORED_WITHIN,
        };
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let waiting = count(limits.waiting);
        let storing = assay_http::Shares {
            threads: count(limits.writers),
            threads_of_key: 1,
            places: waiting.saturating_mul(100),
            places_of_key: waiting + 1,
        };
        let processors = count(thread::available_parallelism().map_or(1, NonZero::get));
        let reading = assay_http::Shares {
            threads: processors,
            threads_of_key: (processors / 2).max(1),
            places: waiting.saturating_mul(KEYS_THAT_READ),
            places_of_key: waiting + 1,
        };
        let metrics = registry.upload_metrics();
        // A key holds at most half.
        let capacity = |all: u64, gauge| Capacity::new(all, all.div_ceil(2), gauge);
        Self(Arc::new(AppState {
            reception: IngestReception::new(database.clone(), LOOK_UP_THREADS, None),
            tokens,
            fetches: AdmissionControl::new(FETCH_THREADS, TimeLimits::READ),
            keys: database.clone(),
            recorder: database.clone(),
            store: database,
            judge,
            limiter,
            clock,
            http: HttpMetrics::of_listener("ingest", registry),
            memory: capacity(limits.memory_bytes, Some(metrics.ingest_memory_reserved.clone())),
            spool: capacity(limits.spool_bytes, None),
            metrics,
            identity,
            explanations: AdmissionControl::new(EXPLANATION_THREADS, turns),
            turns: AdmissionControl::with_shares(storing, turns),
            readers: AdmissionControl::with_shares(reading, turns),
            queue: Arc::default(),
            closing: watch::Sender::new(false),
            limits,
            pages: pages_url.as_deref().map(PublicPages::at),
        }))
    }
}

impl App {
    /// Stops accepting uploads. Uploads that wait for their turn get a retry answer; running ones finish.
    pub fn close(&self) {
        self.0.closing.send_replace(true);
    }
}

impl AppState {
    /// Completes when the server is stopping.
    pub(crate) async fn closed(&self) {
        // `self` owns the sender, so the channel cannot close.
        let _ = self.closing.subscribe().wait_for(|is_closing| *is_closing).await;
    }

    /// Whether the server is stopping.
    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Waits for memory to read an upload. It may grow later.
    pub(crate) async fn memory_for(&self, holder: Holder, bytes: u64) -> Result<UploadMemory, IngestError> {
        let bytes = bytes.min(self.memory.of_key());
        let share = self.memory.wait_for(holder, bytes, self.limits.memory_within);
        match share.await {
            Some(share) => Ok(UploadMemory::new(share)),
            None => Err(IngestError::Busy {
                reason: "The uploads under way fill the memory for reading",
                after_s: 10,
            }),
        }
    }

    /// The address of a run's page for people, if the server knows the address of its pages.
    pub(crate) fn page_of(&self, project: ProjectId, run: RunId) -> Option<String> {
        Some(self.pages.as_ref()?.address(&links::run(project, &run)))
    }

    /// An empty share of the space for temporary files.
    pub(crate) fn spool(&self, holder: Holder) -> Share {
        self.spool.empty(holder)
    }
}

/// The key of an upload, as the holder of shares.
pub(crate) fn holder(grant: &IngestGrant) -> Holder {
    Holder {
        key: grant.id,
        precedence: if grant.terms.pull_requests_only {
            Precedence::Public
        } else {
            Precedence::Trusted
        },
    }
}
