//! The threads that may block, and the queue before them.
//!
//! They are our own, rather than tokio's, because a cheap request costs little more than waking threads up: here one lock admits a
//! request and wakes a thread only where one sleeps, and one more ends a request and begins the next.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{Bounds, Turned};

/// Most requests that wait for their turn, for each thread.
pub(super) const MOST_WAITING: usize = 512;
/// So many may always wait, for each thread, however late the last turns came.
pub(super) const LEAST_WAITING: usize = 8;
/// How often the log tells that requests are turned away.
const TELLING: Duration = Duration::from_secs(10);

/// The threads of one turnstile, and what waits for them.
pub(super) struct Threads {
    pub(super) bounds: Bounds,
    state: Mutex<State>,
    /// Tells a thread that sleeps that it is called, or that all is over.
    called: Condvar,
}

/// The queue, and what the threads are doing.
pub(super) struct State {
    /// How many threads there are at most.
    most: usize,
    pub(super) queue: VecDeque<Ticket>,
    /// The number of the next ticket.
    next: u64,
    /// Threads that were started.
    pub(super) threads: usize,
    /// Those of them that sleep, or will, and were not called.
    pub(super) idle: usize,
    /// Threads that were called or started and are not awake yet.
    pub(super) called: usize,
    /// How many may wait.
    pub(super) room: usize,
    last_turn: Instant,
    last_cut: Option<Instant>,
    /// Requests turned away since the log told of it.
    untold: u64,
    told: Option<Instant>,
    closed: bool,
}

/// One request's place in the queue.
pub(super) struct Ticket {
    number: u64,
    arrived: Instant,
    work: Box<dyn Work>,
}

impl Threads {
    /// So many at most.
    pub(super) fn new(most: usize, bounds: Bounds) -> Self {
        let most = most.max(1);
        Self {
            bounds,
            state: Mutex::new(State {
                most,
                queue: VecDeque::new(),
                next: 0,
                threads: 0,
                idle: 0,
                called: 0,
                room: most.saturating_mul(MOST_WAITING),
                last_turn: Instant::now(),
                last_cut: None,
                untold: 0,
                told: None,
                closed: false,
            }),
            called: Condvar::new(),
        }
    }

    /// Lets the threads end, once the queue is empty.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.called.notify_all();
    }

    /// Queues work and sees to a thread that does it; the number of its ticket.
    pub(super) fn enter(self: &Arc<Self>, work: Box<dyn Work>) -> Result<u64, Turned> {
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
        } else if state.threads < state.most {
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
        let threads = Arc::clone(self);
        thread::Builder::new()
            .name("assay-blocking".to_owned())
            .spawn(move || threads.serve())
            .map(drop)
    }

    /// What a thread does.
    pub(super) fn serve(&self) {
        let mut state = self.state();
        loop {
            // A call is for no thread in particular: one that comes free may take that of one which is yet to start or to wake
            // up, and which sleeps in its place then.
            state = self
                .called
                .wait_while(state, |state| state.called == 0 && !state.closed)
                .unwrap_or_else(PoisonError::into_inner);
            if state.called == 0 {
                return;
            }
            state.called -= 1;
            while let Some(ticket) = state.queue.pop_front() {
                let wanted = state.turn(ticket.arrived, &self.bounds);
                drop(state);
                if wanted {
                    ticket.work.done();
                } else {
                    // Not under the lock: its end may be that of all that it shares, the turnstile included.
                    drop(ticket);
                }
                state = self.state();
            }
            state.idle += 1;
        }
    }

    /// Gives up, unless the turn has come.
    pub(super) fn leave(&self, number: u64) -> bool {
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
        if running + state.queue.len() < state.most {
            return true;
        }
        // All threads are held and none came free for long: the database hangs.
        let stalled =
            running >= state.most && now.saturating_duration_since(state.last_turn) > self.bounds.waiting;
        !stalled && state.queue.len() < state.room
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Threads that are held by requests.
    pub(super) const fn running(&self) -> usize {
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
    pub(super) fn measure(&mut self, waited: Duration, late: Duration, now: Instant) {
        if waited <= late {
            self.room = (self.room + 1).min(self.most.saturating_mul(MOST_WAITING));
        } else if self
            .last_cut
            .is_none_or(|cut| now.saturating_duration_since(cut) > late)
        {
            // Once for all that stood in the same queue.
            self.room = (self.queue.len() / 2).max(self.most.saturating_mul(LEAST_WAITING));
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
pub(super) trait Work: Send {
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
