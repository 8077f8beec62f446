//! The log level of a panic, which depends on the layer that panics.

use std::{cell::Cell, future::poll_fn, pin::pin};

use log::Level;

thread_local! {
    /// The level at which a panic on this thread is logged.
    static PANIC_LEVEL: Cell<Level> = const { Cell::new(Level::Error) };
}

/// A guard that changes the log level of panics on this thread until it is dropped.
///
/// The protocol layer panics on a header name longer than 65,535 bytes, which closes the client's own connection and
/// nothing else. Such panics are logged as warnings, so that clients cannot fill the log with errors. Panics of the
/// application are errors.
pub struct PanicLevel {
    before: Level,
}

impl PanicLevel {
    /// The current level for panics on this thread.
    pub fn current() -> Level {
        PANIC_LEVEL.get()
    }

    /// Sets the level until the returned guard is dropped.
    pub fn set(level: Level) -> Self {
        Self {
            before: PANIC_LEVEL.replace(level),
        }
    }

    /// Runs the future with this level for panics during each poll.
    pub async fn during<F: Future>(level: Level, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let _level = Self::set(level);
            future.as_mut().poll(cx)
        })
        .await
    }
}

impl Drop for PanicLevel {
    fn drop(&mut self) {
        PANIC_LEVEL.set(self.before);
    }
}
