//! What the routes work with.

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
    timestamp::Timestamp,
};
use assay_flakiness::Diagnose;
use assay_listener::{AdmissionControl, HttpMetrics, MetricsRegistry, Shares, TimeLimits};
use tokio::sync::{Semaphore, watch};

use crate::{error::IntakeError, limits::Limits, metrics::UploadMetrics, upload::StoringPace};

/// How long the look-up of a key may wait, and take.
const LOOK_UP: TimeLimits = TimeLimits {
    waiting: Duration::from_secs(2),
    answering: Duration::from_secs(10),
};
/// Threads that look keys up.
const LOOK_UPS: usize = 2;
/// How long storing may take once its turn has come. What has begun is finished, though its client is told to ask again.
const STORED_WITHIN: Duration = Duration::from_secs(600);
/// The unit in which memory is admitted.
const MEMORY_UNIT: u64 = 1 << 20;

/// Tells the time of a request.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What the routes work with; its clones share everything.
#[derive(Clone)]
pub struct App(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) keys: Arc<dyn IngestKeys>,
    pub(crate) recorder: Arc<dyn Recorder>,
    pub(crate) judge: Arc<dyn Diagnose>,
    /// What the failures of a report are explained by.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) directory: IngestDirectory,
    pub(crate) limiter: Arc<dyn RateLimiter>,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) http: HttpMetrics,
    pub(crate) metrics: UploadMetrics,
    /// Admits look-ups of keys.
    pub(crate) look_ups: AdmissionControl<AdmissionShare>,
    /// Admits uploads to be stored: one of a project at a time, in the order in which they came.
    pub(crate) turns: AdmissionControl<ProjectId>,
    /// How long storing takes.
    pub(crate) pace: StoringPace,
    /// Whether the server stops.
    closing: watch::Sender<bool>,
    /// Memory for parsing, in units.
    memory: Arc<Semaphore>,
    /// Bytes of temporary files.
    spooled: AtomicU64,
}

impl App {
    /// An application that stores reports in `database`, judged by `judge`, for its ingest keys.
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
        Self(Arc::new(Shared {
            directory: IngestDirectory::new(database.clone()),
            keys: database.clone(),
            recorder: database.clone(),
            store: database,
            judge,
            limiter,
            clock,
            http: HttpMetrics::of_listener("ingest", registry),
            metrics: UploadMetrics::registered(registry),
            look_ups: AdmissionControl::new(LOOK_UPS, LOOK_UP),
            turns: AdmissionControl::with_shares(shares, turns),
            memory: Arc::new(Semaphore::new(units)),
            spooled: AtomicU64::new(0),
            pace: StoringPace::default(),
            closing: watch::Sender::new(false),
            limits,
        }))
    }
}

impl App {
    /// Takes no more uploads: those that wait for their turn are told to come again, those that are being stored are finished.
    pub fn close(&self) {
        self.0.closing.send_replace(true);
    }
}

impl Shared {
    /// Completes once the server stops.
    pub(crate) async fn closed(&self) {
        // The sender lives as long as this value.
        let _ = self.closing.subscribe().wait_for(|is_closing| *is_closing).await;
    }

    /// Whether the server stops.
    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Waits for memory to parse an upload of this unpacked size.
    pub(crate) async fn memory_for(&self, unpacked: u64) -> Result<MemoryPermit, IntakeError> {
        let all = self.limits.memory_bytes.div_ceil(MEMORY_UNIT);
        let wanted = unpacked
            .saturating_mul(crate::limits::PARSING_FACTOR)
            .div_ceil(MEMORY_UNIT)
            .clamp(1, all.max(1));
        let busy = || IntakeError::Busy {
            what: "The uploads under way fill the memory for parsing",
            after_s: 10,
        };
        let units = u32::try_from(wanted).map_err(|_| busy())?;
        let acquiring = Arc::clone(&self.memory).acquire_many_owned(units);
        let waited = tokio::time::timeout(self.limits.memory_within, acquiring).await;
        let permit = waited.map_err(|_| busy())?.map_err(|_| busy())?;
        Ok(MemoryPermit {
            _reserved: self.metrics.reserved(wanted * MEMORY_UNIT),
            _permit: permit,
        })
    }

    /// Takes room for temporary files, given back with the value.
    pub(crate) fn spool(self: &Arc<Self>) -> SpoolRoom {
        SpoolRoom {
            app: Arc::clone(self),
            bytes: 0,
        }
    }
}

/// Memory that an upload may use, given back on drop.
pub(crate) struct MemoryPermit {
    _permit: tokio::sync::OwnedSemaphorePermit,
    _reserved: crate::metrics::Reserved,
}

/// Room for one upload's temporary file, given back on drop.
pub(crate) struct SpoolRoom {
    app: Arc<Shared>,
    bytes: u64,
}

impl SpoolRoom {
    /// Takes room for this many more bytes.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), IntakeError> {
        let most = self.app.limits.spool_bytes;
        let grown = self
            .app
            .spooled
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|held| *held <= most)
            });
        if grown.is_err() {
            return Err(IntakeError::Busy {
                what: "The uploads under way fill the room for bodies",
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
