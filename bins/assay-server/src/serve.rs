//! Composition: the database, the listeners, and their shutdown.

use std::{
    io::{self, Write as _},
    sync::Arc,
};

use actix_web::rt;
use anyhow::Context as _;
use assay_http::{Certificate, Signals, hangups, ignore_hangups};
use tokio::task::spawn_blocking;

use crate::{
    addresses::Addresses,
    clock,
    demo::DemoMessages,
    listeners::{Servers, Sockets, operators},
    parts::Wiring,
    settings::{Config, Limits, Sizes},
    site::Sites,
    startup::{self, Resources},
};

/// Prepares the database, serves until a signal, then shuts down in the opposite order.
pub(crate) async fn serve(config: Config, sizes: Sizes) -> anyhow::Result<()> {
    let mut signals = Signals::catch().context("catching signals")?;
    let hangups = hangups().context("catching SIGHUP")?;
    let certificate = config.tls().map(Certificate::read).transpose()?;
    let sockets = Sockets::bind(&config)?;
    let addresses = Addresses::of(&config, &sockets);
    let limits = Limits::of(&config)?;
    let identity = config.identity()?;

    let Some(resources) = prepare(&config, sizes, &mut signals).await? else {
        return Ok(());
    };
    let Resources {
        database,
        ingest,
        cluster,
        demo,
    } = resources;

    let for_messages = Arc::clone(&database);
    let wiring = Wiring::new(&config, sizes, &addresses, database, identity, &limits)?;
    let (api, pages) = (wiring.api.clone(), wiring.pages());
    let ingest = ingest.map(|database| wiring.ingest(database, limits));

    let mut servers = Servers::default();
    if let Some(ingest) = ingest.clone() {
        servers.on_stop(move || ingest.close());
    }
    addresses.log();
    let sites = Sites::new(&config, api.clone(), pages, ingest);
    let operators_socket = sites.start(sockets, sizes, certificate.as_ref(), &mut servers)?;
    if let Some(socket) = operators_socket {
        servers.add(operators(socket, api)?);
    }
    rt::spawn(async {
        match certificate {
            Some(certificate) => certificate.renew_on(hangups).await,
            None => ignore_hangups(hangups).await,
        }
    });
    let mut messages = None;
    if let Some(demo) = demo {
        let address = addresses.base_urls().front;
        let file = demo.messages.clone();
        messages = Some(DemoMessages::start(
            for_messages,
            file,
            address.as_deref(),
            clock::now,
        ));
        let mut out = io::stdout().lock();
        let greeting = crate::demo::greeting(&demo, &addresses.base_urls());
        write!(out, "{greeting}")?;
        out.flush()?;
    }

    servers.run(&mut signals).await?;
    drop(messages);
    match cluster {
        Some(cluster) => Ok(spawn_blocking(move || cluster.stop()).await??),
        None => Ok(()),
    }
}

/// Prepares the resources on a blocking thread. None if a signal ends the program meanwhile.
async fn prepare(config: &Config, sizes: Sizes, signals: &mut Signals) -> anyhow::Result<Option<Resources>> {
    let config = config.clone();
    let mut starting = spawn_blocking(move || startup::start(&config, sizes));
    tokio::select! {
        started = &mut starting => Ok(Some(started??)),
        name = signals.next() => {
            log::info!("{name} during the start; stopping");
            // Dropping the resources stops a cluster that has started. Without this wait its process would remain.
            starting.await?.map(|_resources| None)
        }
    }
}
