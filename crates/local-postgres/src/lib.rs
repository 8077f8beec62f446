//! The private Postgres cluster of the default installation.
//!
//! [`Cluster::start`] creates a cluster in a directory, or finds the existing one, and starts it unless it runs. It
//! listens on no network address, only on a socket in a directory that no other user may enter.
//!
//! Several programs may use one cluster at a time. Each holds a shared lock on `users.lock`. The last one stops
//! Postgres, even if another program started it. A command that started the cluster therefore leaves it running for a
//! server that started in the meantime. The system releases the lock of a killed program. If a killed program left
//! Postgres running, the next program uses it and stops it.

mod account;
mod binaries;
mod error;
mod init;
mod inspect;
mod install;
mod layout;
mod place;
mod postmaster;
mod probe;
mod settings;

use std::{
    fs::{File, TryLockError},
    path::Path,
    time::Duration,
};

pub use error::ClusterError;
pub use inspect::{ClusterState, inspect};
pub use install::Installer;
pub use place::nearest;
pub use settings::{Durability, Settings};

use layout::Layout;
use postmaster::Postmaster;
use settings::ROLE;

/// A running cluster in use by this program. Dropping it has the effect of [`Cluster::stop`], but only logs failures.
#[derive(Debug)]
pub struct Cluster {
    layout: Layout,
    postmaster: Postmaster,
    started_here: bool,
    timeout: Duration,
    /// The shared lock; none after leaving the cluster.
    lease: Option<File>,
}

impl Cluster {
    /// Uses the cluster in `dir`, and creates and starts it if needed. Safe to call from several programs at once.
    pub fn start(dir: &Path, settings: &Settings) -> Result<Self, ClusterError> {
        let layout = Layout::of(dir)?;
        let start_timeout = start_timeout(settings.timeout);
        let _start_lock = layout.lock_start(start_timeout)?;
        layout.make_private()?;
        let lease = layout.lock_users(start_timeout)?;
        let (postmaster, started_here) = match Postmaster::running(&layout, settings.timeout)? {
            Some(postmaster) => (postmaster, false),
            None => (Postmaster::start(&layout, settings)?, true),
        };
        Ok(Self {
            layout,
            postmaster,
            started_here,
            timeout: settings.timeout,
            lease: Some(lease),
        })
    }

    /// The connection string of a database of the cluster. The database `assay` exists from the start.
    pub fn url(&self, database: &str) -> String {
        format!(
            "postgresql:///{}?host={}&user={ROLE}",
            percent_encoded(database.as_bytes()),
            percent_encoded(self.layout.socket_dir().as_os_str().as_encoded_bytes()),
        )
    }

    /// Whether this call started Postgres. Otherwise it was already running.
    pub const fn started_here(&self) -> bool {
        self.started_here
    }

    /// The cluster's folder: the requested one, or its replacement if this program runs as root and the server's user
    /// cannot reach the requested one.
    pub fn base(&self) -> &Path {
        self.layout.base()
    }

    /// The process id of Postgres.
    pub fn pid(&self) -> i32 {
        self.postmaster.pid()
    }

    /// Leaves the cluster, and stops Postgres if no other program uses it.
    pub fn stop(mut self) -> Result<(), ClusterError> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), ClusterError> {
        let Some(lease) = self.lease.take() else {
            return Ok(());
        };
        let _start_lock = self.layout.lock_start(start_timeout(self.timeout))?;
        match lease.try_lock() {
            Ok(()) => self.postmaster.stop(&self.layout, self.timeout),
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Error(source)) => Err(ClusterError::io("lock", self.layout.base(), source)),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = self.leave() {
            log::warn!("the private Postgres cluster was not stopped: {error}");
        }
    }
}

/// Waiting time for other programs that start or stop the cluster: twice `timeout`, because another program may create
/// the data first, which takes about as long as a start.
fn start_timeout(timeout: Duration) -> Duration {
    timeout.saturating_mul(2)
}

/// `bytes` with all but unreserved characters percent-encoded.
fn percent_encoded(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_encoded_for_a_connection_string() {
        assert_eq!(percent_encoded("/tmp/a b".as_bytes()), "%2Ftmp%2Fa%20b");
    }
}
