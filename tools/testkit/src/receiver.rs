//! A receiver of webhooks: an HTTP server that keeps what it gets.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use rustls::ServerConfig;

use crate::authority::{Connection, accept};

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The path.
    pub path: String,
    /// The headers, by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// What a receiver does with a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A status and a body.
    Status(u16, String),
    /// A status that is too early, and the seconds to wait in `Retry-After`.
    Later(u16, u64),
    /// A status, and only the first half of an announced body.
    Half(u16),
    /// A redirection to this address.
    Redirect(String),
    /// It keeps the request and closes the connection.
    Close,
}

/// An HTTP server on a port of its own, until the process ends.
#[derive(Debug)]
pub struct Receiver {
    /// Its port on 127.0.0.1.
    pub port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    answer: Arc<Mutex<Answer>>,
}

impl Receiver {
    /// Starts it. It answers with status 200 and `{}`.
    #[expect(
        clippy::new_without_default,
        reason = "a default value should not open a port"
    )]
    pub fn new() -> Self {
        Self::start(None)
    }

    /// The same over TLS.
    pub fn encrypted(tls: Arc<ServerConfig>) -> Self {
        Self::start(Some(tls))
    }

    fn start(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(Mutex::new(Answer::Status(200, "{}".to_owned())));
        let (kept, answers) = (Arc::clone(&requests), Arc::clone(&answer));
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                serve(accept(connection, tls.as_ref()), &kept, &answers);
            }
        });
        Self {
            port,
            requests,
            answer,
        }
    }

    /// Changes the answer to later requests.
    pub fn answer(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// Answers the requests of a connection. One that sends none is none.
fn serve(connection: Box<dyn Connection>, requests: &Mutex<Vec<Request>>, answer: &Mutex<Answer>) {
    let mut reader = BufReader::new(connection);
    while let Some(request) = read(&mut reader) {
        requests.lock().unwrap().push(request);
        let (head, body) = match answer.lock().unwrap().clone() {
            Answer::Status(status, body) => (format!("HTTP/1.1 {status} It"), body),
            Answer::Later(status, seconds) => (
                format!("HTTP/1.1 {status} Later\r\nRetry-After: {seconds}"),
                String::new(),
            ),
            Answer::Half(status) => {
                let half = format!("HTTP/1.1 {status} It\r\nContent-Length: 8\r\n\r\nhalf");
                // The client may have closed the connection.
                let _ = reader.get_mut().write_all(half.as_bytes());
                return;
            }
            Answer::Redirect(to) => (format!("HTTP/1.1 307 There\r\nLocation: {to}"), String::new()),
            Answer::Close => return,
        };
        let length = body.len();
        let written = write!(
            reader.get_mut(),
            "{head}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        if written.is_err() {
            return;
        }
    }
}

pub(crate) fn read(reader: &mut BufReader<Box<dyn Connection>>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        path,
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}
