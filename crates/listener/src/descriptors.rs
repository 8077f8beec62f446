//! How many files this process may hold open, which bounds its connections.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Connections of clients at most, however many descriptors there are: an idle one costs some twenty kilobytes.
const MOST_CONNECTIONS: u64 = 20_000;
/// Descriptors of the process's own: listeners, operators' connections, files, and what a library opens.
const OWN: u64 = 128;

/// Raises the limit as far as the system allows, and says how many clients may be connected at once. A client beyond
/// them waits to be accepted; without this bound, accepting would fail for operators too.
pub fn room_for_connections(pool: u32) -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // Where this is refused, the limit stays what it was and is told below.
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            log::warn!("the limit of open files could not be raised: {error}");
        }
    }
    let room = connections(getrlimit(Resource::Nofile).current, pool);
    if room < MOST_CONNECTIONS {
        log::info!("the limit of open files leaves room for {room} connections");
    }
    room
}

/// What is left of the descriptors, none meaning without limit.
fn connections(descriptors: Option<u64>, pool: u32) -> u64 {
    let own = OWN + u64::from(pool);
    descriptors
        .unwrap_or(u64::MAX)
        .saturating_sub(own)
        .clamp(1, MOST_CONNECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_rest() {
        assert_eq!(connections(Some(1_024), 4), 892);
        assert_eq!(connections(Some(10), 4), 1);
        assert_eq!(connections(Some(1_048_576), 4), MOST_CONNECTIONS);
        assert_eq!(connections(None, 4), MOST_CONNECTIONS);
    }
}
