//! `ASSAY_PUBLIC_URL`: the address under which people reach the pages.

use std::fmt;

use assay_answers::links::PublicPages;

/// A scheme and a host, without a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicUrl {
    is_encrypted: bool,
    /// The host with its port, if it has one.
    authority: String,
}

impl PublicUrl {
    /// Reads a value of the setting.
    ///
    /// # Errors
    /// If it is no http or https address, or has a path.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let invalid = || "expected an address such as https://assay.example.org, without a path".to_owned();
        let (scheme, rest) = text.split_once("://").ok_or_else(invalid)?;
        let is_encrypted = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(invalid()),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest).to_ascii_lowercase();
        let is_host = |char: char| char.is_ascii_alphanumeric() || "-.:[]".contains(char);
        let url = Self {
            is_encrypted,
            authority,
        };
        let port = url.authority.strip_prefix(url.host()).unwrap_or_default();
        let is_port = port.is_empty()
            || port
                .strip_prefix(':')
                .is_some_and(|port| port.parse::<u16>().is_ok());
        if url.host().is_empty() || !url.authority.chars().all(is_host) || !is_port {
            return Err(invalid());
        }
        Ok(url)
    }

    /// Checks a value of the setting. An empty one counts as unset.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub(crate) fn text(text: &str) -> Result<String, String> {
        match text {
            "" => Ok(String::new()),
            text => Self::parse(text).map(|url| url.to_string()),
        }
    }

    /// The pages at this address.
    pub(crate) fn pages(&self) -> PublicPages {
        PublicPages::at(&self.to_string())
    }

    /// Whether browsers reach the pages over TLS.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// The host without the port. An IPv6 address has its brackets.
    pub(crate) fn host(&self) -> &str {
        let end_of_address = self.authority.find(']').map_or(0, |end| end + 1);
        let (address, rest) = self.authority.split_at(end_of_address);
        match rest.find(':') {
            Some(colon) => self.authority.split_at(address.len() + colon).0,
            None => &self.authority,
        }
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_and_a_host() {
        for (text, shown, host) in [
            (
                "https://assay.example.org",
                "https://assay.example.org",
                "assay.example.org",
            ),
            (
                "HTTPS://Assay.example.org:8443/",
                "https://assay.example.org:8443",
                "assay.example.org",
            ),
            ("http://10.0.0.7:8082", "http://10.0.0.7:8082", "10.0.0.7"),
            ("http://[::1]:8082", "http://[::1]:8082", "[::1]"),
        ] {
            let url = PublicUrl::parse(text).unwrap();
            assert_eq!((url.to_string().as_str(), url.host()), (shown, host));
            assert_eq!(url.is_encrypted(), shown.starts_with("https"));
        }
        for text in [
            "",
            "assay.example.org",
            "ftp://assay.example.org",
            "https://",
            "https://:8443",
            "https://a.example.org/assay",
            "https://a.example.org?x",
            "https://user@a.example.org",
            "https://a.example.org:port",
            "https://a b",
        ] {
            assert!(PublicUrl::parse(text).is_err(), "{text}");
        }
    }
}
