//! Who may wait for a thread that may block, and for how long; and those threads.
//!
//! A worker has a few such threads, as many as it has connections to the database. A request that finds them busy
//! waits for its turn, unless so many wait already that its turn would come too late: then it is turned away at
//! once, before any work, which costs next to nothing and keeps the server quick for those that it admitted. What
//! may wait follows from what was measured: each turn that came late halves the queue, each one in time widens it.
//!
//! A thread that waits for a database that never answers cannot be freed. Its request is answered all the same, and
//! while all threads are held like this, every other request is turned away at once.
//!
//! The threads are the turnstile's own, rather than tokio's, because a cheap request costs little more than waking threads up: here one
//! lock admits a request and wakes a thread only where one sleeps, and one more ends a request and begins the next.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use actix_web::rt::time::timeout;
use tokio::sync::oneshot;

/// Most requests that wait for their turn in one worker.
const MOST_WAITING: usize = 1_024;
/// So many may always wait, however late the last turns came.
const LEAST_WAITING: usize = 16;
/// How often the log tells that requests are turned away.
const TELLING: Duration = Duration::from_secs(10);

/// How long a request may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// A turn that comes later than this makes the queue shorter.
    pub(crate) late: Duration,
    /// How long a request waits for its turn at most.
    pub(crate) waiting: Duration,
    /// How long a request takes at most, its waiting included.
    pub(crate) answering: Duration,
}

/// Why a request did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turned {
    /// Its turn did not come, or would not have: nothing was done.
    Away,
    /// It did not end in time; its thread is still held.
    Slow,
    /// It panicked.
    Over,
}

/// Admits requests to a number of threads that may block. They end with it.
pub(crate) struct Turnstile(Arc<Shared>);

struct Shared {
    /// How many threads there are at most.
    most: usize,
    bounds: Bounds,
    state: Mutex<State>,
    /// Tells a thread that sleeps that it is called, or that all is over.
    called: Condvar,
}

struct State {
    queue: VecDeque<Ticket>,
    /// The number of the next ticket.
    next: u64,
    /// Threads that were started.
    threads: usize,
    /// Those of them that sleep and were not called.
    idle: usize,
    /// Threads that were called or started and are not awake yet.
    called: usize,
    /// How many may wait.
    room: usize,
    last_turn: Instant,
    last_cut: Option<Instant>,
    /// Requests turned away since the log told of it.
    untold: u64,
    told: Option<Instant>,
    closed: bool,
}

/// One request's place in the queue.
struct Ticket {
    number: u64,
    arrived: Instant,
    work: Box<dyn Work>,
}

impl Turnstile {
    /// A turnstile before so many threads, which are started when they are first needed.
    pub(crate) fn new(threads: usize, bounds: Bounds) -> Self {
        Self(Arc::new(Shared {
            most: threads.max(1),
            bounds,
            state: Mutex::new(State {
                queue: VecDeque::new(),
                next: 0,
                threads: 0,
                idle: 0,
                called: 0,
                room: MOST_WAITING,
                last_turn: Instant::now(),
                last_cut: None,
                untold: 0,
                told: None,
                closed: false,
            }),
            called: Condvar::new(),
        }))
    }

    /// Does this work on a thread that may block, once its turn comes. It is not done where this future is dropped before, as it is
    /// when the client hangs up.
    pub(crate) async fn pass<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Turned> {
        let Bounds {
            waiting, answering, ..
        } = self.0.bounds;
        let (answer, answered) = oneshot::channel();
        let number = self.0.enter(Box::new((work, answer)))?;
        let mut answered = pin!(answered);
        let ended = match timeout(waiting, &mut answered).await {
            Ok(ended) => ended,
            Err(_) if self.0.leave(number) => return Err(Turned::Away),
            Err(_) => timeout(answering.saturating_sub(waiting), &mut answered)
                .await
                .map_err(|_| Turned::Slow)?,
        };
        // No answer is given only where the work was given up.
        ended.unwrap_or(Err(Turned::Away))
    }
}

impl Drop for Turnstile {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.called.notify_all();
    }
}

impl Shared {
    /// Queues work and sees to a thread that does it; the number of its ticket.
    fn enter(self: &Arc<Self>, work: Box<dyn Work>) -> Result<u64, Turned> {
        let arrived = Instant::now();
        let mut state = self.state();
        if !self.has_room(&state, arrived) {
            state.tell_of_one_more();
            return Err(Turned::Away);
        }
        let number = state.next;
        state.next += 1;
        state.queue.push_back(Ticket {
            number,
            arrived,
            work,
        });
        if state.idle > 0 {
            state.idle -= 1;
            state.called += 1;
            drop(state);
            self.called.notify_one();
        } else if state.threads < self.most {
            match self.start() {
                Ok(()) => {
                    state.threads += 1;
                    state.called += 1;
                }
                Err(error) => {
                    log::error!("a thread was not started: {error}");
                    if state.threads == 0 {
                        state.queue.pop_back();
                        return Err(Turned::Away);
                    }
                }
            }
        }
        Ok(number)
    }

    fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let shared = Arc::clone(self);
        thread::Builder::new()
            .name("assay-blocking".to_owned())
            .spawn(move || shared.serve())
            .map(drop)
    }

    /// What a thread does.
    fn serve(&self) {
        let mut state = self.state();
        state.called -= 1;
        loop {
            if let Some(ticket) = state.queue.pop_front() {
                let wanted = state.turn(ticket.arrived, &self.bounds);
                drop(state);
                if wanted {
                    ticket.work.done();
                }
                state = self.state();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                state = self
                    .called
                    .wait_while(state, |state| state.called == 0 && !state.closed)
                    .unwrap_or_else(PoisonError::into_inner);
                if state.called == 0 {
                    return;
                }
                state.called -= 1;
            }
        }
    }

    /// Gives up, unless the turn has come.
    fn leave(&self, number: u64) -> bool {
        let mut state = self.state();
        let place = state.queue.iter().position(|ticket| ticket.number == number);
        if let Some(place) = place {
            state.queue.remove(place);
            state.tell_of_one_more();
        }
        place.is_some()
    }

    fn has_room(&self, state: &State, now: Instant) -> bool {
        let running = state.running();
        if running + state.queue.len() < self.most {
            return true;
        }
        // All threads are held and none came free for long: the database hangs.
        let stalled =
            running >= self.most && now.saturating_duration_since(state.last_turn) > self.bounds.waiting;
        !stalled && state.queue.len() < state.room
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Threads that are held by requests.
    const fn running(&self) -> usize {
        self.threads - self.idle - self.called
    }

    /// The turn of a request has come that arrived then: whether it is in time.
    fn turn(&mut self, arrived: Instant, bounds: &Bounds) -> bool {
        let now = Instant::now();
        let waited = now.saturating_duration_since(arrived);
        self.measure(waited, bounds.late, now);
        let wanted = waited <= bounds.waiting;
        if wanted {
            self.last_turn = now;
        }
        wanted
    }

    /// A turn has come after this much waiting.
    fn measure(&mut self, waited: Duration, late: Duration, now: Instant) {
        if waited <= late {
            self.room = (self.room + 1).min(MOST_WAITING);
        } else if self
            .last_cut
            .is_none_or(|cut| now.saturating_duration_since(cut) > late)
        {
            // Once for all that stood in the same queue.
            self.room = (self.queue.len() / 2).max(LEAST_WAITING);
            self.last_cut = Some(now);
        }
    }

    fn tell_of_one_more(&mut self) {
        self.untold += 1;
        if self.told.is_none_or(|told| told.elapsed() > TELLING) {
            log::warn!("overloaded: {} requests were turned away", self.untold);
            self.untold = 0;
            self.told = Some(Instant::now());
        }
    }
}

/// Work that waits for its turn.
trait Work: Send {
    /// Does it, unless nobody waits for its answer any more.
    fn done(self: Box<Self>);
}

