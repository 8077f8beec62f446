//! Composition: the database, the listeners, and their shutdown.

use std::{io, io::Write as _, sync::Arc};

use actix_web::{App, HttpServer, dev::Server, rt};
use anyhow::Context as _;
use assay_access::limit::{InProcessLimiter, RateLimiter, RedisLimiter};
use assay_domain::store::Store;
use assay_flakiness::Engine;
use assay_front::Sessions;
use assay_listener::{Certificate, Listener, ReadReception, room_for_connections};
use tokio::task::spawn_blocking;

use crate::{
    addresses::Addresses,
    clock,
    config::{Config, Place, Sizes},
    demo,
    listeners::{SHUTDOWN_WITHIN_S, Servers, Socket, Sockets, UPLOAD_SHUTDOWN_WITHIN_S},
    public_url::PublicUrl,
    signals::{self, Signals},
    site::{Pages, Site},
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
    let addresses = Addresses::of(&config, &sockets);
    let (front_place, ingest_place) = (config.front_listen(), config.ingest_listen());
    let tool_calls_a_minute = if config.rate_limit == 0 {
        0
    } else {
        TOOL_CALLS_A_MINUTE
    };
    let origins = config.cors_origins.clone();
    let front_secret = config.front_secret().map(str::to_owned);
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
    let mut at_api = Site {
        api: Some(app.clone()),
        ..Site::default()
    };
    let (mut at_front, mut at_ingest) = (Site::default(), Site::default());
    if front_place != Place::Off {
        if front_secret.is_none() {
            log::info!("ASSAY_FRONT_SECRET is not set: sessions of the pages end with this process");
        }
        let agents = assay_mcp::Endpoint::new(
            reception.clone(),
            Arc::clone(&store),
            engine.clone(),
            Arc::new(clock::now),
            &app.metrics_registry(),
            tool_calls_a_minute,
            addresses.public_url.as_ref().map(PublicUrl::host),
        );
        let front = assay_front::Front::new(
            reception,
            store,
            database,
            engine.clone(),
            Arc::new(clock::now),
            Sessions::new(front_secret.as_deref(), addresses.is_secure())?,
            &app.metrics_registry(),
            &addresses.api_url(),
        );
        let front = if is_demo {
            front.signing_in_by_link()
        } else {
            front
        };
        at_front.pages = Some(Pages { front, agents });
    }
    let mut servers = Servers::default();
    if let Some(database) = ingest {
        let intake = assay_intake::App::new(
            database,
            engine,
            upload_limiter,
            Arc::new(clock::now),
            uploads,
            addresses.public_url.as_ref().map(ToString::to_string),
            &app.metrics_registry(),
        );
        at_ingest.intake = Some(intake.clone());
        servers.on_stop(move || intake.close());
    }
    at_api.add(front_place, &mut at_front);
    at_api.add(ingest_place, &mut at_ingest);
    addresses.log();
    for (name, socket, site) in [
        ("api", sockets.api, at_api),
        ("front", sockets.front, at_front),
        ("ingest", sockets.ingest, at_ingest),
    ] {
        let Some(socket) = socket else { continue };
        let takes_uploads = site.intake.is_some();
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
            tls: certificate.as_ref().map(Certificate::config).transpose()?,
            on_continue: site.on_continue(),
            // An upload ends when its client disconnects.
            answers_half_closed: !takes_uploads,
        };
        servers.add(listener.start(move |config| site.configure(config))?);
    }
    if let Some(socket) = sockets.operators {
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
        write!(out, "{}", demo::greeting(&demo, &addresses))?;
        out.flush()?;
    }
    servers.run(&mut signals).await?;
    match cluster {
        Some(cluster) => Ok(spawn_blocking(move || cluster.stop()).await??),
        None => Ok(()),
    }
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
