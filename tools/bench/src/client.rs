//! A load driver: persistent connections with one request at a time each.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use ureq::Agent;

use crate::number::{float, percentile};

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause of a client after a rejected request. Real clients wait for the second in `Retry-After`, or stop.
const REJECTED: Duration = Duration::from_millis(100);

/// A client of one server, with a key if it has one.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    /// The listener of the tools for agents.
    agents: SocketAddr,
    key: String,
}

/// A request to the server.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    /// A GET of this path of the read API.
    Get(String),
    /// A call of a tool for agents, as a message.
    Tool(String),
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// The figures of a measurement under load.
#[derive(Debug)]
pub(crate) struct Measurement {
    pub(crate) seconds: f64,
    /// Latencies of the requests with the same status as the first, ascending, in microseconds.
    latencies: Vec<u32>,
    pub(crate) status: u16,
    /// Bytes of one body.
    pub(crate) bytes: usize,
}

impl Measurement {
    /// Requests per second.
    pub(crate) fn rate(&self) -> f64 {
        float(self.latencies.len()) / self.seconds
    }

    /// The percentile of the latency in milliseconds.
    pub(crate) fn ms(&self, share: f64) -> Option<f64> {
        percentile(&self.latencies, share).map(|micros| f64::from(micros) / 1000.0)
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr, agents: SocketAddr, key: &str) -> Self {
        Self {
            address,
            agents,
            key: key.to_owned(),
        }
    }

    /// One answer, on a separate connection.
    pub(crate) fn once(&self, request: &Request) -> anyhow::Result<Answer> {
        self.send(&agent(), request)
    }

    /// Keeps this number of connections busy for a time, after a warm-up of a fifth of that time.
    pub(crate) fn load(
        &self,
        request: &Request,
        connections: u32,
        time: Duration,
    ) -> anyhow::Result<Measurement> {
        let first = self.once(request)?;
        let begin = Instant::now() + time / 5;
        let driven = thread::scope(|scope| {
            let threads: Vec<_> = (0..connections)
                .map(|_| scope.spawn(|| self.drive(request, first.status, begin, begin + time)))
                .collect();
            let joined = threads.into_iter().map(|thread| {
                let driven = thread.join();
                driven.map_err(|_| anyhow::anyhow!("a connection's thread panicked"))?
            });
            joined.collect::<anyhow::Result<Vec<ConnectionTimes>>>()
        })?;
        let last = driven.iter().map(|driven| driven.ended).max().unwrap_or(begin);
        let mut latencies: Vec<u32> = driven
            .iter()
            .flat_map(|driven| driven.latencies.iter().copied())
            .collect();
        latencies.sort_unstable();
        Ok(Measurement {
            seconds: last.saturating_duration_since(begin).max(time).as_secs_f64(),
            latencies,
            status: first.status,
            bytes: first.body.len(),
        })
    }

    /// Repeats a request. Requests that begin after the warm-up count. At least one request counts.
    fn drive(
        &self,
        request: &Request,
        status: u16,
        begin: Instant,
        end: Instant,
    ) -> anyhow::Result<ConnectionTimes> {
        let agent = agent();
        let mut driven = ConnectionTimes {
            latencies: Vec::new(),
            ended: begin,
        };
        loop {
            let started = Instant::now();
            if started >= end && !driven.latencies.is_empty() {
                return Ok(driven);
            }
            let answer = self.send(&agent, request)?;
            if answer.status != status {
                ensure!(started < end + PATIENCE, "all requests are rejected");
                thread::sleep(REJECTED);
            } else if started >= begin {
                driven.ended = Instant::now();
                let micros = driven.ended.duration_since(started).as_micros();
                driven.latencies.push(u32::try_from(micros).unwrap_or(u32::MAX));
            }
        }
    }

    fn send(&self, agent: &Agent, request: &Request) -> anyhow::Result<Answer> {
        let authorization = format!("Bearer {}", self.key);
        let answer = match request {
            Request::Get(path) => agent
                .get(format!("http://{}{path}", self.address))
                .header("Authorization", authorization)
                .call(),
            Request::Tool(message) => agent
                .post(format!("http://{}/mcp", self.agents))
                .header("Authorization", authorization)
                .header("Accept", "application/json, text/event-stream")
                .header("MCP-Protocol-Version", "2025-11-25")
                .content_type("application/json")
                .send(message),
        };
        let mut answer = answer.with_context(|| format!("{request:?}"))?;
        Ok(Answer {
            status: answer.status().as_u16(),
            body: answer.body_mut().with_config().limit(1 << 30).read_to_vec()?,
        })
    }
}

/// The measurements of one connection.
struct ConnectionTimes {
    latencies: Vec<u32>,
    ended: Instant,
}

/// A new connection.
fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into()
}
