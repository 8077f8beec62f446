//! The API, the pages with agents' tools, and the ingest routes, over one database and one engine.

use std::sync::Arc;

use assay_access::{session::Sessions, token::Tokens};
use assay_domain::store::Store;
use assay_flakiness::Engine;
use assay_http::{IdentityMetrics, ReadReception};
use assay_http_agents::PublicAddress;
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
    sessions: Sessions,
    /// The read API. The figures of all parts are among its own.
    pub(crate) api: assay_http_api::App,
    metrics: IdentityMetrics,
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
        limits: &Limits,
    ) -> anyhow::Result<Self> {
        let sessions = Sessions::new(config.front_secret(), addresses.is_secure())?;
        let threads = usize::try_from(sizes.blocking)?;
        let reception = ReadReception::new(database.clone(), threads, Some(sessions.clone()));
        let engine = Arc::new(Engine::default());
        let api = assay_http_api::App::new(
            reception.clone(),
            database.clone(),
            engine.clone(),
            Arc::clone(&limits.requests),
            Arc::new(clock::now),
        )
        .with_answer_bytes(config.answer_bytes())
        .with_origins(config.cors_origins.clone())
        .with_pages(addresses.public_url.as_ref().map(PublicUrl::pages));
        let metrics = api.metrics_registry().identity_metrics();
        let fetches = metrics.identity_key_fetches.clone();
        let providers = identity.providers().cloned().collect();
        let verifier = Verifier::new(Client::new(identity.private_addresses), move |outcome| {
            IdentityMetrics::count(&fetches, outcome);
        });
        Ok(Self {
            config,
            addresses,
            database,
            engine,
            reception,
            sessions,
            api,
            metrics,
            verifier: Arc::new(verifier),
            providers,
        })
    }

    fn store(&self) -> Arc<dyn Store> {
        self.database.clone()
    }

    /// The pages and agents' tools, unless they are off.
    pub(crate) fn pages(&self) -> Option<Pages> {
        if self.config.front_listen() == Place::Off {
            return None;
        }
        if self.config.front_secret().is_none() {
            log::info!("ASSAY_FRONT_SECRET is not set: sessions of the pages end with this process");
        }
        let agents = assay_http_agents::Endpoint::new(
            self.reception.clone(),
            self.store(),
            self.engine.clone(),
            Arc::new(clock::now),
            &self.api.metrics_registry(),
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
            self.engine.clone(),
            Arc::new(clock::now),
            self.sessions.clone(),
            &self.api.metrics_registry(),
            self.metrics.clone(),
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
        Some(Pages { front, agents })
    }

    /// The ingest routes over their own connections.
    pub(crate) fn ingest(&self, database: Arc<Database>, limits: Limits) -> assay_http_ingest::App {
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
            &self.api.metrics_registry(),
            self.metrics.clone(),
        )
    }
}
