//! The standbys that were connected to, and how much each is read.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use assay_domain::store::NodeReads;

/// Most standbys that the metrics name. Addresses of containers change, and each name is a separate time series.
const MAX_NAMED: usize = 16;
/// The common name of all other standbys.
const OTHERS: &str = "other standbys";

/// The standbys by address, since the start of the process.
#[derive(Debug, Default)]
pub(super) struct KnownStandbys(Mutex<BTreeMap<String, Arc<Counts>>>);

#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    connections: AtomicU32,
}

impl KnownStandbys {
    /// Counts a new connection to the standby at this address. Logs the first one.
    pub(super) fn count_connection(&self, address: String) -> OpenConnection {
        let mut standbys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !standbys.contains_key(&address);
        let name = if is_new && standbys.len() >= MAX_NAMED {
            OTHERS.to_owned()
        } else {
            address
        };
        let counts = Arc::clone(standbys.entry(name.clone()).or_default());
        drop(standbys);
        if is_new && name != OTHERS {
            log::info!("results are read from the standby at {name} while it keeps up");
        }
        counts.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(counts)
    }

    /// The reads and open connections of each, by address.
    pub(super) fn counts(&self) -> Vec<NodeReads> {
        let standbys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = standbys.iter().map(|(address, counts)| NodeReads {
            node: address.clone(),
            reads: counts.reads.load(Ordering::Relaxed),
            standby_connections: Some(counts.connections.load(Ordering::Relaxed)),
        });
        counts.collect()
    }
}

/// An open connection to a standby, counted until it is dropped.
#[derive(Debug)]
pub(super) struct OpenConnection(Arc<Counts>);

impl OpenConnection {
    pub(super) fn count_read(&self) {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_open_connections_are_counted_for_each_standby() {
        let standbys = KnownStandbys::default();
        let (first, second) = (
            standbys.count_connection("a:1".to_owned()),
            standbys.count_connection("a:1".to_owned()),
        );
        let other = standbys.count_connection("b:1".to_owned());
        first.count_read();
        second.count_read();
        other.count_read();
        drop(second);
        drop(other);
        let expected = [("a:1", 2, 1), ("b:1", 1, 0)].map(|(node, reads, connections)| NodeReads {
            node: node.to_owned(),
            reads,
            standby_connections: Some(connections),
        });
        assert_eq!(standbys.counts(), expected);
    }

    #[test]
    fn addresses_that_change_do_not_grow_the_metrics() {
        let standbys = KnownStandbys::default();
        for host in 0..100 {
            standbys
                .count_connection(format!("10.0.0.{host}:5432"))
                .count_read();
        }
        let counts = standbys.counts();
        assert_eq!(counts.len(), MAX_NAMED + 1);
        assert_eq!(counts.iter().map(|node| node.reads).sum::<u64>(), 100);
    }
}
