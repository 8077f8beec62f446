//! Checks the heads of a body's parts while it arrives, so that a wrong field is refused before the rest is sent.

use std::{
    io,
    pin::pin,
    task::{Context, Poll, Waker},
};

use actix_web::web::Bytes;
use futures_util::stream;

use super::{Coding, Form, LONGEST_HEAD, Shape, file_name};
use crate::{error::IngestError, fields::field_of};

/// The number of parts whose heads are checked early. Later ones are checked when the body is complete.
const CHECKED_EARLY: usize = 200;
/// The end of a part's head.
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// The boundary of a head that is parsed alone.
const BOUNDARY: &str = "head";

/// The heads of a body's parts.
pub(crate) struct PartHeads {
    /// The line that begins a part.
    delimiter: Vec<u8>,
    /// The bytes since the last complete head or delimiter.
    rest: Vec<u8>,
    is_in_head: bool,
    /// How many further heads are checked.
    remaining: usize,
}

impl PartHeads {
    /// The heads of a body that is not compressed; none for a body that is one report.
    pub(crate) fn of(shape: &Shape) -> Option<Self> {
        let Form::Multipart(boundary) = &shape.form else {
            return None;
        };
        (shape.coding == Coding::Identity).then(|| Self {
            delimiter: format!("\r\n--{boundary}").into_bytes(),
            // The first delimiter may be the first line.
            rest: b"\r\n".to_vec(),
            is_in_head: false,
            remaining: CHECKED_EARLY,
        })
    }

    /// Checks the heads that end in the next bytes of the body.
    pub(crate) fn check(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        if self.remaining == 0 {
            return Ok(());
        }
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let mut unread = rest.as_slice();
        while self.remaining > 0 {
            let end = if self.is_in_head {
                END_OF_HEAD
            } else {
                &self.delimiter
            };
            let Some(place) = unread.windows(end.len()).position(|window| window == end) else {
                break;
            };
            let (before, after) = unread.split_at(place + end.len());
            if self.is_in_head {
                check_head(before)?;
                self.remaining -= 1;
            }
            self.is_in_head = !self.is_in_head;
            unread = after;
        }
        // The end of a delimiter may be in the next bytes. What is too long for a head is refused with the whole body.
        let kept = if self.is_in_head {
            LONGEST_HEAD
        } else {
            self.delimiter.len()
        };
        if self.is_in_head && unread.len() > kept {
            self.remaining = 0;
        }
        let kept = unread.len().saturating_sub(kept);
        self.rest = unread.get(kept..).unwrap_or_default().to_vec();
        Ok(())
    }
}

/// Checks the name of a field or a file. Anything else is checked with the whole body.
fn check_head(head: &[u8]) -> Result<(), IngestError> {
    let body = [
        format!("--{BOUNDARY}").as_bytes(),
        head,
        format!("\r\n--{BOUNDARY}--\r\n").as_bytes(),
    ]
    .concat();
    let mut parts = multer::Multipart::new(stream::iter([io::Result::Ok(Bytes::from(body))]), BOUNDARY);
    let part = pin!(parts.next_field()).poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Ok(Some(part))) = part else {
        return Ok(());
    };
    match (part.file_name(), part.name()) {
        (Some(name), _) => file_name(name).map(drop),
        (None, Some(name)) => field_of(name).map(drop),
        (None, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};

    use super::*;

    fn heads(coding: &'static str) -> Option<PartHeads> {
        let mut headers = HeaderMap::new();
        let content_type = HeaderValue::from_static("multipart/form-data; boundary=B");
        headers.insert(CONTENT_TYPE, content_type);
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        PartHeads::of(&Shape::of(&headers).unwrap())
    }

    fn part(disposition: &str, content: &str) -> String {
        format!("--B\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{content}\r\n")
    }

    #[test]
    fn a_wrong_field_is_refused_with_the_byte_that_ends_its_head() {
        let right =
            part("name=\"branch\"", "main") + &part("name=\"r\"; filename=\"a.xml\"", "\r\n--C\r\n\r\n");
        for wrong in [
            part("name=\"brunch\"", "main"),
            part("name=\"r\"; filename=\"/etc/passwd\"", "x"),
        ] {
            let body = right.clone() + &wrong;
            let end_of_head = right.len() + wrong.find("\r\n\r\n").unwrap() + END_OF_HEAD.len();
            for piece in [1, 7, 64, 10_000] {
                let mut heads = heads("identity").unwrap();
                let mut sent = 0;
                let refused = body.as_bytes().chunks(piece).find(|bytes| {
                    sent += bytes.len();
                    heads.check(bytes).is_err()
                });
                assert!(refused.is_some(), "{piece}: {wrong}");
                assert!(
                    (end_of_head..end_of_head + piece).contains(&sent),
                    "{piece}: {sent}"
                );
            }
        }
    }

    #[test]
    fn right_parts_pass_in_any_pieces() {
        let body = part("name=\"branch\"", "main").repeat(CHECKED_EARLY + 10) + "--B--\r\n";
        for piece in [1, 3, 100, 1_000_000] {
            let mut heads = heads("identity").unwrap();
            assert!(
                body.as_bytes()
                    .chunks(piece)
                    .all(|bytes| heads.check(bytes).is_ok())
            );
        }
        assert!(heads("gzip").is_none());
    }
}
