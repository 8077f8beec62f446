//! Servers that share one limit through Redis.

use std::{
    os::unix::net::UnixStream,
    process::{Child, Command, Stdio},
    time::SystemTime,
};

use assay_testkit::{Server, TestDatabase, wait_until};

use crate::world::{World, new_key};

/// A private redis-server that ends with the test.
struct Redis {
    folder: tempfile::TempDir,
    process: Child,
}

impl Redis {
    fn start() -> Self {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let process = launch(&folder);
        Self { folder, process }
    }

    fn url(&self) -> String {
        format!("redis+unix://{}", self.folder.path().join("s").display())
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn restart(&mut self) {
        self.process = launch(&self.folder);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn launch(folder: &tempfile::TempDir) -> Child {
    let socket = folder.path().join("s");
    let _ = std::fs::remove_file(&socket);
    let process = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(&socket)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is needed: apt-get install -y redis-server");
    wait_until("redis-server answers", || UnixStream::connect(&socket).is_ok());
    process
}

/// Two servers over one database and one Redis.
struct Pair {
    redis: Redis,
    world: World,
    servers: [Server; 2],
    _database: TestDatabase,
}

impl Pair {
    fn start() -> Self {
        let redis = Redis::start();
        let database = TestDatabase::new();
        let world = World::new(database.url());
        let start = || Server::start_with(database.url(), &[("ASSAY_REDIS_URL", &redis.url())]);
        Self {
            servers: [start(), start()],
            redis,
            world,
            _database: database,
        }
    }

    /// The number of requests that each of the servers admits, in turn, with a new key; within one minute.
    fn admitted(&self, requests: usize) -> [usize; 2] {
        loop {
            let key = new_key(&self.world.cli)["key"].as_str().unwrap().to_owned();
            let begun = minute();
            let mut admitted = [0; 2];
            for _ in 0..requests {
                for (server, admitted) in self.servers.iter().zip(&mut admitted) {
                    match server.client().get("/api/v1/projects", Some(&key)).status {
                        200 => *admitted += 1,
                        429 => {}
                        other => panic!("{other}: {}", server.log()),
                    }
                }
            }
            if minute() == begun {
                return admitted;
            }
        }
    }

    /// Waits until the servers share their counts again.
    fn wait_until_shared(&self) {
        wait_until("the servers share the limit", || self.admitted(40) == [30, 30]);
    }

    /// The number of outages in each server's log, while Redis is down: one for each return, and the present one. A
    /// server also logs an outage if Redis takes longer than a tenth of a second.
    fn logged_outages(&self) -> [u64; 2] {
        let outages = self.log_counts("Redis does not answer");
        let returns = self.log_counts("Redis answers again");
        assert_eq!(
            outages,
            returns.map(|times| times + 1),
            "each outage is logged once"
        );
        outages
    }

    /// The number of lines with this text in each server's log.
    fn log_counts(&self, text: &str) -> [u64; 2] {
        [0, 1].map(|index: usize| {
            self.servers[index]
                .log()
                .matches(text)
                .count()
                .try_into()
                .unwrap()
        })
    }
}

/// The current window of the limit.
fn minute() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    now.as_secs() / 60
}

#[test]
fn two_servers_share_the_limit_and_without_redis_each_counts_by_itself_until_it_is_back() {
    let mut pair = Pair::start();
    // Rounds are repeated until one has the expected counts: if Redis takes longer than a tenth of a second, a server
    // counts alone for a second.
    pair.wait_until_shared();
    pair.redis.kill();
    assert_eq!(pair.admitted(70), [60, 60], "each server applies the whole limit");
    pair.logged_outages();
    pair.redis.restart();
    pair.wait_until_shared();
    assert!(
        pair.log_counts("Redis answers again")
            .into_iter()
            .all(|times| times >= 1)
    );
}
