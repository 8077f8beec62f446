//! The addresses of the listeners, for the log, the pages and the demonstration.

use std::net::SocketAddr;

use assay_http::reachable;
use assay_http_pages::ClientAddresses;

use crate::{
    demo::BaseUrls,
    listeners::Sockets,
    settings::{Config, Place, PublicUrl},
};

/// Where each part is served. None if it is off.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    pub(crate) scheme: &'static str,
    pub(crate) public_url: Option<PublicUrl>,
    pub(crate) api: Option<SocketAddr>,
    pub(crate) front: Option<SocketAddr>,
    pub(crate) ingest: Option<SocketAddr>,
    pub(crate) operators: Option<SocketAddr>,
}

impl Addresses {
    pub(crate) fn of(config: &Config, sockets: &Sockets) -> Self {
        let api = sockets.api.as_ref().map(|socket| socket.address);
        let address = |place: Place, own: Option<SocketAddr>| match place {
            Place::Off | Place::At(_) => own,
            Place::WithApi => api,
        };
        let front = sockets.front.as_ref().map(|socket| socket.address);
        let ingest = sockets.ingest.as_ref().map(|socket| socket.address);
        Self {
            scheme: if config.tls().is_some() { "https" } else { "http" },
            public_url: config.public_url(),
            api,
            front: address(config.front_listen(), front),
            ingest: address(config.ingest_listen(), ingest),
            operators: sockets.operators.as_ref().map(|socket| socket.address),
        }
    }

    /// Where each part is reached from this machine.
    pub(crate) fn base_urls(&self) -> BaseUrls {
        let url = |address: Option<SocketAddr>| {
            address.map(|address| format!("{}://{}", self.scheme, reachable(address)))
        };
        BaseUrls {
            api: url(self.api),
            front: url(self.front),
            ingest: url(self.ingest),
            operators: self
                .operators
                .map(|address| format!("http://{}", reachable(address))),
        }
    }

    /// Whether browsers reach the pages over TLS only. They reject a `Secure` cookie from a plain loopback address, at
    /// least in some versions.
    pub(crate) fn is_secure(&self) -> bool {
        let is_beyond_loopback = || self.front.is_some_and(|address| !address.ip().is_loopback());
        match &self.public_url {
            Some(url) => url.is_encrypted(),
            None => self.scheme == "https" || is_beyond_loopback(),
        }
    }

    /// The address of the read API for clients; without a public address, for those on this machine.
    fn api_url(&self) -> String {
        let base = self.client_url(self.api);
        let base = base.unwrap_or_else(|| format!("{}://127.0.0.1:8080", self.scheme));
        format!("{base}/api/v1")
    }

    /// The address of the pages for clients; without a public address, for those on this machine. None if the pages are off
    /// here and there is no public address.
    pub(crate) fn pages_url(&self) -> Option<String> {
        self.client_url(self.front)
    }

    /// The address of the ingest listener for clients, as that of the pages. Tokens of CI jobs are for it.
    pub(crate) fn ingest_url(&self) -> Option<String> {
        self.client_url(self.ingest)
    }

    /// The addresses of other parts that pages show.
    pub(crate) fn shown_on_pages(&self) -> ClientAddresses {
        ClientAddresses {
            api: self.api_url(),
            reports: self.ingest_url(),
        }
    }

    /// The public address, else that of a part for clients on this machine.
    fn client_url(&self, part: Option<SocketAddr>) -> Option<String> {
        match &self.public_url {
            Some(url) => Some(url.to_string()),
            None => part.map(|address| format!("{}://{}", self.scheme, reachable(address))),
        }
    }

    /// Logs each address that is served, and what is off with the setting that turns it on.
    pub(crate) fn log(&self) {
        self.log_part(
            ("the API listens", "the API is off"),
            (self.api, "/api/v1"),
            "ASSAY_LISTEN",
        );
        self.log_part(
            ("the pages listen", "the pages are off"),
            (self.front, "/"),
            "ASSAY_FRONT_LISTEN",
        );
        self.log_part(
            ("agents' tools listen", "agents' tools are off"),
            (self.front, "/mcp"),
            "ASSAY_FRONT_LISTEN",
        );
        self.log_part(
            ("the ingest listener listens", "the ingest listener is off"),
            (self.ingest, "/ingest/v1"),
            "ASSAY_INGEST_LISTEN",
        );
        match self.operators {
            Some(address) => log::info!("health and metrics for operators are on http://{address}"),
            None => {
                log::info!("health and metrics are off; ASSAY_ADMIN_LISTEN=HOST:PORT turns them on");
            }
        }
        let is_plain = self.scheme == "http" && self.public_url.is_none();
        if is_plain && self.front.is_some_and(|address| !address.ip().is_loopback()) {
            log::warn!(
                "the pages have no TLS: beyond this machine, browsers can sign in only through a proxy with TLS, whose address ASSAY_PUBLIC_URL names, or with ASSAY_TLS_CERT and ASSAY_TLS_KEY"
            );
        }
    }

    fn log_part(&self, (on, off): (&str, &str), (address, path): (Option<SocketAddr>, &str), setting: &str) {
        match (address, &self.public_url) {
            (Some(address), Some(url)) => {
                log::info!(
                    "{on} on {}://{address}{path}, for clients {url}{path}",
                    self.scheme
                );
            }
            (Some(address), None) => log::info!("{on} on {}://{address}{path}", self.scheme),
            (None, _) => log::info!("{off}; {setting}=HOST:PORT turns this on"),
        }
    }
}
