//! Checks whether Postgres answers. This crate writes the start-up packet itself, because it needs nothing else of a
//! driver.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use crate::settings::ROLE;

/// The longest refusal that is read, in bytes.
const LONGEST_REFUSAL: u64 = 8_192;
/// Classes of errors with which Postgres rejects sessions temporarily: it starts, stops or recovers, or it lacks
/// resources such as sessions.
const TEMPORARY_CLASSES: [&str; 2] = ["57P", "53"];

/// Postgres' answer to a new session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It accepts a session.
    Accepted,
    /// It did not answer, or does not accept a session at the moment.
    NotYet,
    /// It refuses sessions for this reason.
    Refused(String),
}

/// Requests a session on this socket.
pub(crate) fn answer(socket: &Path) -> Answer {
    try_session(socket).unwrap_or(Answer::NotYet)
}

fn try_session(socket: &Path) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.set_write_timeout(Some(Duration::from_secs(2)))?;
    let mut body = 196_608_u32.to_be_bytes().to_vec(); // protocol 3.0
    for word in ["user", ROLE, "database", "postgres", ""] {
        body.extend_from_slice(word.as_bytes());
        body.push(0);
    }
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(&body)?;
    loop {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        let body = packet(&mut stream)?;
        match kind {
            [b'E'] => return Ok(refusal(&body)),
            // Ready for a query. A session may still be rejected after authentication, so earlier messages do not
            // count.
            [b'Z'] => break,
            _ => {}
        }
    }
    // Terminate, so that the log has no line about a lost connection.
    stream.write_all(&[b'X', 0, 0, 0, 4])?;
    Ok(Answer::Accepted)
}

/// The rest of a message after its kind: its length, which includes itself, and its body.
fn packet(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u64::from(u32::from_be_bytes(length)).saturating_sub(4);
    let mut body = Vec::new();
    stream.take(length.min(LONGEST_REFUSAL)).read_to_end(&mut body)?;
    Ok(body)
}

/// Reads an error's fields: each is a letter and a text that ends with NUL.
fn refusal(body: &[u8]) -> Answer {
    let field = |letter: u8| {
        let value = body
            .split(|byte| *byte == 0)
            .find_map(|field| match field.split_first() {
                Some((first, text)) if *first == letter => Some(text),
                Some(_) | None => None,
            });
        value.map(|text| String::from_utf8_lossy(text).into_owned())
    };
    let code = field(b'C').unwrap_or_default();
    if TEMPORARY_CLASSES.iter().any(|class| code.starts_with(class)) {
        return Answer::NotYet;
    }
    Answer::Refused(field(b'M').unwrap_or(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_distinguished_from_a_server_that_is_not_ready() {
        let starting = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";
        assert_eq!(refusal(starting), Answer::NotYet);
        assert_eq!(refusal(b"SFATAL\0C53300\0Mtoo many clients\0\0"), Answer::NotYet);
        let gone = b"SFATAL\0C3D000\0Mdatabase \"postgres\" does not exist\0\0";
        let message = "database \"postgres\" does not exist".to_owned();
        assert_eq!(refusal(gone), Answer::Refused(message));
    }
}
