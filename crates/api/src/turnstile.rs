//! Who may wait for a thread that may block, and for how long.
//!
//! A worker has a few such threads, as many as it has connections to the database. A request that finds them busy
//! waits for its turn, unless so many wait already that its turn would come too late: then it is turned away at
//! once, before any work, which costs next to nothing and keeps the server quick for those that it admitted. What
//! may wait follows from what was measured: each turn that came late halves the queue, each one in time widens it.
//!
//! A thread that waits for a database that never answers cannot be freed. Its request is answered all the same, and
//! while all threads are held like this, every other request is turned away at once.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use actix_web::{rt::time::timeout, web};

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

/// Admits requests to a number of threads that may block.
pub(crate) struct Turnstile {
    threads: usize,
    bounds: Bounds,
    state: Mutex<State>,
}

struct State {
    /// Requests that hold a thread.
    running: usize,
    /// Requests whose turn has not come.
    waiting: usize,
    /// How many may wait.
    room: usize,
    last_turn: Instant,
    last_cut: Option<Instant>,
    /// Requests turned away since the log told of it.
    untold: u64,
    told: Option<Instant>,
}

impl Turnstile {
    /// A turnstile before this many threads.
    pub(crate) fn new(threads: usize, bounds: Bounds) -> Self {
        let state = State {
            running: 0,
            waiting: 0,
            room: MOST_WAITING,
            last_turn: Instant::now(),
            last_cut: None,
            untold: 0,
            told: None,
        };
        Self {
            threads: threads.max(1),
            bounds,
            state: Mutex::new(state),
        }
    }

    /// Does this work on a thread that may block, once its turn comes.
    pub(crate) async fn pass<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Turned> {
        let mut ticket = self.ticket().ok_or(Turned::Away)?;
        // Also when this future is dropped, as it is when the client hangs up: nobody wants the answer then.
        let place = Place(ticket.taken.clone());
        let mut job = pin!(web::block(move || ticket.turn().then(work)));
        let ended = match timeout(self.bounds.waiting, &mut job).await {
            Ok(ended) => ended,
            Err(_) if place.leave() => {
                self.state().tell_of_one_more();
                return Err(Turned::Away);
            }
            Err(_) => {
                let rest = self.bounds.answering.saturating_sub(self.bounds.waiting);
                timeout(rest, &mut job).await.map_err(|_| Turned::Slow)?
            }
        };
        // Work that panicked is the only way in which the hop itself fails.
        ended.map_err(|_| Turned::Over)?.ok_or(Turned::Away)
    }

    fn ticket(self: &Arc<Self>) -> Option<Ticket> {
        let mut state = self.state();
        if !self.has_room(&state) {
            state.tell_of_one_more();
            return None;
        }
        state.waiting += 1;
        Some(Ticket {
            turnstile: Arc::clone(self),
            taken: Arc::default(),
            arrived: Instant::now(),
            phase: Phase::Waiting,
        })
    }

