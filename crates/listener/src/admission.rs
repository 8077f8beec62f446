//! Admission control for blocking work: queueing, time limits and load shedding.
//!
//! A fixed number of requests may block a thread at a time, one fewer than there are database connections. All workers
//! share this number. A request that finds all threads busy waits in a bounded queue for a bounded time. A request
//! beyond either bound is rejected before any work is done, so that admitted requests stay fast.
//!
//! A key holds at most half of the threads and a quarter of the queue. Slow requests of one key therefore leave space
//! for other keys.
//!
//! A thread that waits for a hanging database cannot be freed. Its request still gets an answer. When all threads have
//! been held for a while, further requests are rejected at once.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use actix_web::{rt::time::timeout, web};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The length of the queue for each thread. A quarter of it is about what the rate limit admits in half a minute.
const QUEUE_PER_THREAD: usize = 128;
/// The shortest time between two log lines about rejections.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The time limits of a request.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// In the queue.
    pub waiting: Duration,
    /// In total, the queue included.
    pub answering: Duration,
}

/// The numbers of requests that may run and wait, in total and for each key.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// Threads that blocking work may use.
    pub threads: usize,
    /// Threads that one key may use.
    pub threads_of_key: usize,
    /// Requests that may run or wait.
    pub places: usize,
    /// Requests of one key that may run or wait.
    pub places_of_key: usize,
}

/// Why work was not done, or why its result is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// The queue was full, or no thread became free in time. The work did not start.
    Overloaded,
    /// The work did not end in time and still holds its thread.
    TimedOut,
    /// The work panicked.
    Panicked,
}

/// Admits work to a fixed number of blocking threads, with fair shares by key.
pub struct AdmissionControl<K: Key>(Arc<Shared<K>>);

/// The unit of a share.
pub trait Key: Hash + Eq + Copy + Send + 'static {}

impl<K: Hash + Eq + Copy + Send + 'static> Key for K {}

impl<K: Key> AdmissionControl<K> {
    /// Creates an admission to this many threads, at least one.
    pub fn new(threads: usize, limits: TimeLimits) -> Self {
        let threads = threads.max(1);
        let queue = threads.saturating_mul(QUEUE_PER_THREAD);
        let shares = Shares {
            threads,
            threads_of_key: (threads / 2).max(1),
            places: threads.saturating_add(queue),
            places_of_key: (threads / 2).max(1) + queue / 4,
        };
        Self::with_shares(shares, limits)
    }

    /// Creates an admission with these shares.
    pub fn with_shares(shares: Shares, limits: TimeLimits) -> Self {
        Self(Arc::new(Shared {
            limits,
            places: shares.places,
            threads_of_key: shares.threads_of_key,
            places_of_key: shares.places_of_key,
            threads: Arc::new(Semaphore::new(shares.threads)),
            state: Mutex::new(State {
                lanes: HashMap::new(),
                places_taken: 0,
                last_start: Instant::now(),
                rejections: 0,
                logged_at: None,
            }),
        }))
    }

    /// The number of requests of this key that run or wait.
    pub fn places_taken(&self, key: &K) -> usize {
        let state = self.0.state();
        state.lanes.get(key).map_or(0, |lane| lane.places_taken)
    }

    /// Runs blocking work once a thread is free for this key. If the returned future is dropped while it waits, because
    /// the client has disconnected, the work does not start.
    pub async fn run<T: Send + 'static>(
        &self,
        key: K,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Rejected> {
        let began = Instant::now();
        let TimeLimits { waiting, answering } = self.0.limits;
        let mut place = Shared::take_place(&self.0, key)?;
        if timeout(waiting, place.wait_for_thread()).await.is_err() {
            self.0.state().log_rejection();
            return Err(Rejected::Overloaded);
        }
        let result = web::block(move || {
            // The permit is returned when the work ends, even if the client no longer waits.
            let _place = place;
            work()
        });
        match timeout(answering.saturating_sub(began.elapsed()), result).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(Rejected::Panicked),
            Err(_) => Err(Rejected::TimedOut),
        }
    }
}

