//! The test's own Postgres, to break it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use assay_local_postgres::{Cluster, Durability, Settings};
use diesel::{Connection as _, PgConnection, QueryableByName, RunQueryDsl as _, sql_types};

/// Time limit for Postgres to start, to answer or to end.
const RESTARTED_WITHIN: Duration = Duration::from_secs(60);

/// A private cluster with durable data: they survive a crash.
pub(crate) struct Postgres {
    folder: PathBuf,
    cluster: Option<Cluster>,
    url: String,
    pid: i32,
}

impl Postgres {
    /// Creates a cluster in this folder and starts it.
    pub(crate) fn start(folder: &Path) -> Self {
        // Postgres runs as a user other than root and must be able to enter.
        #[cfg(unix)]
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let cluster = start(folder).unwrap();
        Self {
            folder: folder.to_path_buf(),
            url: cluster.url("assay"),
            pid: cluster.pid(),
            cluster: Some(cluster),
        }
    }

    /// The connection string of the database.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The test's own connection.
    pub(crate) fn connect(&self) -> diesel::ConnectionResult<PgConnection> {
        PgConnection::establish(&self.url)
    }

    /// Stops it without waiting for its clients, as an administrator may do.
    pub(crate) fn stop(&mut self) {
        self.signal("INT");
        self.wait_until_gone();
    }

    /// Kills all its processes at once, like a power failure.
    pub(crate) fn kill(&mut self) {
        self.signal_all("KILL");
        self.wait_until_gone();
    }

    /// Freezes all its processes.
    pub(crate) fn freeze(&self) {
        self.signal_all("STOP");
    }

    /// Unfreezes them.
    pub(crate) fn thaw(&self) {
        self.signal_all("CONT");
    }

    /// Starts it again. Returns the time at which it accepts a connection.
    pub(crate) fn start_again(&mut self) -> Instant {
        drop(self.cluster.take());
        let began = Instant::now();
        let cluster = loop {
            match start(&self.folder) {
                Ok(cluster) => break cluster,
                Err(error) => assert!(began.elapsed() < RESTARTED_WITHIN, "{error:?}"),
            }
            thread::sleep(Duration::from_millis(100));
        };
        self.pid = cluster.pid();
        self.cluster = Some(cluster);
        self.wait_for_connection()
    }

    /// Waits until it accepts a connection, and returns the time.
    pub(crate) fn wait_for_connection(&self) -> Instant {
        let began = Instant::now();
        loop {
            match self.connect() {
                Ok(_) => return Instant::now(),
                Err(error) => assert!(began.elapsed() < RESTARTED_WITHIN, "{error}"),
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until its process is gone, or a zombie.
    fn wait_until_gone(&self) {
        let began = Instant::now();
        while state_and_parent(self.pid).is_some_and(|(state, _)| state != 'Z') {
            assert!(began.elapsed() < RESTARTED_WITHIN, "Postgres does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(&self, name: &str) {
        signal(name, &[self.pid]);
    }

    fn signal_all(&self, name: &str) {
        let mut pids = children(self.pid);
        pids.insert(0, self.pid);
        signal(name, &pids);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A failed test may leave it frozen. It could then never stop.
        self.thaw();
    }
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = sql_types::BigInt)]
    value: i64,
}

/// The number that a query returns as `value`.
pub(crate) fn number(connection: &mut PgConnection, sql: &str) -> i64 {
    diesel::sql_query(sql)
        .get_result::<Number>(connection)
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
        .value
}

/// Waits until this many statements wait for a lock.
pub(crate) fn until_waiting_for_locks(connection: &mut PgConnection, count: i64) {
    let began = Instant::now();
    let sql = "SELECT count(*) AS value FROM pg_stat_activity \
               WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while number(connection, sql) < count {
        assert!(began.elapsed() < RESTARTED_WITHIN, "nothing waits");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal to processes, some of which may be gone.
pub(crate) fn signal(name: &str, pids: &[i32]) {
    let pids: Vec<_> = pids.iter().map(i32::to_string).collect();
    Command::new("kill")
        .args(["-s", name])
        .args(pids)
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
}

fn start(folder: &Path) -> Result<Cluster, assay_local_postgres::ClusterError> {
    let settings = Settings {
        pg_bin: std::env::var_os("PG_BIN").map(PathBuf::from),
        path: std::env::var_os("PATH"),
        durability: Durability::Durable,
        timeout: RESTARTED_WITHIN,
    };
    Cluster::start(folder, &settings)
}

fn children(parent: i32) -> Vec<i32> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| state_and_parent(*pid).is_some_and(|(_, of)| of == parent))
        .collect()
}

/// The state of a process, and the id of its parent.
fn state_and_parent(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(") ").next()?.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
