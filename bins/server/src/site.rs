//! What one address serves: the API, the pages with agents' tools, reports, or several of them. Paths tell them apart.

use actix_web::web::ServiceConfig;
use assay_listener::Continue;

use crate::config::Place;

/// The parts that one address serves. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Site {
    pub(crate) api: Option<assay_api::App>,
    pub(crate) pages: Option<Pages>,
    pub(crate) intake: Option<assay_intake::App>,
}

/// The pages for people, and the tools for agents beside them.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) front: assay_front::Front,
    pub(crate) agents: assay_mcp::Endpoint,
}

impl Site {
    /// Mounts the parts. The last one answers the paths that no part has.
    pub(crate) fn configure(&self, config: &mut ServiceConfig) {
        let Self { api, pages, intake } = self.clone();
        if let Some(intake) = intake {
            if api.is_some() || pages.is_some() {
                assay_intake::configure_own_paths(intake)(config);
            } else {
                assay_intake::configure(intake)(config);
            }
        }
        if let Some(api) = api {
            if pages.is_some() {
                assay_api::configure_own_paths(api)(config);
            } else {
                assay_api::configure(api)(config);
            }
        }
        if let Some(Pages { front, agents }) = pages {
            agents.configure(config);
            front.configure(config);
        }
    }

    /// The check before a client sends the body that it announced.
    pub(crate) fn on_continue(&self) -> Option<Continue> {
        self.intake.clone().map(assay_intake::on_continue)
    }

    /// Adds the parts of `other`, if it is at this address.
    pub(crate) fn add(&mut self, place: Place, other: &mut Self) {
        if place == Place::WithApi {
            self.pages = self.pages.take().or_else(|| other.pages.take());
            self.intake = self.intake.take().or_else(|| other.intake.take());
        }
    }
}
