//! Requests below `/api/v1`, byte for byte.
//!
//! Testkit's [`wire`] builds the requests and reads the answers. [`wire::ask`] is not used, because the oracle sends
//! header values that are not UTF-8, accepts that there is no answer, and also reads bytes after the declared length.

use std::{
    io::{Read as _, Write as _},
    net::SocketAddr,
};

use assay_testkit::wire;
pub use assay_testkit::{
    Response,
    wire::{escape, send},
};

/// A client with a key.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    authorization: String,
}

impl Client {
    /// A client of this server with this read key.
    pub fn new(address: SocketAddr, key: &str) -> Self {
        Self {
            address,
            authorization: format!("Bearer {key}"),
        }
    }

    /// Gets a path below `/api/v1`.
    pub fn get(&self, path: &str) -> Response {
        self.ask("GET", path, &[])
    }

    /// Sends a request with another method or additional headers.
    pub fn ask(&self, method: &str, path: &str, head: &[(&str, &str)]) -> Response {
        let mut fields: Vec<(&str, &[u8])> = vec![("Authorization", self.authorization.as_bytes())];
        fields.extend(head.iter().map(|(name, value)| (*name, value.as_bytes())));
        ask(self.address, method, path.as_bytes(), &fields)
            .unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }
}

/// Sends a request for a path below `/api/v1` with any bytes; none if the server closes without an answer.
fn ask(address: SocketAddr, method: &str, path: &[u8], head: &[(&str, &[u8])]) -> Option<Response> {
    let request = wire::request(method, &[b"/api/v1", path].concat(), head);
    let mut stream = wire::connect(address);
    // A server may refuse an over-long head before it has read all of it.
    let _sent = stream.write_all(&request);
    let mut unread = Vec::new();
    let mut answer = wire::read(&mut stream, &mut unread, method == "HEAD")?;
    // The server closes the connection, so a forbidden body would be visible.
    let _closed = stream.read_to_end(&mut unread);
    answer.body.extend(unread);
    Some(answer)
}

/// A query value as forms write it: a space is a plus sign.
pub fn form(text: &str) -> String {
    escape(text).replace("%20", "+")
}
