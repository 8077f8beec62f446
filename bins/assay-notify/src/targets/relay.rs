//! A relay on this machine between a client library and its server. It bounds what the library reads and how long it
//! waits.
//!
//! lettre collects a line of any length before it checks the length, and limits the time of each step only.

use std::{
    io::{self, Read as _},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    thread,
};

/// Most bytes that the server may send.
const MOST_BYTES: u64 = 1 << 20;

/// A relay for one connection. Dropping it ends the connection, and so whatever waits for it.
#[derive(Debug)]
pub(crate) struct Relay {
    server: TcpStream,
    /// The port on 127.0.0.1 that stands for the server.
    pub(crate) port: u16,
}

impl Relay {
    /// Relays the first connection to a new port to this server.
    pub(crate) fn to(server: TcpStream) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let relay = Self {
            server: server.try_clone()?,
            port: listener.local_addr()?.port(),
        };
        thread::spawn(move || {
            let (client, _) = listener.accept()?;
            drop(listener);
            forward(&client, &server)
        });
        Ok(relay)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // The server may have ended it.
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

/// Copies the bytes of both directions until the server ends the connection or has sent too much.
fn forward(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    let (mut requests, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        io::copy(&mut requests, &mut to_server)?;
        to_server.shutdown(Shutdown::Write)
    });
    let mut to_client = client;
    let copied = io::copy(&mut server.take(MOST_BYTES), &mut to_client);
    client.shutdown(Shutdown::Both)?;
    server.shutdown(Shutdown::Both)?;
    copied.map(drop)
}
