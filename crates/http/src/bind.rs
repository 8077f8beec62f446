//! Listening sockets.

#[cfg(target_os = "linux")]
use std::time::Duration;
use std::{io, net};

#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::net::TcpSocket;

/// How long sent data may stay unacknowledged.
#[cfg(target_os = "linux")]
const UNREAD_FOR: Duration = Duration::from_secs(30);
/// The most unsent bytes that the kernel buffers. With a larger number, the kernel would accept megabytes for a client
/// that reads nothing. The server could then not see the progress of a slow reader for minutes.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 128 * 1_024;
/// The length of the accept queue.
const BACKLOG: u32 = 2_048;

/// Binds a listening socket. Call it within an actix or tokio runtime.
pub fn bind(address: net::SocketAddr) -> io::Result<net::TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // A restarted server must not wait for connections in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    // Accepted connections inherit both options.
    #[cfg(target_os = "linux")]
    {
        let options = SockRef::from(&socket);
        options.set_tcp_user_timeout(Some(UNREAD_FOR))?;
        options.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    }
    socket.listen(BACKLOG)?.into_std()
}

/// An address that a request from this machine reaches: a server that listens on all addresses also listens on
/// loopback.
pub fn reachable(listening: net::SocketAddr) -> net::SocketAddr {
    let mut address = listening;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            net::SocketAddr::V4(_) => net::Ipv4Addr::LOCALHOST.into(),
            net::SocketAddr::V6(_) => net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_everywhere_is_reached_here() {
        assert_eq!(
            reachable("0.0.0.0:80".parse().unwrap()).to_string(),
            "127.0.0.1:80"
        );
        assert_eq!(reachable("[::]:80".parse().unwrap()).to_string(), "[::1]:80");
        assert_eq!(
            reachable("192.0.2.7:80".parse().unwrap()).to_string(),
            "192.0.2.7:80"
        );
    }
}
