//! The limit on open files, which bounds the number of connections.

use rustix::process::{Resource, getrlimit, setrlimit};

/// The maximum number of client connections, whatever the limit on files: an idle connection takes about twenty
/// kilobytes.
const MAX_CONNECTIONS: u64 = 20_000;
/// Descriptors for the process itself: listeners, operators' connections, files, and what libraries open.
const RESERVED: u64 = 128;

/// Raises the limit on open files as far as the system allows. Returns how many clients may be connected, at least 1,
/// next to `pool` database connections. Further clients wait in the accept queue. Without this bound, accepting
/// operators' connections would fail too.
pub fn room_for_connections(pool: u32) -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // A failure is not fatal: the server then accepts fewer connections.
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            log::warn!("the limit of open files could not be raised: {error}");
        }
    }
    let room = connections(getrlimit(Resource::Nofile).current, pool);
    if room < MAX_CONNECTIONS {
        log::info!("the limit of open files leaves room for {room} connections");
    }
    room
}

/// The number of clients that may be connected with this many descriptors; `None` means no limit on descriptors.
fn connections(descriptors: Option<u64>, pool: u32) -> u64 {
    let reserved = RESERVED + u64::from(pool);
    descriptors
        .unwrap_or(u64::MAX)
        .saturating_sub(reserved)
        .clamp(1, MAX_CONNECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_process() {
        assert_eq!(connections(Some(1_024), 4), 892);
        assert_eq!(connections(Some(10), 4), 1);
        assert_eq!(connections(Some(1_048_576), 4), MAX_CONNECTIONS);
        assert_eq!(connections(None, 4), MAX_CONNECTIONS);
    }
}
