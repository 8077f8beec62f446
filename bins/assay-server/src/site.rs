//! What one address serves: the API, the pages with agents' tools, reports, or several of them. Paths tell them apart.

use std::sync::Arc;

use actix_web::web::ServiceConfig;
use assay_http::{Certificate, Continue, Listener, room_for_connections};

use crate::settings::{Config, Place, Sizes};

use crate::listeners::{SHUTDOWN_WITHIN_S, Servers, Socket, Sockets, UPLOAD_SHUTDOWN_WITHIN_S};

/// The parts that one address serves. Clones share everything.
#[derive(Clone, Default)]
struct Site {
    api: Option<assay_http_api::App>,
    pages: Option<Pages>,
    ingest: Option<assay_http_ingest::App>,
}

/// The pages for people, and the tools for agents beside them.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) front: assay_http_pages::Front,
    pub(crate) agents: assay_http_agents::Endpoint,
}

impl Site {
    /// Mounts the parts. The last one answers the paths that no part has.
    fn configure(&self, config: &mut ServiceConfig) {
        let Self { api, pages, ingest } = self.clone();
        if let Some(ingest) = ingest {
            if api.is_some() || pages.is_some() {
                assay_http_ingest::configure_own_paths(ingest)(config);
            } else {
                assay_http_ingest::configure(ingest)(config);
            }
        }
        if let Some(api) = api {
            if pages.is_some() {
                assay_http_api::configure_own_paths(api)(config);
            } else {
                assay_http_api::configure(api)(config);
            }
        }
        if let Some(Pages { front, agents }) = pages {
            agents.configure(config);
            front.configure(config);
        }
    }

    /// The check before a client sends the body that it announced.
    fn on_continue(&self) -> Option<Continue> {
        self.ingest.clone().map(assay_http_ingest::on_continue)
    }

    /// Adds the parts of `other`, if it is at this address.
    fn add(&mut self, place: Place, other: &mut Self) {
        if place == Place::WithApi {
            self.pages = self.pages.take().or_else(|| other.pages.take());
            self.ingest = self.ingest.take().or_else(|| other.ingest.take());
        }
    }
}

/// What each address serves.
pub(crate) struct Sites {
    api: Site,
    front: Site,
    ingest: Site,
}

impl Sites {
    /// Distributes the parts over the configured addresses.
    pub(crate) fn new(
        config: &Config,
        api: assay_http_api::App,
        pages: Option<Pages>,
        ingest: Option<assay_http_ingest::App>,
    ) -> Self {
        let mut sites = Self {
            api: Site {
                api: Some(api),
                ..Site::default()
            },
            front: Site {
                pages,
                ..Site::default()
            },
            ingest: Site {
                ingest,
                ..Site::default()
            },
        };
        sites.api.add(config.front_listen(), &mut sites.front);
        sites.api.add(config.ingest_listen(), &mut sites.ingest);
        sites
    }

    /// Starts a listener on each socket of clients. Returns the socket of operators.
    pub(crate) fn start(
        self,
        sockets: Sockets,
        sizes: Sizes,
        certificate: Option<&Arc<Certificate>>,
        servers: &mut Servers,
    ) -> anyhow::Result<Option<Socket>> {
        let connections = room_for_connections(sizes.pool) / sockets.client_listeners().max(1);
        for (name, socket, site) in [
            ("api", sockets.api, self.api),
            ("front", sockets.front, self.front),
            ("ingest", sockets.ingest, self.ingest),
        ] {
            let Some(socket) = socket else { continue };
            let takes_uploads = site.ingest.is_some();
            let listener = Listener {
                name,
                socket: socket.listener,
                workers: usize::try_from(sizes.workers)?,
                connections,
                shutdown_within_s: if takes_uploads {
                    UPLOAD_SHUTDOWN_WITHIN_S
                } else {
                    SHUTDOWN_WITHIN_S
                },
                tls: certificate.map(Certificate::config).transpose()?,
                on_continue: site.on_continue(),
                // An upload ends when its client disconnects.
                answers_half_closed: !takes_uploads,
            };
            servers.add(listener.start(move |config| site.configure(config))?);
        }
        Ok(sockets.operators)
    }
}
