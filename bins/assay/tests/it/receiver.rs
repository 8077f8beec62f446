//! A listener with prepared answers that records the requests. It is for answers that a real server gives only under
//! overload, during a shutdown or by a fault.

use std::{
    collections::VecDeque,
    io::{self, BufRead as _, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Method, path and version.
    pub(crate) line: String,
    /// The headers, their names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body without its coding.
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(header, _)| header == name)?;
        Some(value)
    }

    /// The parts of a multipart body: name, file name, content.
    pub(crate) fn parts(&self) -> Vec<(String, Option<String>, String)> {
        let media = self.header("content-type").unwrap();
        let boundary = media.strip_prefix("multipart/form-data; boundary=").unwrap();
        let body = String::from_utf8(self.body.clone()).unwrap();
        let body = body.strip_suffix(&format!("--{boundary}--\r\n")).unwrap();
        let quoted = |head: &str, name: &str| {
            let (_, rest) = head.split_once(&format!("; {name}=\""))?;
            Some(rest.split('"').next().unwrap().to_owned())
        };
        body.split(&format!("--{boundary}\r\n"))
            .skip(1)
            .map(|part| {
                let (head, content) = part.split_once("\r\n\r\n").unwrap();
                (
                    quoted(head, "name").unwrap(),
                    quoted(head, "filename"),
                    content.strip_suffix("\r\n").unwrap().to_owned(),
                )
            })
            .collect()
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let answer = self
            .parts()
            .into_iter()
            .find(|(field, file, _)| field == name && file.is_none());
        answer.map(|(_, _, value)| value)
    }

    /// The files: name and content.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let files = self.parts().into_iter();
        files
            .filter_map(|(_, file, content)| Some((file?, content)))
            .collect()
    }
}

/// A prepared answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// None if the connection is closed without an answer.
    status: Option<u16>,
    headers: String,
    pub(crate) body: String,
}

/// An answer with a JSON body.
pub(crate) fn reply(status: u16, body: &Value) -> Reply {
    Reply {
        status: Some(status),
        headers: String::new(),
        body: body.to_string(),
    }
}

/// An answer that is lost: the connection is closed after the request.
pub(crate) fn lost() -> Reply {
    Reply {
        status: None,
        headers: String::new(),
        body: String::new(),
    }
}

/// An error of the ingest listener.
pub(crate) fn error(status: u16, code: &str) -> Reply {
    reply(
        status,
        &json!({"error": format!("made to answer {code}"), "code": code}),
    )
}

/// The answer to a report that was stored.
pub(crate) fn stored() -> Reply {
    reply(
        201,
        &json!({
            "project": {"id": "p", "name": "storefront"}, "runId": "r1", "runNumber": 812, "shardId": "r1", "status": "failed",
            "counts": {"total": 3, "passed": 2, "failed": 1, "skipped": 0, "recovered": 1}, "tests": 3, "effect": "added",
            "values": [], "warnings": ["the branch is unknown"], "failures": null,
            "verdictsChanged": [
                {"testName": "pays", "filePath": "pay.ts", "from": "healthy", "to": "flaky"},
                {"testName": "adds", "filePath": null, "from": "healthy", "to": "flaky"},
                {"testName": "ships", "filePath": "ship.ts", "from": "healthy", "to": "broken"},
            ],
        }),
    )
}

impl Reply {
    pub(crate) fn with(mut self, header: &str) -> Self {
        self.headers += header;
        self.headers += "\r\n";
        self
    }

    /// A body in another form, as of a proxy.
    pub(crate) fn with_body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }
}

/// The listener.
pub(crate) struct Receiver {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Receiver {
    /// Gives one of these answers to each request, and repeats the last one.
    pub(crate) fn start(replies: Vec<Reply>) -> Self {
        Self::listen("http", replies, Ok)
    }

    /// The same over TLS.
    pub(crate) fn start_encrypted(config: Arc<rustls::ServerConfig>, replies: Vec<Reply>) -> Self {
        Self::listen("https", replies, move |stream| {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
            Ok(rustls::StreamOwned::new(connection, stream))
        })
    }

    fn listen<S: Read + Write>(
        scheme: &str,
        replies: Vec<Reply>,
        accept: impl Fn(TcpStream) -> io::Result<S> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&requests);
        let mut replies = VecDeque::from(replies);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let next = match replies.len() {
                    1 => replies[0].clone(),
                    _ => replies.pop_front().unwrap(),
                };
                // A client that disconnects early is not a failure of the listener.
                let stream = accept(stream.unwrap()).unwrap();
                let _ = answer(stream, &next, |request| recorded.lock().unwrap().push(request));
            }
        });
        Self { url, requests }
    }

    /// The requests received so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// Receives a request and replies. The request is recorded before the reply, which may be the last thing that the
/// client waits for.
fn answer(stream: impl Read + Write, reply: &Reply, record: impl FnOnce(Request)) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let mut request = Request {
        line: line.trim_end().to_owned(),
        headers,
        body: Vec::new(),
    };
    if request.header("expect").is_some() {
        reader
            .get_mut()
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .ok()?;
    }
    let length = request
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.body = match request.header("content-encoding") {
        Some("zstd") => zstd::decode_all(body.as_slice()).unwrap(),
        other => {
            assert_eq!(other, None);
            body
        }
    };
    record(request);
    let Reply {
        status,
        headers,
        body,
    } = reply;
    let status = (*status)?;
    let head = format!(
        "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    let stream = reader.get_mut();
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    stream.flush().ok()
}
