//! The shared limit with a real Redis.

use std::{
    future::poll_fn,
    path::Path,
    process::{Child, Command, Stdio},
    task::Poll,
    time::{Duration, Instant},
};

use assay_access::limit::{Admission, Budget, RateLimiter, RedisLimiter};
use assay_domain::timestamp::Timestamp;

const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_360_000);

/// A private redis-server that ends with the test.
struct Server {
    folder: tempfile::TempDir,
    process: Child,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let process = launch(folder.path());
        Self { folder, process }
    }

    fn url(&self) -> String {
        format!("redis+unix://{}", self.folder.path().join("s").display())
    }

    fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Sends a signal by name.
    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.process.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    fn restart(&mut self) {
        self.process = launch(self.folder.path());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn launch(folder: &Path) -> Child {
    let socket = folder.join("s");
    let _ = std::fs::remove_file(&socket);
    let process = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(&socket)
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is needed: apt-get install -y redis-server");
    let started = Instant::now();
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "redis-server did not start"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    process
}

/// A limiter that waits for a Redis on a busy machine. One that does not would count in this process.
fn patient(server: &Server, limit: u32) -> RedisLimiter {
    RedisLimiter::with_time_limit(&server.url(), limit, Duration::from_secs(60)).unwrap()
}

async fn admitted(limiter: &RedisLimiter, requests: usize, at: Timestamp) -> usize {
    admitted_and_waited(limiter, requests, at).await.0
}

/// The number of requests that were admitted, and the number of those that waited for an answer of Redis.
async fn admitted_and_waited(limiter: &RedisLimiter, requests: usize, at: Timestamp) -> (usize, usize) {
    let (mut admitted, mut waited) = (0, 0);
    for _ in 0..requests {
        let mut request = limiter.admit(b"Bearer a", at);
        // A request that does not use Redis is ready at once.
        let admission = match poll_fn(|context| Poll::Ready(request.as_mut().poll(context))).await {
            Poll::Ready(admission) => admission,
            Poll::Pending => {
                waited += 1;
                request.await
            }
        };
        if admission != Admission::Refused {
            admitted += 1;
        }
    }
    (admitted, waited)
}

#[tokio::test]
async fn two_processes_share_one_budget() {
    let server = Server::start();
    let one = patient(&server, 60);
    let other = patient(&server, 60);

    assert_eq!(admitted(&one, 40, NOW).await, 40);
    assert_eq!(admitted(&other, 40, NOW.plus_ms(30_000)).await, 20);
    assert_eq!(admitted(&one, 1, NOW.plus_ms(59_999)).await, 0);
    let fresh = Budget {
        limit: 60,
        remaining: 59,
        reset_s: 60,
    };
    assert_eq!(other.admit(b"Bearer b", NOW).await, Admission::Admitted(fresh));
    assert_eq!(admitted(&one, 1, NOW.plus_ms(60_000)).await, 1);
}

#[tokio::test]
async fn every_counter_expires() {
    let server = Server::start();
    let limiter = patient(&server, 60);
    admitted(&limiter, 3, NOW).await;

    let mut connection = redis::Client::open(server.url())
        .unwrap()
        .get_connection()
        .unwrap();
    let names: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    assert_eq!(names.len(), 1, "{names:?}");
    let ends: i64 = redis::cmd("PTTL").arg(&names[0]).query(&mut connection).unwrap();
    assert!((1..=120_000).contains(&ends), "{ends}");
}

#[tokio::test]
async fn without_redis_the_process_counts_until_redis_is_back() {
    let mut server = Server::start();
    let limiter = patient(&server, 5);
    assert_eq!(admitted(&limiter, 5, NOW).await, 5);

    server.stop();
    let (admitted, waited) = admitted_and_waited(&limiter, 10, NOW.plus_ms(1)).await;
    assert_eq!(admitted, 5, "counted again in this process");
    assert!(waited <= 1, "{waited} requests waited for a dead Redis");

    server.restart();
    // The first attempts after a restart may still use the old connection, so allow a few pauses.
    let mut later = NOW.plus_ms(60_000);
    for _ in 0..20 {
        limiter.admit(b"Bearer probe", later).await;
        later = later.plus_ms(1_001);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut connection = redis::Client::open(server.url())
        .unwrap()
        .get_connection()
        .unwrap();
    let counters: i64 = redis::cmd("DBSIZE").query(&mut connection).unwrap();
    assert!(counters >= 1, "Redis is not used again");
}

#[tokio::test]
async fn a_hanging_redis_delays_one_request_a_second() {
    let server = Server::start();
    // Longer than the server's own limit, so that Redis answers the first requests also on a busy machine.
    let limiter = RedisLimiter::with_time_limit(&server.url(), 1_000, Duration::from_secs(2)).unwrap();
    assert_eq!(admitted(&limiter, 5, NOW).await, 5);
    server.signal("STOP");
    for second in 0..3 {
        let counts = admitted_and_waited(&limiter, 100, NOW.plus_ms(second * 1_000)).await;
        assert_eq!(counts, (100, 1), "one request waits");
    }
    server.signal("CONT");
    // Redis counts again: the processes share their counts.
    let other = patient(&server, 1_000);
    let begun = Instant::now();
    let mut later = NOW.plus_ms(60_000);
    loop {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "Redis is not used again"
        );
        later = later.plus_ms(60_000);
        let here = limiter.admit(b"Bearer c", later).await;
        let there = other.admit(b"Bearer c", later).await;
        let remaining = |admission| match admission {
            Admission::Admitted(budget) => budget.remaining,
            Admission::Unlimited | Admission::Refused => 0,
        };
        if (remaining(here), remaining(there)) == (999, 998) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
