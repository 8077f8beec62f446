//! Sockets that listen.

#[cfg(target_os = "linux")]
use std::time::Duration;
use std::{io, net};

#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::net::TcpSocket;

/// How long a client may leave what was sent to it unread.
#[cfg(target_os = "linux")]
const UNREAD_FOR: Duration = Duration::from_secs(30);
/// How much of an answer the system takes over beyond what is on its way. Without a bound, megabytes would seem to be taken by a
/// client that reads nothing, and no progress of one that reads slowly would be seen for minutes.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 128 * 1_024;
/// How many connections wait to be accepted.
const BACKLOG: u32 = 2_048;

/// Listens on an address. Call it within an actix or tokio runtime.
pub fn bind(address: net::SocketAddr) -> io::Result<net::TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // A server started again at once must not wait for the former one's closed connections.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    // Its connections inherit both.
    #[cfg(target_os = "linux")]
    {
        let options = SockRef::from(&socket);
        options.set_tcp_user_timeout(Some(UNREAD_FOR))?;
        options.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    }
    socket.listen(BACKLOG)?.into_std()
}
