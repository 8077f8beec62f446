//! What an installation answers at its one address, without a key.

use std::io::{self, Read};

use ureq::{
    SendBody,
    http::{Method, StatusCode, header},
};

use crate::server::http::{Answer, Client, NoAnswer};

impl Client {
    /// The answer to a request for a path.
    pub fn get(&self, path: &str) -> Result<Answer, NoAnswer> {
        let url = format!("{}{path}", self.address.base());
        self.send(Method::GET, &url, &[], None, None)
    }

    /// Whether something on the way refuses a report of this length before it is sent. Nothing is sent of it.
    pub fn refuses_length(&self, bytes: u64) -> Result<bool, NoAnswer> {
        let mut body = NoBody { is_wanted: false };
        let answer = self
            .agent
            .post(self.address.route("reports"))
            .header(header::CONTENT_LENGTH, bytes.to_string())
            .header(header::EXPECT, "100-continue")
            .send(SendBody::from_reader(&mut body));
        // The length was accepted as soon as the body is asked for.
        if body.is_wanted {
            return Ok(false);
        }
        let answer = Answer::read(&self.address, answer)?;
        Ok(answer.status == StatusCode::PAYLOAD_TOO_LARGE)
    }
}

/// A body that ends the request when it is read.
struct NoBody {
    is_wanted: bool,
}

impl Read for NoBody {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.is_wanted = true;
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}
