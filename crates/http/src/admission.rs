//! Admission control for blocking work: queueing, time limits and load shedding.
//!
//! A fixed number of requests may block a thread at a time. All workers share this number. A request that finds all
//! threads busy waits in a bounded queue for a bounded time. A request beyond either bound is rejected before any work
//! is done, so that admitted requests stay fast.
//!
//! A key holds at most its share of the threads and of the queue, by default half of the threads and a quarter of the
//! queue. Slow requests of one key therefore leave space for other keys.
//!
//! Requests of public keys come after all others. Together they hold at most half of what there is, also of the share of
//! a key.
//!
//! A thread that ends a request starts the next one itself. With a semaphore it would wake a worker, which would wake
//! a thread, and a quarter of the throughput would be lost (docs/performance.md has the figures).
//!
//! A thread that waits for a hanging database cannot be freed. Its request still gets an answer. When all threads have
//! been held for a while, further requests are rejected at once.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    iter,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use actix_web::rt::{task::spawn_blocking, time::timeout};
use tokio::sync::oneshot;

use crate::held::{Bound, Held};

/// The length of the queue for each thread. A key may fill a quarter of the whole queue.
const QUEUE_PER_THREAD: u64 = 128;
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

impl TimeLimits {
    /// The limits of requests that read.
    pub const READ: Self = Self {
        waiting: Duration::from_secs(2),
        answering: Duration::from_secs(10),
    };
}

/// The numbers of requests that may run and wait, in total and for each key.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// Threads that blocking work may use.
    pub threads: u64,
    /// Threads that one key may use.
    pub threads_of_key: u64,
    /// Requests that may run or wait.
    pub places: u64,
    /// Requests of one key that may run or wait.
    pub places_of_key: u64,
}

/// Whose requests start first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precedence {
    /// Those of keys that only their owners have.
    Trusted,
    /// Those of keys that everybody may have.
    Public,
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

/// Requests with equal keys have one share, such as those of an access key or of a project.
pub trait Key: Hash + Eq + Copy + Send + 'static {}

impl<K: Hash + Eq + Copy + Send + 'static> Key for K {}

/// Runs the work of a request, frees its thread, sends the result, and returns what the thread does next.
type Job<K> = Box<dyn FnOnce(HeldThread<K>) -> Option<Start<K>> + Send>;

/// A job and the thread that is held for it.
struct Start<K: Key> {
    thread: HeldThread<K>,
    job: Job<K>,
}

impl<K: Key> AdmissionControl<K> {
    /// Creates admission control for this many threads, at least one.
    pub fn new(threads: usize, limits: TimeLimits) -> Self {
        let threads = u64::try_from(threads.max(1)).unwrap_or(u64::MAX);
        let queue = threads.saturating_mul(QUEUE_PER_THREAD);
        let shares = Shares {
            threads,
            threads_of_key: (threads / 2).max(1),
            places: threads.saturating_add(queue),
            places_of_key: (threads / 2).max(1) + queue / 4,
        };
        Self::with_shares(shares, limits)
    }

    /// Creates admission control with these shares.
    pub fn with_shares(shares: Shares, limits: TimeLimits) -> Self {
        Self(Arc::new(Shared {
            limits,
            threads: Bound::half_for_public(shares.threads),
            threads_of_key: Bound::half_for_public(shares.threads_of_key),
            places: Bound::half_for_public(shares.places),
            places_of_key: Bound::half_for_public(shares.places_of_key),
            state: Mutex::new(State {
                lanes: HashMap::new(),
                threads: Held::default(),
                places: Held::default(),
                last_start: Instant::now(),
                next_number: 0,
                rejections: 0,
                logged_at: None,
            }),
        }))
    }

    /// The number of requests of this key that run or wait.
    pub fn places_taken(&self, key: &K) -> u64 {
        let state = self.0.state();
        state.lanes.get(key).map_or(0, |lane| lane.places.all())
    }

