//! JSON bodies for requests that the protocol layer refuses.
//!
//! actix-http answers an unreadable or late head by itself, without a body and without a hook, and then closes the
//! connection. This module recognises that bare answer in the bytes written to the client and replaces it by one with
//! the body of every other error.

use serde::Serialize;

/// The fault of a refused request. The requested route is not known at that point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Its body breaks off, or a chunk of it is not valid.
    BrokenBody,
    /// It is not HTTP, or its target is not a URI.
    Malformed,
    /// It is too long, or has too many fields.
    TooLarge,
    /// It did not arrive in time.
    TooSlow,
}

/// The body of the answer, in the form of every other error.
#[derive(Serialize)]
struct Body {
    error: &'static str,
    code: &'static str,
}

impl Fault {
    /// The fault for which the protocol layer uses this status.
    const fn of_status(status: u16) -> Option<Self> {
        match status {
            400 => Some(Self::Malformed),
            431 => Some(Self::TooLarge),
            408 => Some(Self::TooSlow),
            _ => None,
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::BrokenBody => {
                "The body breaks off or is not in the chunked transfer coding: a chunk's size is no hexadecimal \
                 number, or its line end is missing."
            }
            Self::Malformed => {
                "The request line or a header field is not valid HTTP, or the target is \
                 longer than 65,534 bytes; percent-encode spaces and all characters that are not ASCII."
            }
            Self::TooLarge => {
                "The request has more than 96 header fields or a head of more than 128 KiB; \
                 send fewer and shorter ones."
            }
            Self::TooSlow => "The request did not arrive in time; send its head within five seconds.",
        }
    }

    fn body(self) -> Option<Vec<u8>> {
        serde_json::to_vec(&Body {
            error: self.sentence(),
            code: "invalid_parameter",
        })
        .ok()
    }
}

/// The only header fields of a bare answer. Every answer of the application has further fields.
const BARE_FIELDS: [&str; 3] = ["content-length", "connection", "date"];
/// An upper bound for the length of a bare answer, in bytes.
const LONGEST: usize = 256;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// A bare refusal at the end of the written bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Its offset in the written bytes.
    pub(crate) place: usize,
    /// The answer with a body that replaces it.
    pub(crate) answer: Vec<u8>,
}

impl Refusal {
    /// Finds the refusal that `written` ends with. A refusal is always the last answer of a connection.
    pub(crate) fn at_the_end_of(written: &[u8]) -> Option<Self> {
        if !written.ends_with(END_OF_HEAD) {
            return None;
        }
        let from = written.len().saturating_sub(LONGEST);
        let tail = written.get(from..)?;
        let place = from + tail.windows(7).rposition(|window| window == b"HTTP/1.")?;
        let head = written.get(place..)?.strip_suffix(END_OF_HEAD)?;
        let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
        let status_line = lines.next()?;
        let status = status_line.split(' ').nth(1)?.parse().ok()?;
        let body = Fault::of_status(status)?.body()?;
        let mut date = "";
        for line in lines {
            let (name, value) = line.split_once(": ")?;
            if !BARE_FIELDS.contains(&name) || (name == "content-length" && value != "0") {
                return None;
            }
            if name == "date" {
                date = value;
            }
        }
        let answer = answer(status_line, &format!("date: {date}\r\n"), &body);
        Some(Self { place, answer })
    }
}

/// The answer to a request with a broken body.
pub(crate) fn of_broken_body() -> Vec<u8> {
    let body = Fault::BrokenBody.body().unwrap_or_default();
    answer("HTTP/1.1 400 Bad Request", "", &body)
}

/// The last answer of a connection. `date` is a field with its line end, or empty.
fn answer(status_line: &str, date: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{status_line}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         cache-control: private, no-store\r\nconnection: close\r\n{date}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\
        date: Mon, 23 Nov 2026 07:00:00 GMT\r\n\r\n";

    #[test]
    fn a_bare_refusal_gets_a_body() {
        let refusal = Refusal::at_the_end_of(BARE.as_bytes()).unwrap();
        assert_eq!(refusal.place, 0);
        let answer = String::from_utf8(refusal.answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"));
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())));
        assert!(head.ends_with("date: Mon, 23 Nov 2026 07:00:00 GMT"));
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["code"], "invalid_parameter");
        for status in ["431 Request Header Fields Too Large", "408 Request Timeout"] {
            let bare = BARE.replace("400 Bad Request", status);
            assert!(Refusal::at_the_end_of(bare.as_bytes()).is_some(), "{status}");
        }
    }

    #[test]
    fn an_answer_before_a_refusal_is_unchanged() {
        let before = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".repeat(20);
        let refusal = Refusal::at_the_end_of(format!("{before}{BARE}").as_bytes()).unwrap();
        assert_eq!(refusal.place, before.len());
    }

    #[test]
    fn answers_of_the_api_are_no_refusals() {
        for answer in [
            // The answer of the rate limit, which has no body either.
            BARE.replace("400 Bad Request", "429 Too Many Requests"),
            BARE.replace("content-length: 0", "content-length: 0\r\nx-request-id: a"),
            // The answer to HEAD.
            BARE.replace("content-length: 0", "content-length: 99"),
            BARE.replace("400 Bad Request", "200 OK"),
            format!("{BARE}{{}}"),
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\na HTTP/1.\r\n\r\n".to_owned(),
            "\r\n\r\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(Refusal::at_the_end_of(answer.as_bytes()), None, "{answer}");
        }
    }
}
