//! The API, the pages with agents' tools, and the ingest routes, over one database and one engine.

use std::sync::Arc;

use assay_access::token::Tokens;
use assay_domain::store::Store;
use assay_flakiness::Engine;
use assay_http::ReadReception;
use assay_http_agents::PublicAddress;
use assay_http_pages::Sessions;
use assay_identity::{Client, IdentityFile, Provider, Providers, Verifier};
use assay_repository::Database;

use crate::{
    addresses::Addresses,
    clock,
    settings::{Config, Limits, Place, PublicUrl, Sizes},
    site::Pages,
};

/// Calls of agents' tools per minute and key, unless the rate limit is off.
const TOOL_CALLS_A_MINUTE: u32 = 60;

/// What the parts share.
pub(crate) struct Wiring<'a> {
    config: &'a Config,
    addresses: &'a Addresses,
    database: Arc<Database>,
    engine: Arc<Engine>,
    reception: ReadReception,
    /// The one client of issuers.
    verifier: Arc<Verifier>,
    providers: Vec<Provider>,
}

impl<'a> Wiring<'a> {
    pub(crate) fn new(
        config: &'a Config,
        sizes: Sizes,
        addresses: &'a Addresses,
        database: Arc<Database>,
        identity: IdentityFile,
    ) -> anyhow::Result<Self> {
        let providers = identity.providers().cloned().collect();
        let reception = ReadReception::new(database.clone(), usize::try_from(sizes.blocking)?);
        Ok(Self {
            config,
            addresses,
            database,
            engine: Arc::new(Engine::default()),
            reception,
            verifier: Arc::new(Verifier::new(Client::new(identity.private_addresses))),
            providers,
        })
    }

    fn store(&self) -> Arc<dyn Store> {
        self.database.clone()
    }

    /// The read API.
    pub(crate) fn api(&self, limits: &Limits) -> assay_http_api::App {
        assay_http_api::App::new(
            self.reception.clone(),
            self.store(),
            self.engine.clone(),
            Arc::clone(&limits.requests),
            Arc::new(clock::now),
        )
        .with_answer_bytes(self.config.answer_bytes())
        .with_origins(self.config.cors_origins.clone())
        .with_pages(self.addresses.public_url.as_ref().map(PublicUrl::pages))
    }

    /// The pages and agents' tools, unless they are off. Their figures are among the API's.
    pub(crate) fn pages(&self, api: &assay_http_api::App) -> anyhow::Result<Option<Pages>> {
        if self.config.front_listen() == Place::Off {
            return Ok(None);
        }
        let secret = self.config.front_secret();
        if secret.is_none() {
            log::info!("ASSAY_FRONT_SECRET is not set: sessions of the pages end with this process");
        }
        let agents = assay_http_agents::Endpoint::new(
            self.reception.clone(),
            self.store(),
            self.engine.clone(),
            Arc::new(clock::now),
            &api.metrics_registry(),
            match self.config.rate_limit {
                0 => 0,
                _ => TOOL_CALLS_A_MINUTE,
            },
            self.addresses.public_url.as_ref().map(|url| PublicAddress {
                host: url.host().to_owned(),
                pages: url.pages(),
            }),
        );
        let front = assay_http_pages::Front::new(
            self.reception.clone(),
            self.store(),
            self.database.clone(),
            self.engine.clone(),
            Arc::new(clock::now),
            Sessions::new(secret, self.addresses.is_secure())?,
            &api.metrics_registry(),
            self.addresses.shown_on_pages(),
        )
        .with_pages(self.addresses.public_url.as_ref().map(PublicUrl::pages));
        let front = match self.addresses.pages_url() {
            Some(base) if !self.providers.is_empty() => {
                let providers = Providers::new(self.verifier.clone(), self.providers.clone(), &base);
                front.with_providers(Arc::new(providers))
            }
            Some(_) | None => front,
        };
        let front = if self.config.demo {
            front.signing_in_by_link()
        } else {
            front
        };
        Ok(Some(Pages { front, agents }))
    }

    /// The ingest routes over their own connections. Their figures are among the API's.
    pub(crate) fn ingest(
        &self,
        database: Arc<Database>,
        limits: Limits,
        api: &assay_http_api::App,
    ) -> assay_http_ingest::App {
        let audience = self.addresses.ingest_url().unwrap_or_default();
        let tokens = Tokens::new(database.clone(), self.verifier.clone(), &audience);
        assay_http_ingest::App::new(
            database,
            self.engine.clone(),
            tokens,
            limits.uploads,
            Arc::new(clock::now),
            limits.of_upload,
            self.addresses.pages_url(),
            &api.metrics_registry(),
        )
    }
}