    /// Runs blocking work once a thread is free for this key. If the returned future is dropped while it waits, because
    /// the client has disconnected, the work does not start.
    pub async fn run<T: Send + 'static>(
        &self,
        key: K,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Rejected> {
        self.run_after(key, Precedence::Trusted, work).await
    }

    /// As [`Self::run`], after the requests that have precedence.
    pub async fn run_after<T: Send + 'static>(
        &self,
        key: K,
        precedence: Precedence,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Rejected> {
        let began = Instant::now();
        let TimeLimits { waiting, answering } = self.0.limits;
        let (sender, mut receiver) = oneshot::channel();
        let job = move |thread: HeldThread<K>| {
            let result = catch_unwind(AssertUnwindSafe(work)).map_err(|_| Rejected::Panicked);
            // The place is free before the client has its answer.
            let next = thread.start_next();
            // Sending fails if the client no longer waits.
            let _ = sender.send(result);
            next
        };
        let place = Shared::admit(&self.0, key, precedence, Box::new(job))?;
        let result = match timeout(waiting, &mut receiver).await {
            Ok(result) => result,
            Err(_) if place.leave_queue() => {
                self.0.state().log_rejection();
                return Err(Rejected::Overloaded);
            }
            Err(_) => {
                let left = answering.saturating_sub(began.elapsed());
                timeout(left, receiver).await.map_err(|_| Rejected::TimedOut)?
            }
        };
        // A job without a result was dropped with its worker.
        result.unwrap_or(Err(Rejected::Panicked))
    }
}

struct Shared<K: Key> {
    limits: TimeLimits,
    threads: Bound,
    threads_of_key: Bound,
    places: Bound,
    places_of_key: Bound,
    state: Mutex<State<K>>,
}

struct State<K: Key> {
    /// The keys whose requests run or wait.
    lanes: HashMap<K, Lane<K>>,
    threads: Held,
    places: Held,
    /// The time at which a request last got a thread.
    last_start: Instant,
    /// The number of the next request. Numbers are in the order of arrival.
    next_number: u64,
    /// Rejections since the last log line.
    rejections: u64,
    logged_at: Option<Instant>,
}

/// The order in which requests start: by precedence, then by number.
type Order = (Precedence, u64);

/// The requests of one key.
struct Lane<K: Key> {
    threads: Held,
    places: Held,
    /// The requests that wait.
    waiting: BTreeMap<Order, Job<K>>,
    last_start: Instant,
}

/// A request's place in the queue, until it starts; dropping it frees the place.
struct QueuePlace<K: Key> {
    shared: Arc<Shared<K>>,
    key: K,
    order: Order,
}

/// A thread that a key holds; dropping it frees the thread and the place of its request.
struct HeldThread<K: Key> {
    shared: Arc<Shared<K>>,
    /// The key, until the thread is free.
    key: Option<K>,
    precedence: Precedence,
}

impl<K: Key> Shared<K> {
    /// Starts a job if a thread is free for its key, or else appends it to the queue.
    fn admit(
        this: &Arc<Self>,
        key: K,
        precedence: Precedence,
        job: Job<K>,
    ) -> Result<QueuePlace<K>, Rejected> {
        let now = Instant::now();
        let mut guard = this.state();
        let state = &mut *guard;
        let key_is_full = state.lanes.get(&key).is_some_and(|lane| {
            !lane.places.has_room(this.places_of_key, precedence, 1)
                || (lane.threads.all() >= this.threads_of_key.all && this.is_stalled(lane.last_start, now))
        });
        let is_full = !state.places.has_room(this.places, precedence, 1)
            || (state.threads.all() >= this.threads.all && this.is_stalled(state.last_start, now));
        if key_is_full || is_full {
            state.log_rejection();
            return Err(Rejected::Overloaded);
        }
        let order = (precedence, state.next_number);
        state.next_number += 1;
        state.places.take(precedence, 1);
        let lane = state.lanes.entry(key).or_insert_with(|| Lane {
            threads: Held::default(),
            places: Held::default(),
            waiting: BTreeMap::new(),
            last_start: now,
        });
        lane.places.take(precedence, 1);
        lane.waiting.insert(order, job);
        // More than one starts only after a worker has ended with jobs that it had not begun.
        let starts: Vec<_> = iter::from_fn(|| state.start_first(this)).collect();
        drop(guard);
        for mut start in starts {
            spawn_blocking(move || {
                while let Some(next) = (start.job)(start.thread) {
                    start = next;
                }
            });
        }
        Ok(QueuePlace {
            shared: Arc::clone(this),
            key,
            order,
        })
    }

