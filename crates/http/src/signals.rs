//! Signals: SIGINT and SIGTERM end the program. SIGHUP reloads the certificate of TLS. Without a certificate, SIGHUP is
//! logged and ignored.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM, caught as long as this value lives.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts to catch the signals.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one of them and returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// Catches SIGHUP, so that a server that was started in a terminal survives when the terminal is closed.
pub fn hangups() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

/// Logs for each SIGHUP that there is nothing to reload. Never returns.
pub async fn ignore_hangups(mut hangups: Signal) {
    while hangups.recv().await.is_some() {
        log::info!("SIGHUP: ignored, because no TLS certificate is configured");
    }
}
