//! A client that sends exactly the bytes it is given: no library tidies a hostile path away.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// One answer, whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: u16,
    /// The header fields in their order, names in lower case.
    pub(crate) head: Vec<(String, String)>,
    /// The body, its transfer coding undone.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header field.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null where it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The code of an error body.
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The sentence of an error body.
    pub(crate) fn sentence(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }

    /// Head and body in words.
    pub(crate) fn told(&self) -> String {
        format!(
            "{} {:?} {}",
            self.status,
            self.head,
            String::from_utf8_lossy(&self.body)
        )
    }

    /// Everything but the date, to compare two answers byte for byte.
    pub(crate) fn apart_from_date(&self) -> Answer {
        let mut same = self.clone();
        same.head.retain(|(name, _)| name != "date");
        // actix-http keeps fields in a map whose order is each worker's own, and means nothing.
        same.head.sort();
        same
    }
}

/// A caller with a key.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    authorization: String,
}

impl Client {
    /// A caller of this server with this read key.
    pub(crate) fn new(address: SocketAddr, key: &str) -> Self {
        Self {
            address,
            authorization: format!("Bearer {key}"),
        }
    }

    /// The server.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gets a path below `/api/v1`.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    /// Asks with another method or more header fields.
    pub(crate) fn ask(&self, method: &str, path: &str, head: &[(&str, &str)]) -> Answer {
        let authorization = self.authorization.clone();
        let mut fields: Vec<(&str, &[u8])> = vec![("Authorization", authorization.as_bytes())];
        fields.extend(head.iter().map(|(name, value)| (*name, value.as_bytes())));
        ask(self.address, method, path.as_bytes(), &fields)
            .unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }
}

/// Sends a request for a path below `/api/v1`, whatever its bytes; none where the server closes without an answer.
pub(crate) fn ask(address: SocketAddr, method: &str, path: &[u8], head: &[(&str, &[u8])]) -> Option<Answer> {
    let mut request = format!("{method} /api/v1").into_bytes();
    request.extend_from_slice(path);
    request.extend_from_slice(b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in head {
        request.extend_from_slice(format!("{name}: ").as_bytes());
        request.extend_from_slice(value);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    send(address, &request, method == "HEAD")
}

/// Sends bytes and reads one answer.
pub(crate) fn send(address: SocketAddr, request: &[u8], no_body: bool) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.set_nodelay(true).unwrap();
    // A server may refuse an over-long head before it has read all of it.
    let _sent = stream.write_all(request);
    let mut bytes = Vec::new();
    let mut chunk = [0; 65_536];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
        if complete(&bytes, no_body) {
            break;
        }
    }
    parse(&bytes, no_body)
}

fn complete(bytes: &[u8], no_body: bool) -> bool {
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        return false;
    };
    let Some((_, head)) = parse_head(&bytes[..end]) else {
        return false;
    };
    let length: Option<usize> = head
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, v)| v.parse().ok());
    match length {
        // Whatever follows a head without a body is read to its end, to be seen.
        Some(length) => !no_body && bytes.len() >= end + 4 + length,
        None => !no_body && bytes.ends_with(b"0\r\n\r\n"),
    }
}

fn parse(bytes: &[u8], no_body: bool) -> Option<Answer> {
    let end = find(bytes, b"\r\n\r\n")?;
    let (status, head) = parse_head(&bytes[..end])?;
    let rest = &bytes[end + 4..];
    let chunked = head
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if no_body {
        rest.to_vec()
    } else if chunked {
        unchunk(rest)
    } else {
        rest.to_vec()
    };
    Some(Answer { status, head, body })
}

fn parse_head(bytes: &[u8]) -> Option<(u16, Vec<(String, String)>)> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut lines = text.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let head = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Some((status, head))
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = find(bytes, b"\r\n") {
        let size = usize::from_str_radix(String::from_utf8_lossy(&bytes[..end]).trim(), 16).unwrap_or(0);
        if size == 0 || bytes.len() < end + 2 + size {
            break;
        }
        body.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[(end + 4 + size).min(bytes.len())..];
    }
    body
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

/// A path segment or a query value, every byte escaped that could mean anything.
pub(crate) fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// A query value as forms write it: a space is a plus.
pub(crate) fn form(text: &str) -> String {
    escape(text).replace("%20", "+")
}