    /// Whether threads that are all held have been held for longer than a request would wait, which means that the
    /// database hangs.
    fn is_stalled(&self, last_start: Instant, now: Instant) -> bool {
        now.saturating_duration_since(last_start) > self.limits.waiting
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key> State<K> {
    /// Takes the first request of the queue whose key may hold a further thread, and a thread for it.
    fn start_first(&mut self, shared: &Arc<Shared<K>>) -> Option<Start<K>> {
        if self.threads.all() >= shared.threads.all {
            return None;
        }
        let threads = self.threads;
        let may_start = |lane: &Lane<K>, (precedence, _): Order| {
            threads.has_room(shared.threads, precedence, 1)
                && lane.threads.has_room(shared.threads_of_key, precedence, 1)
        };
        let (order, key, lane) = self
            .lanes
            .iter_mut()
            .filter_map(|(key, lane)| Some((*lane.waiting.first_key_value()?.0, *key, lane)))
            .filter(|(order, _, lane)| may_start(lane, *order))
            .min_by_key(|(order, ..)| *order)?;
        let job = lane.waiting.remove(&order)?;
        let precedence = order.0;
        let now = Instant::now();
        lane.threads.take(precedence, 1);
        lane.last_start = now;
        self.threads.take(precedence, 1);
        self.last_start = now;
        let thread = HeldThread {
            shared: Arc::clone(shared),
            key: Some(key),
            precedence,
        };
        Some(Start { thread, job })
    }

    /// Frees a thread of a key, and the place of the request that it ran.
    fn free_thread(&mut self, key: &K, precedence: Precedence) {
        self.threads.give_back(precedence, 1);
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.threads.give_back(precedence, 1);
        }
        self.free_place(key, precedence);
    }

    /// Frees a place of a key after its request has left the queue or its thread.
    fn free_place(&mut self, key: &K, precedence: Precedence) {
        self.places.give_back(precedence, 1);
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        lane.places.give_back(precedence, 1);
        if lane.places.all() == 0 {
            self.lanes.remove(key);
        }
    }

    fn log_rejection(&mut self) {
        self.rejections += 1;
        if self.logged_at.is_none_or(|at| at.elapsed() > LOG_EVERY) {
            log::warn!("overloaded: {} requests were rejected", self.rejections);
            self.rejections = 0;
            self.logged_at = Some(Instant::now());
        }
    }
}

impl<K: Key> QueuePlace<K> {
    /// Takes the request out of the queue. Returns false if it has started.
    fn leave_queue(&self) -> bool {
        let mut state = self.shared.state();
        let lane = state.lanes.get_mut(&self.key);
        let job = lane.and_then(|lane| lane.waiting.remove(&self.order));
        if job.is_some() {
            state.free_place(&self.key, self.order.0);
        }
        // The job's own values are dropped after the lock is free.
        drop(state);
        job.is_some()
    }
}

impl<K: Key> Drop for QueuePlace<K> {
    fn drop(&mut self) {
        self.leave_queue();
    }
}

impl<K: Key> HeldThread<K> {
    /// Frees the thread and takes the first request that may start.
    fn start_next(mut self) -> Option<Start<K>> {
        let key = self.key.take()?;
        let mut state = self.shared.state();
        state.free_thread(&key, self.precedence);
        state.start_first(&self.shared)
    }
}

impl<K: Key> Drop for HeldThread<K> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.shared.state().free_thread(&key, self.precedence);
        }
    }
}

#[cfg(test)]
mod tests;
