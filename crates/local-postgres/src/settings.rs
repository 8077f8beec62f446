//! Options of a cluster.

use std::{ffi::OsString, path::PathBuf, time::Duration};

/// The name of the superuser, the only role of the cluster.
pub(crate) const ROLE: &str = "assay";

/// Options of a cluster. The program passes values of the environment.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The value of `PG_BIN`: the folder of `postgres` and `initdb`. If it is set and not empty, no other folder is
    /// searched.
    pub pg_bin: Option<PathBuf>,
    /// The value of `PATH`.
    pub path: Option<OsString>,
    /// The durability of the data.
    pub durability: Durability,
    /// Time limit for Postgres to answer or to stop.
    pub timeout: Duration,
}

impl Settings {
    /// Options for real data, with these values of `PG_BIN` and `PATH`.
    pub fn new(pg_bin: Option<PathBuf>, path: Option<OsString>) -> Self {
        Self {
            pg_bin,
            path,
            durability: Durability::Durable,
            timeout: Duration::from_secs(60),
        }
    }
}

/// The durability of a cluster's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The data survive a crash of the machine.
    Durable,
    /// For tests: data are not flushed, and each start of the cluster begins with empty data.
    Ephemeral,
}
