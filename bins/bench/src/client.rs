//! A minimal HTTP/1.1 client: persistent connections, one request under way on each, and as little parsing as
//! possible.
//!
//! One thread drives all connections, so that the client uses little of the machine that it shares with the server.
//! Its processor time is measured and reported.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::{Builder, Runtime},
    task::JoinSet,
};

use crate::number::{float, percentile};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause of a client after a rejected request. Real clients wait for the second that `Retry-After` names, or leave.
const TURNED_AWAY: Duration = Duration::from_millis(100);

/// An answer, with its body only on request.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) etag: Option<String>,
    /// Of the body.
    pub(crate) bytes: usize,
    pub(crate) body: Vec<u8>,
}

/// A request as bytes.
#[derive(Debug, Clone)]
pub(crate) struct Request(Arc<[u8]>);

impl Request {
    /// A GET of a path with these headers.
    pub(crate) fn get(path: &str, headers: &[(&str, &str)]) -> Self {
        let mut text = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        Self(Arc::from(text.into_bytes()))
    }
}

/// What a time of load came to.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    /// Latencies of the requests with the same status as the first, ascending, in microseconds.
    latencies: Vec<u32>,
    /// Answers whose status differs from the first one: an overloaded server rejects requests.
    pub(crate) errors: u64,
    pub(crate) status: u16,
    /// Of one body.
    pub(crate) bytes: usize,
}

impl Measured {
    pub(crate) fn requests(&self) -> f64 {
        float(self.latencies.len())
    }

    /// Requests a second.
    pub(crate) fn rate(&self) -> f64 {
        self.requests() / self.seconds
    }

    /// The latency in milliseconds that so large a share of the requests kept.
    pub(crate) fn ms(&self, share: f64) -> Option<f64> {
        percentile(&self.latencies, share).map(|micros| f64::from(micros) / 1000.0)
    }
}

/// Asks one server.
#[derive(Debug)]
pub(crate) struct Client {
    runtime: Runtime,
    address: SocketAddr,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self {
            runtime: Builder::new_current_thread().enable_all().build()?,
            address,
        })
    }

    /// One answer, on a separate connection.
    pub(crate) fn once(&self, request: &Request) -> anyhow::Result<Answer> {
        self.runtime.block_on(async {
            let asking = async { Connection::open(self.address).await?.ask(request, true).await };
            tokio::time::timeout(PATIENCE, asking)
                .await
                .context("no answer in time")?
        })
    }

    /// The time until one answer is whole, connecting included.
    pub(crate) fn time(&self, request: &Request) -> anyhow::Result<(Duration, Answer)> {
        let started = Instant::now();
        let answer = self.once(request)?;
        Ok((started.elapsed(), answer))
    }

    /// Keeps this number of connections busy for a time, after a warm-up of a fifth of it.
    pub(crate) fn load(
        &self,
        request: &Request,
        connections: u32,
        time: Duration,
    ) -> anyhow::Result<Measured> {
        let first = self.once(request)?;
        let address = self.address;
        self.runtime.block_on(async {
            let begin = Instant::now() + time / 5;
            let end = begin + time;
            let mut tasks = JoinSet::new();
            for _ in 0..connections {
                let request = request.clone();
                tasks.spawn(drive(address, request, first.status, begin, end));
            }
            let (mut latencies, mut errors, mut last) = (Vec::new(), 0, begin);
            while let Some(driven) = tasks.join_next().await {
                let driven = driven??;
                latencies.extend(driven.latencies);
                errors += driven.errors;
                last = last.max(driven.ended);
            }
            latencies.sort_unstable();
            ensure!(!latencies.is_empty(), "no request was answered");
            Ok(Measured {
                seconds: last.saturating_duration_since(begin).max(time).as_secs_f64(),
                latencies,
                errors,
                status: first.status,
                bytes: first.bytes,
            })
        })
    }
}

/// What one connection saw.
struct Driven {
    latencies: Vec<u32>,
    errors: u64,
    ended: Instant,
}

