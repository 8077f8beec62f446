//! Raw connections: many at once, slow or misbehaving.

use std::time::{Duration, Instant};

use assay_testkit::PATIENCE;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) took: Duration,
}

impl Answer {
    /// Whether this is the server's rejection under overload.
    pub(crate) fn is_rejected(&self) -> bool {
        let body = String::from_utf8_lossy(&self.body);
        self.status == 503
            && body.contains("\"internal_error\"")
            && self.head.to_lowercase().contains("retry-after: ")
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
        Ok(answer.map(|answer| Answer {
            took: began.elapsed(),
            ..answer
        }))
    }

    /// Reads the next answer.
    pub(crate) async fn answer(&mut self) -> std::io::Result<Option<Answer>> {
        loop {
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.read[..end]).into_owned();
                let length = length(&head);
                let whole = end + 4 + length;
                if self.read.len() >= whole {
                    let body = self.read[end + 4..whole].to_vec();
                    self.read.drain(..whole);
                    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                    return Ok(Some(Answer {
                        status,
                        head,
                        body,
                        took: Duration::ZERO,
                    }));
                }
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

/// Runs a function to its end on several threads.
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

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn length(head: &str) -> usize {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.trim().parse().unwrap())
}
