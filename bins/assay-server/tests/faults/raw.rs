//! Raw connections: many at once, slow or misbehaving.
//!
//! Testkit's clients block a thread each and send whole requests; here one thread holds thousands of connections,
//! pipelines requests and stops within one.

use std::{
    ops::Deref,
    time::{Duration, Instant},
};

use assay_testkit::{PATIENCE, Response, wire};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// One answer and its time.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response,
    pub(crate) took: Duration,
}

impl Answer {
    /// Whether this is the server's rejection under overload.
    pub(crate) fn is_rejected(&self) -> bool {
        self.status == 503
            && self.text().contains("\"internal_error\"")
            && self.header("retry-after").is_some()
    }
}

impl Deref for Answer {
    type Target = Response;

    fn deref(&self) -> &Response {
        &self.response
    }
}

/// A connection that is reused for several requests.
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        Ok(Self {
            stream,
            read: Vec::new(),
        })
    }

    /// Sends bytes.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Sends a request and reads its answer; none if the server closed the connection.
    pub(crate) async fn ask(&mut self, request: &str) -> std::io::Result<Option<Answer>> {
        let began = Instant::now();
        self.send(request.as_bytes()).await?;
        let answer = self.answer().await?;
        Ok(answer.map(|response| Answer {
            response,
            took: began.elapsed(),
        }))
    }

    /// Reads the next answer.
    pub(crate) async fn answer(&mut self) -> std::io::Result<Option<Response>> {
        loop {
            if let Some((response, end)) = wire::parse(&self.read, false) {
                self.read.drain(..end);
                return Ok(Some(response));
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Waits until the server closes the connection, and reads the bytes before.
    pub(crate) async fn wait_until_closed(&mut self) {
        let closed = async {
            let mut bytes = [0; 4_096];
            while matches!(self.stream.read(&mut bytes).await, Ok(count) if count > 0) {}
        };
        timeout(PATIENCE, closed)
            .await
            .expect("the server closes the connection");
    }
}

/// A request for a path with a key.
pub(crate) fn request(path: &str, key: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\n\r\n")
}

/// Runs a future to its end. The tasks that it spawns run on one other thread.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work)
}

/// Raises this process's limit of open files as far as the system allows, and returns it.
pub(crate) fn raise_descriptors() -> u64 {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    limit.current.unwrap_or(u64::MAX)
}
