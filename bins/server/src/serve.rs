//! Composition: the database, the listeners, and their shutdown.

use std::{io, io::Write as _, net::SocketAddr, sync::Arc};

use actix_web::{App, HttpServer, dev::Server, rt};
use anyhow::Context as _;
use assay_access::limit::{InProcessLimiter, RateLimiter, RedisLimiter};
use assay_domain::store::Store;
use assay_flakiness::Engine;
use assay_front::Sessions;
use assay_listener::{Certificate, Listener, ReadReception, room_for_connections};
use tokio::task::spawn_blocking;

use crate::{
    clock,
    config::{Config, Sizes},
    demo,
    listeners::{SHUTDOWN_WITHIN_S, Servers, Socket, Sockets, UPLOAD_SHUTDOWN_WITHIN_S},
    public_url::PublicUrl,
    signals::{self, Signals},
    startup::{self, Resources},
};

/// Calls of agents' tools per minute and key, unless the rate limit is off.
const TOOL_CALLS_A_MINUTE: u32 = 60;

/// Prepares the database, serves until a signal, then shuts down in the opposite order.
pub(crate) async fn serve(config: Config, sizes: Sizes) -> anyhow::Result<()> {
    let mut signals = Signals::catch().context("catching signals")?;
    let hangups = signals::hangups().context("catching SIGHUP")?;
    let certificate = config.tls().map(Certificate::read).transpose()?;
    let sockets = Sockets::bind(&config)?;
    let limiter = limiter(&config)?;
    let answer_bytes = config.answer_bytes();
    let (public_url, mcp_hosts) = (config.public_url(), config.mcp_hosts());
    let tool_calls_a_minute = if config.rate_limit == 0 {
        0
    } else {
        TOOL_CALLS_A_MINUTE
    };
    let origins = config.cors_origins.clone();
    let (front_secret, api_url) = (config.front_secret().map(str::to_owned), config.api_url());
    let is_demo = config.demo;
    let (uploads, upload_limiter) = (config.uploads.limits()?, upload_limiter(&config)?);

    let mut starting = spawn_blocking(move || startup::start(&config, sizes));
    let Resources {
        database,
        ingest,
        cluster,
        demo,
    } = tokio::select! {
        started = &mut starting => started??,
        name = signals.next() => {
            log::info!("{name} during the start; stopping");
            // Dropping the resources stops a cluster that has started. Without this wait its process would remain.
            return starting.await?.map(drop);
        }
    };
    let store: Arc<dyn Store> = database.clone();
    let engine = Arc::new(Engine::default());
    let reception = ReadReception::new(Arc::<dyn Store>::clone(&store), usize::try_from(sizes.blocking)?);
    let app = assay_api::App::new(
        reception.clone(),
        Arc::clone(&store),
        engine.clone(),
        limiter,
        Arc::new(clock::now),
    )
    .with_answer_bytes(answer_bytes)
    .with_origins(origins);

    let connections = room_for_connections(sizes.pool) / sockets.client_listeners().max(1);
    let listener = |name, socket: Socket| -> anyhow::Result<Listener> {
        Ok(Listener {
            name,
            socket: socket.listener,
            workers: usize::try_from(sizes.workers)?,
            connections,
            shutdown_within_s: SHUTDOWN_WITHIN_S,
            tls: certificate.as_ref().map(Certificate::config).transpose()?,
            on_continue: None,
            answers_half_closed: true,
        })
    };
    let scheme = if certificate.is_some() { "https" } else { "http" };
    let api_address = sockets.api.as_ref().map(|socket| socket.address);
    let operators_address = sockets.operators.as_ref().map(|socket| socket.address);
    let mut servers = Servers::default();
    if let Some(socket) = sockets.api {
        log::info!("the API listens on {scheme}://{}/api/v1", socket.address);
        let app = app.clone();
        servers.add(listener("api", socket)?.start(move |config| assay_api::configure(app.clone())(config))?);
    }
    let front_address = sockets.front.as_ref().map(|socket| socket.address);
    if let Some(socket) = sockets.front {
        match &public_url {
            Some(url) => log::info!("the pages are on {url}, by way of {scheme}://{}", socket.address),
            None => log::info!("the pages are on {scheme}://{}", socket.address),
        }
        if front_secret.is_none() {
            log::info!("ASSAY_FRONT_SECRET is not set: sessions of the pages end with this process");
        }
        // Browsers reject a `Secure` cookie from a plain loopback address, at least in some versions.
        let is_secure = public_url.as_ref().map_or_else(
            || certificate.is_some() || !socket.address.ip().is_loopback(),
            PublicUrl::is_encrypted,
        );
        if certificate.is_none() && public_url.is_none() && !socket.address.ip().is_loopback() {
            log::warn!(
                "the pages have no TLS: beyond this machine, browsers can sign in only through a proxy with TLS, whose address ASSAY_PUBLIC_URL names, or with ASSAY_TLS_CERT and ASSAY_TLS_KEY"
            );
        }
        let agents = assay_mcp::Endpoint::new(
            reception.clone(),
            Arc::clone(&store),
            engine.clone(),
            Arc::new(clock::now),
            &app.metrics_registry(),
            tool_calls_a_minute,
            mcp_hosts,
        );
        let front = assay_front::Front::new(
            reception,
            store,
            database,
            engine.clone(),
            Arc::new(clock::now),
            Sessions::new(front_secret.as_deref(), is_secure)?,
            &app.metrics_registry(),
            &api_url.unwrap_or_else(|| default_api_url(scheme, api_address)),
        );
        let front = if is_demo {
            front.signing_in_by_link()
        } else {
            front
        };
        servers.add(listener("front", socket)?.start(move |config| {
            agents.configure(config);
            front.configure(config);
        })?);
    }
    let ingest_address = sockets.ingest.as_ref().map(|socket| socket.address);
    if let (Some(socket), Some(database)) = (sockets.ingest, ingest) {
        log::info!(
            "the ingest listener is on {scheme}://{}/ingest/v1",
            socket.address
        );
        let intake = assay_intake::App::new(
            database,
            engine,
            upload_limiter,
            Arc::new(clock::now),
            uploads,
            &app.metrics_registry(),
        );
        let listener = Listener {
            shutdown_within_s: UPLOAD_SHUTDOWN_WITHIN_S,
            on_continue: Some(assay_intake::on_continue(intake.clone())),
            answers_half_closed: false,
            ..listener("ingest", socket)?
        };
        let intake_to_close = intake.clone();
        servers.on_stop(move || intake_to_close.close());
        servers.add(listener.start(move |config| assay_intake::configure(intake.clone())(config))?);
    }
    if let Some(socket) = sockets.operators {
        log::info!(
            "health and metrics for operators are on http://{}",
            socket.address
        );
        servers.add(operators(socket, app)?);
    }
    rt::spawn(async {
        match certificate {
            Some(certificate) => certificate.renew_on(hangups).await,
            None => signals::ignore(hangups).await,
        }
    });
    if let Some(demo) = demo {
        let mut out = io::stdout().lock();
        write!(
            out,
            "{}",
            demo::greeting(
                &demo,
                scheme,
                api_address,
                front_address,
                ingest_address,
                operators_address
            )
        )?;
        out.flush()?;
    }
    servers.run(&mut signals).await?;
    match cluster {
        Some(cluster) => Ok(spawn_blocking(move || cluster.stop()).await??),
        None => Ok(()),
    }
}

