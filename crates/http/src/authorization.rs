//! The header with a request's key.

use actix_web::http::header::{self, HeaderMap};

/// The value of `Authorization`. Several values are joined as a proxy would join them, which is not a valid key.
pub fn authorization(headers: &HeaderMap) -> Option<Vec<u8>> {
    headers
        .get_all(header::AUTHORIZATION)
        .map(|value| value.as_bytes().to_vec())
        .reduce(|before, value| [before, value].join(&b", "[..]))
}
