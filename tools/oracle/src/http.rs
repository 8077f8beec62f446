//! Requests below `/api/v1`.

use std::net::SocketAddr;

use assay_testkit::wire;
pub use assay_testkit::{Response, wire::escape};

/// A client with a key.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    key: String,
}

impl Client {
    /// A client of this server with this read key.
    pub fn new(address: SocketAddr, key: &str) -> Self {
        Self {
            address,
            key: key.to_owned(),
        }
    }

    /// Gets a path below `/api/v1`.
    pub fn get(&self, path: &str) -> Response {
        wire::get(self.address, &format!("/api/v1{path}"), &self.key, &[])
    }
}

/// A query value as forms write it: a space is a plus sign.
pub fn form(text: &str) -> String {
    escape(text).replace("%20", "+")
}