/// The address of the read API for a user on this machine.
fn default_api_url(scheme: &str, api: Option<SocketAddr>) -> String {
    let default_address = SocketAddr::from(([127, 0, 0, 1], 8080));
    format!(
        "{scheme}://{}/api/v1",
        demo::reachable(api.unwrap_or(default_address))
    )
}

/// The server for operators.
fn operators(socket: Socket, app: assay_api::App) -> anyhow::Result<Server> {
    Ok(
        HttpServer::new(move || App::new().configure(assay_api::admin(app.clone())))
            .workers(1)
            .shutdown_timeout(1)
            .disable_signals()
            .listen(socket.listener)?
            .run(),
    )
}

/// The rate limiter of uploads, separate from that of requests.
fn upload_limiter(config: &Config) -> anyhow::Result<Arc<dyn RateLimiter>> {
    limiter_of(config, config.uploads.ingest_rate_limit)
}

/// The rate limiter of requests: shared in Redis if configured, else in this process.
fn limiter(config: &Config) -> anyhow::Result<Arc<dyn RateLimiter>> {
    limiter_of(config, config.rate_limit)
}

fn limiter_of(config: &Config, limit: u32) -> anyhow::Result<Arc<dyn RateLimiter>> {
    Ok(match config.redis_url() {
        Some(url) => Arc::new(RedisLimiter::new(url, limit).context("ASSAY_REDIS_URL")?),
        None => Arc::new(InProcessLimiter::new(limit)),
    })
}
