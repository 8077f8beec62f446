//! The health check of a container: asks the operators' listener of a running server.

use std::{
    io::{self, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    time::Duration,
};

use crate::settings::{Address, Config};

/// Time limit for connecting, and for each part of the answer.
const WITHIN: Duration = Duration::from_secs(5);
/// The beginning of the answer of a healthy server.
const HEALTHY: &[u8] = b"HTTP/1.1 200 ";

/// Asks the server with these settings whether it is healthy.
///
/// # Errors
/// If its operators' listener is off or does not answer, or it is not healthy.
pub(crate) fn check_health(config: &Config) -> io::Result<()> {
    match config.admin_listen {
        Address::At(listener) => ask(listener),
        Address::Off => Err(io::Error::other(
            "ASSAY_ADMIN_LISTEN is off, so nothing can be asked",
        )),
    }
}

fn ask(listener: SocketAddr) -> io::Result<()> {
    let mut address = listener;
    match address.ip() {
        // A server that listens on all addresses also listens on loopback.
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    let mut connection = TcpStream::connect_timeout(&address, WITHIN)?;
    connection.set_read_timeout(Some(WITHIN))?;
    connection.set_write_timeout(Some(WITHIN))?;
    write!(
        connection,
        "GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut head = [0; HEALTHY.len()];
    connection.read_exact(&mut head)?;
    if head == HEALTHY {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "{address} answers {}",
            String::from_utf8_lossy(&head)
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// The result for a server that listens on all addresses and answers this.
    fn checked(answer: &'static str) -> io::Result<()> {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut asked = [0; 12];
            client.read_exact(&mut asked).unwrap();
            client.write_all(answer.as_bytes()).unwrap();
            asked
        });
        let result = ask(address);
        assert_eq!(&server.join().unwrap(), b"GET /healthz");
        result
    }

    #[test]
    fn a_server_is_healthy_if_it_says_so() {
        assert!(checked("HTTP/1.1 200 OK\r\n\r\n").is_ok());
        for answer in ["HTTP/1.1 503 Service Unavailable\r\n\r\n", "", "HTTP/1.1 20"] {
            assert!(checked(answer).is_err(), "{answer}");
        }
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(ask(closed).is_err());
    }
}
