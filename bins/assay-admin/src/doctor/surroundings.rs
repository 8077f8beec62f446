//! The surroundings of the database: the private cluster, its disk, Redis.

use std::path::Path;

use assay_cli_terminal::output::bytes;
use assay_local_postgres::{Cluster, ClusterState, Settings, inspect};

use crate::doctor::check::{Check, Status};

/// The smallest free space on the private cluster's disk without a warning.
const LEAST_FREE: u64 = 1 << 30;

/// The running private cluster with its check; without one, only the check.
pub(crate) fn private(dir: &Path, settings: &Settings) -> (Check, Option<Cluster>) {
    let folder = dir.display();
    match inspect(dir, settings) {
        Ok(ClusterState::Cluster { .. }) => {}
        Ok(ClusterState::Nothing { programs, version }) => {
            let state = format!(
                "ASSAY_DATABASE_URL is not set and {folder} holds no database yet; Postgres {version} in {} would create it",
                programs.display()
            );
            let advice = "assay-admin org create NAME (which creates it), or set ASSAY_DATABASE_URL, or ASSAY_DATA_DIR";
            return (Check::warn("private", state, advice), None);
        }
        Err(error) => return (Check::unanswered("private", &error), None),
    }
    match Cluster::start(dir, settings) {
        Ok(cluster) => {
            let state = format!(
                "the private database in {} {}",
                cluster.base().display(),
                if cluster.started_here() {
                    "was stopped, and is stopped again now"
                } else {
                    "is running"
                }
            );
            (Check::ok("private", state), Some(cluster))
        }
        Err(error) => (Check::unanswered("private", &error), None),
    }
}

/// The free space on the private cluster's disk.
pub(crate) fn disk(base: &Path) -> Check {
    match rustix::fs::statvfs(base) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let all = disk.f_blocks.saturating_mul(disk.f_frsize);
            let state = format!("{} of {} are free", bytes(to_i64(free)), bytes(to_i64(all)));
            if free < LEAST_FREE {
                Check::warn(
                    "disk",
                    state,
                    "make room, or `assay-admin prune`: Postgres stops when its disk is full",
                )
            } else {
                Check::ok("disk", state)
            }
        }
        Err(error) => Check::unanswered("disk", &error),
    }
}

fn to_i64(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Whether the Redis server of the rate limit answers.
pub(crate) fn redis(url: &str) -> Check {
    match assay_access::limit::ping(url) {
        Ok(()) => Check::ok("redis", "answers"),
        // The server then counts in its own process: it works, with a looser limit.
        Err(error) => {
            let mut check = Check::unanswered("redis", &error);
            check.status = Status::Warn;
            check.with_finding(
                Status::Warn,
                "until it answers, each server counts requests by itself".to_owned(),
                "start Redis, or correct ASSAY_REDIS_URL",
            )
        }
    }
}
