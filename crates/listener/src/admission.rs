//! Admission control for work that blocks: queueing, time limits and load shedding.
//!
//! A fixed number of requests may block a thread at a time, one fewer than there are connections to the database. All
//! workers share them. A request that finds all threads busy waits in a bounded queue for a bounded time. Beyond either
//! bound it is rejected before any work is done, which keeps the server quick for the requests that it admitted.
//!
//! A key holds at most half of the threads and a quarter of the queue, so that one key's slow requests leave room for
//! those of all others.
//!
//! A thread that waits for a database that never answers cannot be freed. Its request is answered all the same, and once
//! all threads have been held for a while, further requests are rejected at once.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use actix_web::{rt::time::timeout, web};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many requests may wait for each thread. The quarter of one thread's queue is about what the rate limit admits in half
/// a minute.
const QUEUE_PER_THREAD: usize = 128;
/// How often rejections are logged.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// How long a request may take.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// In the queue.
    pub waiting: Duration,
    /// Altogether, the queue included.
    pub answering: Duration,
}

/// How many requests may run and wait, in all and of each key.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// Threads that may block.
    pub threads: usize,
    /// Threads of one key.
    pub threads_of_key: usize,
    /// Requests that may run or wait.
    pub places: usize,
    /// Requests of one key that may run or wait.
    pub places_of_key: usize,
}

/// Why work was not done, or its outcome is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// The queue was full, or no thread came free in time. Nothing was done.
    Overloaded,
    /// It did not end in time. Its thread is still held.
    TimedOut,
    /// It panicked.
    Panicked,
}

/// Admits work to a number of threads that may block, in fair shares by key.
pub struct AdmissionControl<K: Key>(Arc<Shared<K>>);

/// What shares are counted by.
pub trait Key: Hash + Eq + Copy + Send + 'static {}

impl<K: Hash + Eq + Copy + Send + 'static> Key for K {}

impl<K: Key> AdmissionControl<K> {
    /// Admission to this many threads, at least one.
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

    /// Admission with these shares of keys.
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

    /// How much work of this key runs or waits.
    pub fn places_taken(&self, key: &K) -> usize {
        let state = self.0.state();
        state.lanes.get(key).map_or(0, |lane| lane.places_taken)
    }

    /// Runs work on a thread that may block, once there is one for this key. The work is not done where the returned future is
    /// dropped while it waits, as it is when the client hangs up.
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
        let done = web::block(move || {
            // Given back when the work ends, though nothing waits for its answer any more.
            let _place = place;
            work()
        });
        match timeout(answering.saturating_sub(began.elapsed()), done).await {
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
    /// The keys that have requests which run or wait.
    lanes: HashMap<K, Lane>,
    places_taken: usize,
    /// When a request last got a thread.
    last_start: Instant,
    /// Rejections since they were last logged.
    rejections: u64,
    logged_at: Option<Instant>,
}

/// The requests of one key.
struct Lane {
    threads: Arc<Semaphore>,
    places_taken: usize,
    last_start: Instant,
}

/// A request's place among those that run or wait, given up on drop.
struct Place<K: Key> {
    shared: Arc<Shared<K>>,
    key: K,
    threads_of_key: Arc<Semaphore>,
    /// The key's thread and one of all, once the request has both.
    permits: Option<[OwnedSemaphorePermit; 2]>,
}

impl<K: Key> Shared<K> {
    fn take_place(this: &Arc<Self>, key: K) -> Result<Place<K>, Rejected> {
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
        Ok(Place {
            shared: Arc::clone(this),
            key,
            threads_of_key: Arc::clone(&lane.threads),
            permits: None,
        })
    }

    /// Whether all threads are held and none has come free for as long as a request would wait: the database hangs.
    fn is_stalled(&self, threads: &Semaphore, last_start: Instant, now: Instant) -> bool {
        threads.available_permits() == 0 && now.saturating_duration_since(last_start) > self.limits.waiting
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key> Place<K> {
    /// Waits for one of the key's threads, then for one of all. Both semaphores are fair.
    async fn wait_for_thread(&mut self) {
        let of_key = Arc::clone(&self.threads_of_key).acquire_owned().await;
        let of_all = Arc::clone(&self.shared.threads).acquire_owned().await;
        // They fail only where a semaphore is closed, which these never are.
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

impl<K: Key> Drop for Place<K> {
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
