//! Log lines about standbys, without the password that an address may contain.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use diesel::r2d2::{Error, HandleError};

use crate::db::connection_string::ConnectionString;

/// Shortest interval between log lines about standbys.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Logs one line when reads go to the primary, and one when they no longer do.
#[derive(Debug, Default)]
pub(super) struct FailoverLog {
    logged_at: Mutex<Option<Instant>>,
    is_failed_over: AtomicBool,
}

impl FailoverLog {
    /// Logs that the primary answers instead of a standby, at most once per [`LOG_INTERVAL`].
    pub(super) fn report(&self, reason: &dyn std::fmt::Display) {
        let now = Instant::now();
        let mut logged_at = self.logged_at.lock().unwrap_or_else(PoisonError::into_inner);
        if logged_at.is_none_or(|at| now.saturating_duration_since(at) >= LOG_INTERVAL) {
            *logged_at = Some(now);
            self.is_failed_over.store(true, Ordering::Relaxed);
            log::warn!("a standby cannot be read from, the primary answers: {reason}");
        }
    }

    /// Logs that standbys answer again, if a failover was logged before.
    pub(super) fn log_recovery(&self) {
        if self.is_failed_over.load(Ordering::Relaxed) && self.is_failed_over.swap(false, Ordering::Relaxed) {
            log::info!("standbys are read from again");
        }
    }
}

/// Logs failed attempts to connect.
#[derive(Debug)]
pub(super) struct ConnectErrorLog {
    pub(super) connection_string: ConnectionString,
    pub(super) failover_log: Arc<FailoverLog>,
}

impl HandleError<Error> for ConnectErrorLog {
    fn handle_error(&self, error: Error) {
        self.failover_log
            .report(&self.connection_string.redact(&error.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_of_a_standby_is_logged_once() {
        let failover_log = FailoverLog::default();
        failover_log.report(&"gone");
        assert!(failover_log.is_failed_over.load(Ordering::Relaxed));
        failover_log.log_recovery();
        failover_log.report(&"gone again within the minute");
        assert!(!failover_log.is_failed_over.load(Ordering::Relaxed));
    }
}