/// Repeats the request. Requests that begin after the warm-up count; at least one does, whatever its time.
async fn drive(
    address: SocketAddr,
    request: Request,
    status: u16,
    begin: Instant,
    end: Instant,
) -> anyhow::Result<Driven> {
    let mut connection = Connection::open(address).await?;
    let mut driven = Driven {
        latencies: Vec::new(),
        errors: 0,
        ended: begin,
    };
    loop {
        let started = Instant::now();
        if started >= end && !driven.latencies.is_empty() {
            return Ok(driven);
        }
        let answer = connection.ask(&request, false).await?;
        if answer.status != status {
            driven.errors += u64::from(started >= begin);
            ensure!(started < end + PATIENCE, "all requests are rejected");
            tokio::time::sleep(TURNED_AWAY).await;
            continue;
        }
        if started >= begin || started >= end {
            driven.ended = Instant::now();
            let micros = driven.ended.duration_since(started).as_micros();
            driven.latencies.push(u32::try_from(micros).unwrap_or(u32::MAX));
        }
    }
}

struct Connection {
    stream: TcpStream,
    /// Received bytes that are not yet read.
    buffer: Vec<u8>,
}

/// What the head of an answer says.
struct Head {
    status: u16,
    length: Option<usize>,
    chunked: bool,
    etag: Option<String>,
    /// Bytes of the head itself.
    size: usize,
}

impl Connection {
    async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(64 * 1024),
        })
    }

    async fn ask(&mut self, request: &Request, keep: bool) -> anyhow::Result<Answer> {
        self.stream.write_all(&request.0).await.context("asking")?;
        self.buffer.clear();
        let head = loop {
            self.receive().await?;
            if let Some(head) = parse(&self.buffer)? {
                break head;
            }
        };
        let (bytes, body) = match (head.length, head.chunked) {
            (_, true) => self.chunks(head.size, keep).await?,
            (length, false) => {
                let length = if head.status == 304 {
                    0
                } else {
                    length.unwrap_or(0)
                };
                let end = head.size + length;
                self.buffer.reserve(end.saturating_sub(self.buffer.len()));
                while self.buffer.len() < end {
                    self.receive().await?;
                }
                let body = if keep {
                    self.buffer.get(head.size..end).unwrap_or_default()
                } else {
                    &[]
                };
                (length, body.to_vec())
            }
        };
        Ok(Answer {
            status: head.status,
            etag: head.etag,
            bytes,
            body,
        })
    }

    /// The chunks from this place on: their total length, and their content if `keep`.
    async fn chunks(&mut self, mut place: usize, keep: bool) -> anyhow::Result<(usize, Vec<u8>)> {
        let (mut bytes, mut body) = (0, Vec::new());
        loop {
            let rest = self.buffer.get(place..).unwrap_or_default();
            let parsed = httparse::parse_chunk_size(rest).map_err(|_| anyhow::anyhow!("a broken chunk"))?;
            let httparse::Status::Complete((size_line, size)) = parsed else {
                self.receive().await?;
                continue;
            };
            let size = usize::try_from(size)?;
            let (begin, end) = (place + size_line, place + size_line + size);
            while self.buffer.len() < end + 2 {
                self.receive().await?;
            }
            if size == 0 {
                return Ok((bytes, body));
            }
            if keep {
                body.extend_from_slice(self.buffer.get(begin..end).unwrap_or_default());
            }
            bytes += size;
            place = end + 2;
        }
    }

    async fn receive(&mut self) -> anyhow::Result<()> {
        if self
            .stream
            .read_buf(&mut self.buffer)
            .await
            .context("reading an answer")?
            == 0
        {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

/// The head, once it is whole.
fn parse(bytes: &[u8]) -> anyhow::Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; 48];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(size) = response.parse(bytes).context("reading an answer's head")? else {
        return Ok(None);
    };
    let mut head = Head {
        status: response.code.unwrap_or(0),
        length: None,
        chunked: false,
        etag: None,
        size,
    };
    for header in response.headers.iter() {
        let value = || String::from_utf8_lossy(header.value).trim().to_owned();
        if header.name.eq_ignore_ascii_case("content-length") {
            head.length = Some(value().parse().context("reading a content-length")?);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            head.chunked = true;
        } else if header.name.eq_ignore_ascii_case("etag") {
            head.etag = Some(value());
        }
    }
    Ok(Some(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\netag: \"a\"\r\n\r\nhello";
        for cut in 0..text.len() - 6 {
            assert!(parse(&text[..cut]).unwrap().is_none(), "{cut}");
        }
        let head = parse(text).unwrap().unwrap();
        assert_eq!(
            (head.status, head.length, head.size),
            (200, Some(5), text.len() - 5)
        );
        assert_eq!(head.etag.as_deref(), Some("\"a\""));
    }
}
