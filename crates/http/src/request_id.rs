//! Request ids, which connect a response with its log lines.

use std::fmt;

use actix_web::{
    HttpRequest,
    http::header::{HeaderMap, HeaderName, HeaderValue},
};
use assay_domain::key;

/// The prefix of every key.
const KEY_PREFIX: &[u8] = key::INGEST_PREFIX.as_bytes();

/// A request's id: the client's own if it is valid, else a random one.
#[derive(Clone)]
pub struct RequestId {
    value: HeaderValue,
    is_the_clients: bool,
}

impl RequestId {
    /// The header of the id.
    pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

    /// The id of a request.
    pub fn of(request: &HttpRequest) -> Self {
        Self::of_headers(request.headers())
    }

    /// The id of a request with these headers.
    pub fn of_headers(headers: &HeaderMap) -> Self {
        match headers.get(Self::HEADER) {
            Some(value) if is_sane(value.as_bytes()) => Self {
                value: value.clone(),
                is_the_clients: true,
            },
            Some(_) | None => Self {
                value: random(),
                is_the_clients: false,
            },
        }
    }

    /// The value of the header.
    pub fn value(&self) -> HeaderValue {
        self.value.clone()
    }

    /// Whether the client sent it.
    pub const fn is_the_clients(&self) -> bool {
        self.is_the_clients
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.value.to_str().unwrap_or_default())
    }
}

/// A valid id is short, needs no quoting in a log, and is not a key that was put into the wrong header.
fn is_sane(id: &[u8]) -> bool {
    (1..=64).contains(&id.len())
        && !id
            .windows(KEY_PREFIX.len())
            .any(|part| part.eq_ignore_ascii_case(KEY_PREFIX))
        && !key::is_in(id)
        && id
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
}

fn random() -> HeaderValue {
    // This fallback is unreachable: hexadecimal digits are always a valid header value.
    HeaderValue::from_str(&format!("{:032x}", rand::random::<u128>()))
        .unwrap_or_else(|_| HeaderValue::from_static("none"))
}