struct Shared<K: Key> {
    limits: TimeLimits,
    /// Requests that may run or wait.
    places: usize,
    threads: Arc<Semaphore>,
    threads_of_key: usize,
    places_of_key: usize,
    state: Mutex<State<K>>,
}

struct State<K> {
    /// The keys whose requests run or wait.
    lanes: HashMap<K, Lane>,
    places_taken: usize,
    /// The time at which a request last got a thread.
    last_start: Instant,
    /// Rejections since the last log line.
    rejections: u64,
    logged_at: Option<Instant>,
}

/// The counts of one key.
struct Lane {
    threads: Arc<Semaphore>,
    places_taken: usize,
    last_start: Instant,
}

/// A request's place among those that run or wait; dropping it frees the place.
struct QueuePlace<K: Key> {
    shared: Arc<Shared<K>>,
    key: K,
    threads_of_key: Arc<Semaphore>,
    /// The permit of the key's share and the permit of all threads, once the request has both.
    permits: Option<[OwnedSemaphorePermit; 2]>,
}

impl<K: Key> Shared<K> {
    fn take_place(this: &Arc<Self>, key: K) -> Result<QueuePlace<K>, Rejected> {
        let now = Instant::now();
        let mut guard = this.state();
        let state = &mut *guard;
        let lane = state.lanes.get(&key);
        let key_is_full = lane.is_some_and(|lane| {
            lane.places_taken >= this.places_of_key || this.is_stalled(&lane.threads, lane.last_start, now)
        });
        let is_full =
            state.places_taken >= this.places || this.is_stalled(&this.threads, state.last_start, now);
        if key_is_full || is_full {
            state.log_rejection();
            return Err(Rejected::Overloaded);
        }
        let lane = state.lanes.entry(key).or_insert_with(|| Lane {
            threads: Arc::new(Semaphore::new(this.threads_of_key)),
            places_taken: 0,
            last_start: now,
        });
        lane.places_taken += 1;
        state.places_taken += 1;
        Ok(QueuePlace {
            shared: Arc::clone(this),
            key,
            threads_of_key: Arc::clone(&lane.threads),
            permits: None,
        })
    }

    /// Whether all threads have been held for longer than a request would wait, which means that the database hangs.
    fn is_stalled(&self, threads: &Semaphore, last_start: Instant, now: Instant) -> bool {
        threads.available_permits() == 0 && now.saturating_duration_since(last_start) > self.limits.waiting
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key> QueuePlace<K> {
    /// Waits for one of the key's threads, then for one of all threads. Both semaphores are fair.
    async fn wait_for_thread(&mut self) {
        let of_key = Arc::clone(&self.threads_of_key).acquire_owned().await;
        let of_all = Arc::clone(&self.shared.threads).acquire_owned().await;
        // An error means that a semaphore is closed, and these are never closed.
        if let (Ok(of_key), Ok(of_all)) = (of_key, of_all) {
            self.permits = Some([of_key, of_all]);
        }
        let now = Instant::now();
        let mut state = self.shared.state();
        state.last_start = now;
        if let Some(lane) = state.lanes.get_mut(&self.key) {
            lane.last_start = now;
        }
    }
}

impl<K: Key> Drop for QueuePlace<K> {
    fn drop(&mut self) {
        self.permits = None;
        let mut state = self.shared.state();
        state.places_taken = state.places_taken.saturating_sub(1);
        if let Some(lane) = state.lanes.get_mut(&self.key) {
            lane.places_taken = lane.places_taken.saturating_sub(1);
            if lane.places_taken == 0 {
                state.lanes.remove(&self.key);
            }
        }
    }
}

impl<K> State<K> {
    fn log_rejection(&mut self) {
        self.rejections += 1;
        if self.logged_at.is_none_or(|at| at.elapsed() > LOG_EVERY) {
            log::warn!("overloaded: {} requests were rejected", self.rejections);
            self.rejections = 0;
            self.logged_at = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests;
