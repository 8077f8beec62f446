//! Whether Postgres answers: a start-up packet, sent by hand because a driver would be a dependency for nothing.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use crate::ROLE;

/// Whether Postgres on this socket accepts a session now.
pub(crate) fn answers(socket: &Path) -> bool {
    try_session(socket).unwrap_or(false)
}

fn try_session(socket: &Path) -> std::io::Result<bool> {
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
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    // `R` asks for, or here grants, authentication; an error (starting up, shutting down) is `E`.
    let accepted = kind == *b"R";
    // Terminate, so that the log says nothing of a lost connection.
    stream.write_all(&[b'X', 0, 0, 0, 4])?;
    Ok(accepted)
}
