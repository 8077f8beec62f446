//! The dependencies and shared state of the routes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use assay_access::{directory::AdmissionShare, ingest::IngestDirectory, limit::RateLimiter};
use assay_domain::{
    id::ProjectId,
    intake::IngestKeys,
    store::{Recorder, Store},
    timestamp::Clock,
};
use assay_flakiness::Diagnose;
use assay_listener::{AdmissionControl, HttpMetrics, MetricsRegistry, Shares, TimeLimits};
use tokio::sync::{Semaphore, watch};

use crate::{error::IntakeError, limits::Limits, metrics::UploadMetrics, queue::StoringQueue};

/// Time limits for the look-up of a key.
const LOOK_UP_LIMITS: TimeLimits = TimeLimits {
    waiting: Duration::from_secs(2),
    answering: Duration::from_secs(10),
};
/// Threads that look up keys.
const LOOK_UP_THREADS: usize = 2;
/// Threads that explain failures and store decisions of gates. A project holds at most half of them.
const EXPLANATION_THREADS: usize = 4;
/// Connections to the database beside those of the writers: one for each of these threads.
pub const CONNECTIONS_BESIDE_WRITERS: usize = LOOK_UP_THREADS + EXPLANATION_THREADS;
/// The least time for storing an upload after its turn has begun. Storing continues past it, but the client gets a
/// retry answer.
const STORED_WITHIN: Duration = Duration::from_secs(600);
/// The unit of memory for parsing, in bytes.
const MEMORY_UNIT: u64 = 1 << 20;

/// The dependencies and shared state of the routes. Clones share both.
#[derive(Clone)]
pub struct App(pub(crate) Arc<AppState>);

pub(crate) struct AppState {
    pub(crate) keys: Arc<dyn IngestKeys>,
    pub(crate) recorder: Arc<dyn Recorder>,
    pub(crate) judge: Arc<dyn Diagnose>,
    /// The stored runs that explain the failures of a report.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) directory: IngestDirectory,
    pub(crate) limiter: Arc<dyn RateLimiter>,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) http: HttpMetrics,
    pub(crate) metrics: UploadMetrics,
    /// Admission control for look-ups of keys.
    pub(crate) look_ups: AdmissionControl<AdmissionShare>,
    /// Admission control for explaining failures and storing decisions.
    pub(crate) explanations: AdmissionControl<ProjectId>,
    /// Admission control for storing: one upload per project at a time, in order of arrival.
    pub(crate) turns: AdmissionControl<ProjectId>,
    /// The uploads that `turns` admits, by their size.
    pub(crate) queue: Arc<StoringQueue>,
    /// Whether the server is stopping.
    closing: watch::Sender<bool>,
    /// Free memory for parsing, in units of [`MEMORY_UNIT`].
    memory: Arc<Semaphore>,
    /// Bytes of temporary files in use.
    spooled: AtomicU64,
}

impl App {
    /// Creates the application: `database` stores the reports and the ingest keys, `judge` computes the verdicts.
    pub fn new<D: IngestKeys + Recorder + Store + 'static>(
        database: Arc<D>,
        judge: Arc<dyn Diagnose>,
        limiter: Arc<dyn RateLimiter>,
        clock: Clock,
        limits: Limits,
        registry: &MetricsRegistry,
    ) -> Self {
        let units = usize::try_from(limits.memory_bytes.div_ceil(MEMORY_UNIT)).unwrap_or(usize::MAX >> 4);
        let turns = TimeLimits {
            waiting: limits.turn_within,
            answering: limits.turn_within + STORED_WITHIN,
        };
        let shares = Shares {
            threads: limits.writers,
            threads_of_key: 1,
            places: limits.waiting.saturating_mul(100),
            places_of_key: limits.waiting + 1,
        };
        Self(Arc::new(AppState {
            directory: IngestDirectory::new(database.clone()),
            keys: database.clone(),
            recorder: database.clone(),
            store: database,
            judge,
            limiter,
            clock,
            http: HttpMetrics::of_listener("ingest", registry),
            metrics: UploadMetrics::registered(registry),
            look_ups: AdmissionControl::new(LOOK_UP_THREADS, LOOK_UP_LIMITS),
            explanations: AdmissionControl::new(EXPLANATION_THREADS, turns),
            turns: AdmissionControl::with_shares(shares, turns),
            memory: Arc::new(Semaphore::new(units)),
            spooled: AtomicU64::new(0),
            queue: Arc::default(),
            closing: watch::Sender::new(false),
            limits,
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

    /// Waits for memory to parse an upload of this unpacked size.
    pub(crate) async fn memory_for(&self, unpacked: u64) -> Result<MemoryPermit, IntakeError> {
        let all = self.limits.memory_bytes.div_ceil(MEMORY_UNIT);
        let needed_units = unpacked
            .saturating_mul(crate::limits::PARSING_FACTOR)
            .div_ceil(MEMORY_UNIT)
            .clamp(1, all.max(1));
        let busy = || IntakeError::Busy {
            reason: "The uploads under way fill the memory for parsing",
            after_s: 10,
        };
        let units = u32::try_from(needed_units).map_err(|_| busy())?;
        let acquiring = Arc::clone(&self.memory).acquire_many_owned(units);
        let waited = tokio::time::timeout(self.limits.memory_within, acquiring).await;
        let permit = waited.map_err(|_| busy())?.map_err(|_| busy())?;
        Ok(MemoryPermit {
            _reserved: self.metrics.reserved(needed_units * MEMORY_UNIT),
            _permit: permit,
        })
    }

    /// Reserves space for temporary files, released on drop.
    pub(crate) fn spool(self: &Arc<Self>) -> SpoolRoom {
        SpoolRoom {
            app: Arc::clone(self),
            bytes: 0,
        }
    }
}

/// Memory that an upload may use, released on drop.
pub(crate) struct MemoryPermit {
    _permit: tokio::sync::OwnedSemaphorePermit,
    _reserved: crate::metrics::GaugeGuard,
}

/// Space for one upload's temporary file, released on drop.
pub(crate) struct SpoolRoom {
    app: Arc<AppState>,
    bytes: u64,
}

impl SpoolRoom {
    /// Reserves `bytes` more.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), IntakeError> {
        let most = self.app.limits.spool_bytes;
        let reservation = self
            .app
            .spooled
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|held| *held <= most)
            });
        if reservation.is_err() {
            return Err(IntakeError::Busy {
                reason: "The running uploads use all space for bodies",
                after_s: 10,
            });
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for SpoolRoom {
    fn drop(&mut self) {
        self.app.spooled.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