    fn has_room(&self, state: &State) -> bool {
        if state.running + state.waiting < self.threads {
            return true;
        }
        // All threads are held and none came free for long: the database hangs.
        let stalled = state.running >= self.threads && state.last_turn.elapsed() > self.bounds.waiting;
        !stalled && state.waiting < state.room
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A turn has come after this much waiting.
    fn measure(&mut self, waited: Duration, late: Duration) {
        if waited <= late {
            self.room = (self.room + 1).min(MOST_WAITING);
        } else if self.last_cut.is_none_or(|cut| cut.elapsed() > late) {
            // Once for all that stood in the same queue.
            self.room = (self.waiting / 2).max(LEAST_WAITING);
            self.last_cut = Some(Instant::now());
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

/// One request's place at the turnstile, held by its work.
struct Ticket {
    turnstile: Arc<Turnstile>,
    /// Whether the request was taken up or given up, whichever came first.
    taken: Arc<AtomicBool>,
    arrived: Instant,
    phase: Phase,
}

enum Phase {
    Waiting,
    Running,
    Done,
}

impl Ticket {
    /// The turn has come: whether the work is still wanted.
    fn turn(&mut self) -> bool {
        let waited = self.arrived.elapsed();
        let wanted = waited <= self.turnstile.bounds.waiting && !self.taken.swap(true, Ordering::AcqRel);
        let mut state = self.turnstile.state();
        state.measure(waited, self.turnstile.bounds.late);
        state.waiting -= 1;
        if wanted {
            state.running += 1;
            state.last_turn = Instant::now();
        }
        self.phase = if wanted { Phase::Running } else { Phase::Done };
        wanted
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        match self.phase {
            Phase::Waiting => self.turnstile.state().waiting -= 1,
            Phase::Running => self.turnstile.state().running -= 1,
            Phase::Done => {}
        }
    }
}

/// The same place, held by who waits for the answer.
struct Place(Arc<AtomicBool>);

impl Place {
    /// Gives up, unless the turn has come.
    fn leave(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
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

    async fn until(turnstile: &Turnstile, condition: impl Fn(&State) -> bool) {
        while !condition(&turnstile.state()) {
            sleep(Duration::from_millis(1)).await;
        }
    }

    #[actix_web::test]
    async fn work_is_done_and_leaves_nothing_behind() {
        let turnstile = Arc::new(Turnstile::new(2, BOUNDS));
        assert_eq!(turnstile.pass(|| 7).await, Ok(7));
        let panicking: fn() = || panic!("on purpose");
        assert_eq!(turnstile.pass(panicking).await, Err(Turned::Over));
        until(&turnstile, |state| state.running + state.waiting == 0).await;
    }

    #[actix_web::test]
    async fn a_thread_that_hangs_is_answered_for_and_the_others_are_turned_away() {
        let turnstile = Arc::new(Turnstile::new(1, BOUNDS));
        let (hanging, thread) = hold(&turnstile);
        assert_eq!(hanging.await.unwrap(), Err(Turned::Slow));
        // At once: its work would never be dropped, if it were queued.
        assert_eq!(turnstile.pass(|| ()).await, Err(Turned::Away));
        assert_eq!(turnstile.state().waiting, 0);
        drop(thread);
        until(&turnstile, |state| state.running == 0).await;
        while turnstile.pass(|| ()).await.is_err() {}
    }

    #[actix_web::test]
    async fn who_hangs_up_while_waiting_costs_no_work() {
        // The runtime of a test has more threads than the turnstile knows of, so the queue is filled by hand.
        let turnstile = Arc::new(Turnstile::new(1, BOUNDS));
        let mut ticket = turnstile.ticket().unwrap();
        drop(Place(ticket.taken.clone()));
        assert!(!ticket.turn());
        drop(ticket);
        let state = turnstile.state();
        assert_eq!((state.running, state.waiting), (0, 0));
    }

    #[test]
    fn late_turns_shorten_the_queue_and_turns_in_time_widen_it() {
        let turnstile = Arc::new(Turnstile::new(1, BOUNDS));
        let tickets: Vec<_> = std::iter::from_fn(|| turnstile.ticket()).collect();
        assert_eq!(tickets.len(), MOST_WAITING);
        {
            let hour = Duration::from_secs(3_600);
            let mut state = turnstile.state();
            state.measure(hour * 2, hour);
            assert_eq!(state.room, MOST_WAITING / 2);
            // Those behind it stood in the same queue.
            state.measure(hour * 2, hour);
            assert_eq!(state.room, MOST_WAITING / 2);
            state.measure(hour, hour);
            assert_eq!(state.room, MOST_WAITING / 2 + 1);
        }
        drop(tickets);
        let mut state = turnstile.state();
        state.last_cut = None;
        state.measure(BOUNDS.late * 2, BOUNDS.late);
        assert_eq!(state.room, LEAST_WAITING);
    }
}
