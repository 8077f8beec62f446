//! Signals: two end the program, a third does not.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM, caught from the moment this is made.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to catch the signals.
    pub(crate) fn catch() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one of them and tells its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// SIGHUP, caught from now on: what was started in a terminal goes on when that is closed.
pub(crate) fn hangups() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

/// Tells of each SIGHUP that there is nothing to read again; for ever.
pub(crate) async fn ignore(mut hangups: Signal) {
    while hangups.recv().await.is_some() {
        log::info!("SIGHUP: ignored, as there is no certificate to read again");
    }
}