impl<T: Send, F: FnOnce() -> T + Send> Work for (F, oneshot::Sender<Result<T, Turned>>) {
    fn done(self: Box<Self>) {
        let (work, answer) = *self;
        if !answer.is_closed() {
            // What a panic left half done is seen by nobody: the work owns what it changes, or shares it in locks.
            let answered = catch_unwind(AssertUnwindSafe(work)).map_err(|_| Turned::Over);
            // Fails where the client hung up meanwhile.
            drop(answer.send(answered));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use actix_web::rt::{spawn, task::JoinHandle, time::sleep};

    use super::*;

    /// Bounds that a slow machine does not come near to where nothing is held.
    const BOUNDS: Bounds = Bounds {
        late: Duration::from_secs(1),
        waiting: Duration::from_secs(3),
        answering: Duration::from_secs(4),
    };

    /// Work that holds its thread until the sender is dropped.
    fn hold(turnstile: &Arc<Turnstile>) -> (JoinHandle<Result<(), Turned>>, Sender<()>) {
        let (sender, receiver): (_, Receiver<()>) = channel();
        let turnstile = Arc::clone(turnstile);
        let held = spawn(async move {
            turnstile
                .pass(move || {
                    // It ends with an error, when the sender goes.
                    let _ = receiver.recv();
                })
                .await
        });
        (held, sender)
    }

    impl State {
        fn is_empty(&self) -> bool {
            self.running() + self.called + self.queue.len() == 0
        }
    }

    async fn until(turnstile: &Turnstile, condition: impl Fn(&State) -> bool) {
        while !condition(&turnstile.0.state()) {
            sleep(Duration::from_millis(1)).await;
        }
    }

    #[actix_web::test]
    async fn work_is_done_and_leaves_nothing_behind() {
        let turnstile = Turnstile::new(2, BOUNDS);
        assert_eq!(turnstile.pass(|| 7).await, Ok(7));
        let panicking: fn() = || panic!("on purpose");
        assert_eq!(turnstile.pass(panicking).await, Err(Turned::Over));
        until(&turnstile, State::is_empty).await;
        assert!(turnstile.0.state().threads <= 2);
    }

    #[actix_web::test]
    async fn a_thread_that_hangs_is_answered_for_and_the_others_are_turned_away() {
        let turnstile = Arc::new(Turnstile::new(1, BOUNDS));
        let (hanging, thread) = hold(&turnstile);
        assert_eq!(hanging.await.unwrap(), Err(Turned::Slow));
        // At once: its work would never be dropped, if it were queued.
        assert_eq!(turnstile.pass(|| ()).await, Err(Turned::Away));
        assert_eq!(turnstile.0.state().queue.len(), 0);
        drop(thread);
        until(&turnstile, State::is_empty).await;
        while turnstile.pass(|| ()).await.is_err() {}
    }

    #[actix_web::test]
    async fn who_waits_for_too_long_is_turned_away_and_leaves_the_queue() {
        let turnstile = Arc::new(Turnstile::new(1, BOUNDS));
        let (_held, thread) = hold(&turnstile);
        until(&turnstile, |state| state.running() == 1).await;
        assert_eq!(turnstile.pass(|| ()).await, Err(Turned::Away));
        assert_eq!(turnstile.0.state().queue.len(), 0);
        drop(thread);
    }

    #[actix_web::test]
    async fn who_hangs_up_while_waiting_costs_no_work() {
        let turnstile = Arc::new(Turnstile::new(1, BOUNDS));
        let (held, thread) = hold(&turnstile);
        until(&turnstile, |state| state.running() == 1).await;
        let (done, was_done) = channel();
        let waiting = {
            let turnstile = Arc::clone(&turnstile);
            spawn(async move { turnstile.pass(move || done.send(())).await.map(drop) })
        };
        until(&turnstile, |state| state.queue.len() == 1).await;
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        drop(thread);
        assert_eq!(held.await.unwrap(), Ok(()));
        until(&turnstile, State::is_empty).await;
        // The work was dropped, its sender with it.
        assert!(was_done.recv().is_err());
    }

    #[actix_web::test]
    async fn threads_do_the_work_of_many_at_once_and_end_with_the_turnstile() {
        let turnstile = Arc::new(Turnstile::new(3, BOUNDS));
        let many: Vec<_> = (0..200)
            .map(|number| {
                let turnstile = Arc::clone(&turnstile);
                spawn(async move { turnstile.pass(move || number).await })
            })
            .collect();
        for (number, one) in many.into_iter().enumerate() {
            assert_eq!(one.await.unwrap(), Ok(number));
        }
        until(&turnstile, |state| state.idle == state.threads).await;
        let threads = turnstile.0.state().threads;
        assert!((1..=3).contains(&threads), "{threads}");
        let shared = Arc::clone(&turnstile.0);
        drop(turnstile);
        // Each thread has a part in it.
        while Arc::strong_count(&shared) > 1 {
            sleep(Duration::from_millis(1)).await;
        }
    }

    #[test]
    fn late_turns_shorten_the_queue_and_turns_in_time_widen_it() {
        let turnstile = Turnstile::new(1, BOUNDS);
        {
            // A thread that never takes a ticket.
            let mut state = turnstile.0.state();
            (state.threads, state.called) = (1, 1);
        }
        let nothing = || -> Box<dyn Work> { Box::new((|| (), oneshot::channel().0)) };
        let admitted = std::iter::from_fn(|| turnstile.0.enter(nothing()).ok()).count();
        assert_eq!(admitted, MOST_WAITING);
        let now = Instant::now();
        let hour = Duration::from_secs(3_600);
        let mut state = turnstile.0.state();
        state.measure(hour * 2, hour, now);
        assert_eq!(state.room, MOST_WAITING / 2);
        // Those behind it stood in the same queue.
        state.measure(hour * 2, hour, now + hour);
        assert_eq!(state.room, MOST_WAITING / 2);
        state.measure(hour, hour, now);
        assert_eq!(state.room, MOST_WAITING / 2 + 1);
        state.queue.clear();
        state.measure(hour * 2, hour, now + hour * 2);
        assert_eq!(state.room, LEAST_WAITING);
    }
}
