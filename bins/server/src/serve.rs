//! Wiring, the two listeners, and their end.

#[cfg(target_os = "linux")]
use std::time::Duration;
use std::{io, io::Write as _, net, sync::Arc};

use actix_web::{App, HttpServer, dev::Server, rt};
use anyhow::{Context as _, anyhow, bail};
use assay_access::limit::{InProcess, RateLimiter, Redis};
#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::{net::TcpSocket, task::spawn_blocking};

use crate::{
    api, clock,
    config::{Config, Sizes},
    demo,
    signals::{self, Signals},
    startup::{self, Started},
    tls::Certificate,
};

/// How long requests under way may take to end once the server stops, in seconds.
pub(crate) const PATIENCE_S: u64 = 10;
/// How long a client may leave what was sent to it unread.
#[cfg(target_os = "linux")]
const UNREAD_FOR: Duration = Duration::from_secs(30);
/// How much of an answer the system takes over beyond what is on its way. Without a bound, megabytes would seem to be taken by a
/// client that reads nothing, and no progress of one that reads slowly would be seen for minutes.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 128 * 1_024;
/// How many connections wait to be accepted.
const BACKLOG: u32 = 2_048;

/// Makes the database ready, serves until a signal, then ends in the opposite order.
pub(crate) async fn serve(config: Config, sizes: Sizes) -> anyhow::Result<()> {
    let mut signals = Signals::catch().context("catching signals")?;
    let hangups = signals::hangups().context("catching SIGHUP")?;
    let files = config.tls().map_err(anyhow::Error::msg)?;
    let certificate = files.map(Certificate::read).transpose()?;
    // Bound first: a taken port is told before a database is started for nothing.
    let public = listen(config.listen, "--listen (ASSAY_LISTEN)")?;
    let operators = listen(config.admin_listen, "--admin-listen (ASSAY_ADMIN_LISTEN)")?;
    let addresses = (public.local_addr()?, operators.local_addr()?);
    let limiter = limiter(&config)?;
    let answer_bytes = config.answer_bytes();
    let origins = config.cors_origins.clone();

    let mut starting = spawn_blocking(move || startup::start(&config, sizes));
    let Started {
        database,
        cluster,
        demo,
    } = tokio::select! {
        started = &mut starting => started??,
        name = signals.next() => {
            log::info!("{name} during the start; ending it in order");
            // What was begun ends first: a cluster left half started would leave its process behind.
            return starting.await?.map(drop);
        }
    };
    let app = assay_api::App::new(database, limiter, Arc::new(clock::now))
        .with_answer_bytes(answer_bytes)
        .with_origins(origins);
    let tls = certificate.as_ref().map(Certificate::config).transpose()?;
    let servers = (
        api::start(public, sizes, app.clone(), tls)?,
        admin(operators, app)?,
    );
    let scheme = if certificate.is_some() { "https" } else { "http" };
    log::info!(
        "the API listens on {scheme}://{}/api/v1, for operators http://{}",
        addresses.0,
        addresses.1
    );
    rt::spawn(async {
        match certificate {
            Some(certificate) => certificate.renew_on(hangups).await,
            None => signals::ignore(hangups).await,
        }
    });
    if let Some(demo) = demo {
        let mut out = io::stdout().lock();
        write!(out, "{}", demo::greeting(&demo, scheme, addresses.0, addresses.1))?;
        out.flush()?;
    }
    run(servers, &mut signals).await?;
    match cluster {
        Some(cluster) => Ok(spawn_blocking(move || cluster.stop()).await??),
        None => Ok(()),
    }
}

/// Runs both servers until a signal, then lets requests under way end; a second signal does not wait for them.
async fn run((api, admin): (Server, Server), signals: &mut Signals) -> anyhow::Result<()> {
    let handles = (api.handle(), admin.handle());
    let mut running = std::pin::pin!(async { tokio::try_join!(api, admin) });
    tokio::select! {
        ended = &mut running => {
            ended.context("serving")?;
            bail!("the listeners ended by themselves");
        }
        name = signals.next() => log::info!("{name}: no new connections; requests under way may take {PATIENCE_S} s"),
    }
    let stopping = async { tokio::join!(handles.0.stop(true), handles.1.stop(true), running) };
    tokio::select! {
        (_, _, ended) = stopping => {
            ended.context("stopping")?;
        }
        name = signals.next() => log::warn!("{name} again: requests under way are cut off"),
    }
    Ok(())
}

/// The server for operators.
fn admin(listener: net::TcpListener, app: assay_api::App) -> anyhow::Result<Server> {
    Ok(
        HttpServer::new(move || App::new().configure(assay_api::admin(app.clone())))
            .workers(1)
            .shutdown_timeout(1)
            .disable_signals()
            .listen(listener)?
            .run(),
    )
}

/// Listens on an address, which `setting` names.
fn listen(address: net::SocketAddr, setting: &str) -> anyhow::Result<net::TcpListener> {
    let listening = || {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        }?;
        // A server started again at once must not wait for the former one's closed connections.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        // Its connections inherit both.
        #[cfg(target_os = "linux")]
        {
            let options = SockRef::from(&socket);
            options.set_tcp_user_timeout(Some(UNREAD_FOR))?;
            options.set_tcp_notsent_lowat(UNSENT_BYTES)?;
        }
        socket.listen(BACKLOG)?.into_std()
    };
    listening().map_err(|error| {
        let reason = if error.kind() == io::ErrorKind::AddrInUse {
            format!("another program already listens on {address}")
        } else {
            format!("cannot listen on {address}: {error}")
        };
        anyhow!("{reason}; name another address with {setting}")
    })
}

/// The counter of requests: shared in Redis where one is named, else this process's own.
fn limiter(config: &Config) -> anyhow::Result<Arc<dyn RateLimiter>> {
    Ok(match config.redis_url() {
        Some(url) => Arc::new(Redis::new(url, config.rate_limit).context("ASSAY_REDIS_URL")?),
        None => Arc::new(InProcess::new(config.rate_limit)),
    })
}
