//! Where parts of the service are.

use std::{
    net::{SocketAddr, ToSocketAddrs as _},
    str::FromStr,
};

/// The address of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Address {
    /// The listener is off.
    Off,
    /// It listens at this address.
    At(SocketAddr),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let mut addresses = text.to_socket_addrs().map_err(|_| {
            "expected off or HOST:PORT, such as 127.0.0.1:8080 or [::]:8080, with a host that this machine can resolve"
                .to_owned()
        })?;
        addresses
            .next()
            .map(Self::At)
            .ok_or_else(|| format!("the host of {text} has no address; try an IP address, such as 127.0.0.1"))
    }
}

/// Where pages or reports are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere.
    Off,
    /// On the address of the API.
    WithApi,
    /// On an address of their own.
    At(SocketAddr),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "same" {
            return Ok(Self::WithApi);
        }
        text.parse().map(|address| match address {
            Address::Off => Self::Off,
            Address::At(address) => Self::At(address),
        })
    }
}
