//! Who may wait for a thread that may block, and for how long.
//!
//! There are a few such threads, one fewer than connections to the database. They are shared by all workers, so
//! that a slow request keeps none of the others waiting while another worker's threads have nothing to do. A request that
//! finds all busy waits for its turn, unless so many wait already that its turn would come too late: then it is turned
//! away at once, before any work, which costs next to nothing and keeps the server quick for those that it admitted. What
//! may wait follows from what was measured: each turn that came late halves the queue, each one in time widens it.
//!
//! A thread that waits for a database that never answers cannot be freed. Its request is answered all the same, and
//! while all threads are held like this, every other request is turned away at once.

mod threads;

use std::{pin::pin, sync::Arc, time::Duration};

use actix_web::rt::time::timeout;
use tokio::sync::oneshot;

use threads::Threads;

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
pub(crate) struct Turnstile(Arc<Threads>);

impl Turnstile {
    /// A turnstile before so many threads, which are started when they are first needed.
    pub(crate) fn new(threads: usize, bounds: Bounds) -> Self {
        Self(Arc::new(Threads::new(threads, bounds)))
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
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, Sender, channel},
        time::Instant,
    };

    use actix_web::rt::{spawn, task::JoinHandle, time::sleep};

    use super::{
        threads::{LEAST_WAITING, MOST_WAITING, State, Work},
        *,
    };

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

    #[actix_web::test]
    async fn the_call_of_a_thread_that_starts_may_be_taken_by_another() {
        let turnstile = Turnstile::new(2, BOUNDS);
        {
            // A thread that was started and is not awake yet.
            let mut state = turnstile.0.state();
            (state.threads, state.called) = (1, 1);
        }
        assert_eq!(turnstile.pass(|| ()).await, Ok(()));
        until(&turnstile, |state| state.called == 0).await;
        let threads = Arc::clone(&turnstile.0);
        let late = std::thread::spawn(move || threads.serve());
        sleep(Duration::from_millis(50)).await;
        assert_eq!(turnstile.pass(|| ()).await, Ok(()));
        until(&turnstile, |state| state.idle == state.threads).await;
        drop(turnstile);
        late.join().unwrap();
    }

    #[test]
    fn late_turns_shorten_the_queue_and_turns_in_time_widen_it() {
        let turnstile = Turnstile::new(2, BOUNDS);
        {
            // Two threads that never take a ticket.
            let mut state = turnstile.0.state();
            (state.threads, state.called) = (2, 2);
        }
        let nothing = || -> Box<dyn Work> { Box::new((|| (), oneshot::channel().0)) };
        let admitted = std::iter::from_fn(|| turnstile.0.enter(nothing()).ok()).count();
        assert_eq!(admitted, 2 * MOST_WAITING);
        let now = Instant::now();
        let hour = Duration::from_secs(3_600);
        let mut state = turnstile.0.state();
        state.measure(hour * 2, hour, now);
        assert_eq!(state.room, MOST_WAITING);
        // Those behind it stood in the same queue.
        state.measure(hour * 2, hour, now + hour);
        assert_eq!(state.room, MOST_WAITING);
        state.measure(hour, hour, now);
        assert_eq!(state.room, MOST_WAITING + 1);
        state.queue.clear();
        state.measure(hour * 2, hour, now + hour * 2);
        assert_eq!(state.room, 2 * LEAST_WAITING);
    }
}
