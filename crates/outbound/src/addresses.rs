//! Which addresses a connection may be opened to.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
};

use ureq::{
    Error,
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::NextTimeout,
    },
};

/// The private hosts and addresses that an operator's file names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed(Vec<String>);

impl Allowed {
    /// These hosts or addresses.
    pub fn new(named: impl IntoIterator<Item = String>) -> Self {
        let usual = |name: String| match name.parse::<IpAddr>() {
            Ok(address) => address.to_string(),
            Err(_) => name.to_ascii_lowercase(),
        };
        Self(named.into_iter().map(usual).collect())
    }

    /// Whether the file names this host.
    pub fn names(&self, host: &str) -> bool {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        self.0.contains(&host)
    }

    /// Whether a connection may go to an address of a host.
    pub fn allows(&self, host: &str, address: IpAddr) -> bool {
        is_public(address) || self.names(host) || self.names(&address.to_string())
    }

    /// The addresses of a host that a connection may go to.
    ///
    /// # Errors
    /// If there is none; the text is for the log.
    pub fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let found = (host, port)
            .to_socket_addrs()
            .map_err(|error| format!("{host} has no address: {error}"))?;
        let (allowed, refused): (Vec<_>, Vec<_>) = found.partition(|address| self.allows(host, address.ip()));
        match (allowed.is_empty(), refused.first()) {
            (false, _) => Ok(allowed),
            (true, Some(private)) => Err(refusal(host, private.ip())),
            (true, None) => Err(format!("{host} has no address")),
        }
    }
}

fn refusal(host: &str, address: IpAddr) -> String {
    format!(
        "{host} is the private address {address}; name one of them in private_addresses of the file that has this address, to allow it"
    )
}

/// Resolves the names of hosts, and leaves out private addresses that are not allowed. The check is of the address that the
/// connection then uses, so that a name cannot change between the two.
pub(crate) struct PublicResolver {
    pub(crate) allowed: Allowed,
    pub(crate) inner: DefaultResolver,
}

impl fmt::Debug for PublicResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicResolver")
    }
}

impl Resolver for PublicResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let found = self.inner.resolve(uri, config, timeout)?;
        let mut allowed = self.empty();
        for address in found
            .iter()
            .filter(|address| self.allowed.allows(host, address.ip()))
        {
            allowed.push(*address);
        }
        match (allowed.is_empty(), found.first()) {
            (false, _) => Ok(allowed),
            (true, Some(private)) => Err(Error::Other(refusal(host, private.ip()).into())),
            (true, None) => Err(Error::HostNotFound),
        }
    }
}

/// Whether an address is one of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_reserved = match address.octets() {
        // This network; shared by carriers; protocol assignments; benchmarks; multicast and the future.
        [0 | 224..=255, ..] | [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18..=19, ..] => true,
        _ => false,
    };
    !(is_reserved
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let embedded = match address.segments() {
        // An address of IPv4 as one of IPv6, behind a translator, or in a tunnel.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    };
    match embedded {
        Some(embedded) => is_public_v4(embedded),
        None => {
            // Protocol assignments with Teredo; documentation.
            let is_reserved = matches!(
                address.segments(),
                [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..]
            );
            // Everything else that is assigned to the internet.
            matches!(address.segments(), [0x2000..=0x3fff, ..]) && !is_reserved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_none_of_the_public_internet() {
        for private in [
            "127.0.0.1",
            "127.8.8.8",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.0.1",
            "0.0.0.0",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b:1::808:808",
            "2001::7f00:1",
            "fec0::1",
            "100::1",
            "3fff::1",
            "5f00::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "64:ff9b::808:808",
            "::ffff:1.1.1.1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn a_named_host_or_address_is_allowed_and_no_other() {
        let allowed = Allowed::new([
            "Mail.internal".to_owned(),
            "10.0.0.7".to_owned(),
            "0:0:0:0:0:0:0:1".to_owned(),
        ]);
        let private: IpAddr = "10.0.0.8".parse().unwrap();
        assert!(allowed.allows("mail.INTERNAL", private));
        assert!(allowed.allows("hooks.internal", "10.0.0.7".parse().unwrap()));
        assert!(allowed.allows("[::1]", "::1".parse().unwrap()));
        assert!(!allowed.allows("hooks.internal", private));
        assert!(allowed.allows("hooks.example.org", "1.1.1.1".parse().unwrap()));
        let refused = Allowed::default().resolve("127.0.0.1", 80).unwrap_err();
        assert!(refused.contains("private_addresses"), "{refused}");
    }
}
