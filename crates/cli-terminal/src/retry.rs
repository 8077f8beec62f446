//! Backoff between attempts to reach a server.

use std::{
    fmt::Display,
    time::{Duration, Instant},
};

use crate::progress::{Progress, Work};

/// The first pause.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// An error after which the same request may succeed.
pub trait Transient: Display {
    /// Whether the same request may succeed later.
    fn is_transient(&self) -> bool;

    /// The wait that the server asks for.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

/// Repeats an attempt until it succeeds, fails permanently, or the time of `backoff` is over. Before each repetition it
/// notes the reason, after `doing`.
pub fn until_expired<T, E: Transient>(
    progress: &dyn Progress,
    backoff: &mut Backoff,
    doing: &str,
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    loop {
        let error = match attempt() {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if !error.is_transient() {
            return Err(error);
        }
        let Some(pause) = backoff.pause(error.retry_after()) else {
            return Err(error);
        };
        progress.note(&format!(
            "{doing}: {error}; trying again in {} s, for {} s more",
            pause.as_secs().max(1),
            backoff.remaining().as_secs()
        ));
        let _waiting = progress.begin(Work::Wait);
        std::thread::sleep(pause);
    }
}

/// Pauses that double from 1 s to 30 s, with jitter, until the time is used up.
#[derive(Debug)]
pub struct Backoff {
    ends: Instant,
    next: Duration,
}

impl Backoff {
    /// Backoff for this long, from now.
    pub fn new(within: Duration) -> Self {
        Self {
            ends: Instant::now() + within,
            next: FIRST,
        }
    }

    /// Backoff until a moment.
    pub const fn until(ends: Instant) -> Self {
        Self { ends, next: FIRST }
    }

    /// Returns the next pause: the one that the server asked for, if any. None if it would exceed the time.
    pub fn pause(&mut self, server_pause: Option<Duration>) -> Option<Duration> {
        // Jitter from half to all of it, so that the jobs of a matrix do not return together.
        let own = self.next.mul_f64(rand::random_range(0.5..=1.0));
        self.next = (self.next * 2).min(LONGEST);
        let pause = server_pause.map_or(own, |server_pause| {
            server_pause + FIRST.mul_f64(rand::random_range(0.0..=1.0))
        });
        (pause <= self.remaining()).then_some(pause)
    }

    /// The time that is left.
    pub fn remaining(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let mut backoff = Backoff::new(Duration::from_secs(3_600));
        for whole in [1, 2, 4, 8, 16, 30, 30, 30] {
            let pause = backoff.pause(None).unwrap().as_secs_f64();
            assert!(
                (f64::from(whole) / 2.0..=f64::from(whole)).contains(&pause),
                "{whole}: {pause}"
            );
        }
    }

    #[test]
    fn the_server_decides_how_long_to_wait_and_the_time_is_not_exceeded() {
        let mut backoff = Backoff::new(Duration::from_secs(60));
        let pause = backoff.pause(Some(Duration::from_secs(20))).unwrap();
        assert!((20.0..=21.0).contains(&pause.as_secs_f64()), "{pause:?}");
        assert_eq!(backoff.pause(Some(Duration::from_secs(61))), None);
        assert_eq!(Backoff::new(Duration::ZERO).pause(None), None);
    }
}
