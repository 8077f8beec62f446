//! A client that sends exactly the given bytes: no library corrects a path, a header or the end of a request.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
};

use crate::{PATIENCE, Response};

/// Sends bytes on a new connection and reads the answer; none if the server closes without one.
pub fn send(address: SocketAddr, request: &[u8], is_head: bool) -> Option<Response> {
    let mut stream = connect(address);
    // A server may refuse a request before it has read all of it.
    let _sent = stream.write_all(request);
    let mut unread = Vec::new();
    read(&mut stream, &mut unread, is_head)
}

/// Gets a path with a key and additional headers.
pub fn get(address: SocketAddr, path: &str, key: &str, head: &[(&str, &str)]) -> Response {
    ask(address, "GET", path, Some(key), head)
}

/// Sends a request without a body for a path, which begins with a slash.
pub fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    key: Option<&str>,
    head: &[(&str, &str)],
) -> Response {
    let authorization = key.map(|key| format!("Bearer {key}"));
    let mut fields: Vec<(&str, &[u8])> = Vec::new();
    fields.extend(
        authorization
            .iter()
            .map(|value| ("Authorization", value.as_bytes())),
    );
    fields.extend(head.iter().map(|(name, value)| (*name, value.as_bytes())));
    let request = request(method, path.as_bytes(), &fields);
    send(address, &request, method == "HEAD").unwrap_or_else(|| panic!("no answer to {method} {path}"))
}

/// A request without a body, after which the server closes the connection. The path and the headers may be any bytes.
pub fn request(method: &str, path: &[u8], head: &[(&str, &[u8])]) -> Vec<u8> {
    let mut request = [method.as_bytes(), b" ", path, b" HTTP/1.1\r\n"].concat();
    request.extend_from_slice(b"Host: localhost\r\nConnection: close\r\n");
    for (name, value) in head {
        request.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    request.extend_from_slice(b"\r\n");
    request
}

/// A connection that is reused for as long as the server keeps it open.
#[derive(Debug)]
pub struct PersistentConnection {
    address: SocketAddr,
    stream: Option<TcpStream>,
    unread: Vec<u8>,
}

impl PersistentConnection {
    /// A connection that is opened with the first request.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
            unread: Vec::new(),
        }
    }

    /// Sends a valid HTTP request. If the server has closed the connection in the meantime, one new connection is
    /// opened.
    pub fn send(&mut self, request: &[u8], is_head: bool) -> Option<Response> {
        for _ in 0..2 {
            let is_reused = self.stream.is_some();
            let stream = self.stream.get_or_insert_with(|| connect(self.address));
            let _sent = stream.write_all(request);
            let answer = read(stream, &mut self.unread, is_head);
            let is_closing = answer
                .as_ref()
                .is_none_or(|answer| answer.header("connection").is_some_and(|value| value == "close"));
            if is_closing {
                self.stream = None;
                self.unread.clear();
            }
            if answer.is_some() || !is_reused {
                return answer;
            }
        }
        None
    }

    /// The bytes after the last answer, which should be empty.
    pub fn unread(&self) -> &[u8] {
        &self.unread
    }
}

/// A connection with time limits for reads and writes.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a socket takes its settings");
    stream
        .set_write_timeout(Some(PATIENCE))
        .expect("a socket takes its settings");
    stream.set_nodelay(true).expect("a socket takes its settings");
    stream
}

/// Reads one final answer. Bytes after it stay in `unread`.
pub fn read(stream: &mut impl Read, unread: &mut Vec<u8>, is_head: bool) -> Option<Response> {
    loop {
        if let Some((answer, end)) = parse(unread, is_head) {
            unread.drain(..end);
            // "100 Continue" announces the answer and is skipped.
            if answer.status == 100 {
                continue;
            }
            return Some(answer);
        }
        let mut chunk = [0; 16_384];
        match stream.read(&mut chunk) {
            Ok(0) => return None,
            Ok(count) => unread.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("no answer within {PATIENCE:?}")
            }
            Err(_) => return None,
        }
    }
}

/// The answer at the beginning of the bytes, and its length; none if it is incomplete.
pub fn parse(bytes: &[u8], is_head: bool) -> Option<(Response, usize)> {
    let head_end = find(bytes, b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = text.split("\r\n");
    let status = lines
        .next()?
        .split(' ')
        .nth(1)?
        .parse()
        .expect("a status is a number");
    let headers: Vec<_> = lines
        .map(|line| line.split_once(':').expect("a header field has a colon"))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let body_start = head_end + 4;
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, length)| {
            length.parse::<usize>().expect("a length is a number")
        });
    assert!(
        !headers.iter().any(|(name, _)| name == "transfer-encoding"),
        "an answer without its length: {text}"
    );
    let length = if is_head || status == 304 || status == 100 {
        0
    } else {
        length
    };
    let body = bytes.get(body_start..body_start + length)?.to_vec();
    let response = Response {
        status,
        headers,
        body,
    };
    Some((response, body_start + length))
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

/// A path segment or a query value with all special bytes escaped.
pub fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}
