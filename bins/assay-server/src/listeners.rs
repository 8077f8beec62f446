//! The program's listening sockets, and the servers that run on them.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use actix_web::{
    App, HttpServer,
    dev::{Server, ServerHandle},
};
use anyhow::{Context as _, anyhow, bail};
use assay_http::{Signals, bind};
use tokio::task::JoinSet;

use crate::settings::{Address, Config, Place};

/// How long requests in progress may take after a stop, in seconds.
pub(crate) const SHUTDOWN_WITHIN_S: u64 = 10;
/// How long uploads that are being stored may take after a stop, in seconds.
pub(crate) const UPLOAD_SHUTDOWN_WITHIN_S: u64 = 60;

/// A listening socket and its address.
pub(crate) struct Socket {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
}

/// The sockets of the enabled listeners.
pub(crate) struct Sockets {
    pub(crate) api: Option<Socket>,
    pub(crate) front: Option<Socket>,
    pub(crate) ingest: Option<Socket>,
    pub(crate) operators: Option<Socket>,
}

impl Sockets {
    /// Binds all configured sockets. Call it before the database starts, so that an address in use is reported at once.
    /// What shares the address of the API has no socket.
    pub(crate) fn bind(config: &Config) -> anyhow::Result<Self> {
        let own = |place: Place| match place {
            Place::Off | Place::WithApi => Address::Off,
            Place::At(address) => Address::At(address),
        };
        let sockets = Self {
            api: socket(config.listen, "--listen (ASSAY_LISTEN)")?,
            front: socket(own(config.front_listen()), "--front-listen (ASSAY_FRONT_LISTEN)")?,
            ingest: socket(
                own(config.ingest_listen()),
                "--ingest-listen (ASSAY_INGEST_LISTEN)",
            )?,
            operators: socket(config.admin_listen, "--admin-listen (ASSAY_ADMIN_LISTEN)")?,
        };
        if sockets.client_listeners() == 0 {
            bail!("no listener is on; name an address with --listen (ASSAY_LISTEN)");
        }
        Ok(sockets)
    }

    /// The number of listeners for clients. The listener for operators does not count.
    pub(crate) fn client_listeners(&self) -> u64 {
        let clients = [&self.api, &self.front, &self.ingest];
        clients
            .iter()
            .fold(0, |count, socket| count + u64::from(socket.is_some()))
    }
}

/// Listens on an address that `setting` names, unless it is off.
fn socket(address: Address, setting: &str) -> anyhow::Result<Option<Socket>> {
    let address = match address {
        Address::Off => return Ok(None),
        Address::At(address) => address,
    };
    let listener = bind(address).map_err(|error| {
        let reason = if error.kind() == io::ErrorKind::AddrInUse {
            format!("another program already listens on {address}")
        } else {
            format!("cannot listen on {address}: {error}")
        };
        anyhow!("{reason}; name another address with {setting}")
    })?;
    let address = listener.local_addr()?;
    Ok(Some(Socket { listener, address }))
}

/// The running servers.
#[derive(Default)]
pub(crate) struct Servers {
    running: JoinSet<io::Result<()>>,
    handles: Vec<ServerHandle>,
    on_stop: Vec<Box<dyn FnOnce()>>,
}

impl Servers {
    /// Adds a server. Call it within an actix runtime.
    pub(crate) fn add(&mut self, server: Server) {
        self.handles.push(server.handle());
        self.running.spawn_local(server);
    }

    /// Adds an action that runs after a signal, before the wait for requests in progress.
    pub(crate) fn on_stop(&mut self, action: impl FnOnce() + 'static) {
        self.on_stop.push(Box::new(action));
    }

    /// Runs all servers until a signal, then waits for requests in progress; a second signal stops the wait.
    pub(crate) async fn run(mut self, signals: &mut Signals) -> anyhow::Result<()> {
        tokio::select! {
            ended = self.running.join_next() => {
                ended.context("no listener is on")?.context("serving")?.context("serving")?;
                bail!("a listener ended unexpectedly");
            }
            name = signals.next() => log::info!(
                "{name}: no new connections; requests under way may take {SHUTDOWN_WITHIN_S} s, uploads \
                 {UPLOAD_SHUTDOWN_WITHIN_S} s"
            ),
        }
        for action in self.on_stop.drain(..) {
            action();
        }
        let stopping = async {
            let mut stops = JoinSet::new();
            for handle in &self.handles {
                stops.spawn_local(handle.stop(true));
            }
            stops.join_all().await;
            while let Some(ended) = self.running.join_next().await {
                ended??;
            }
            anyhow::Ok(())
        };
        tokio::select! {
            ended = stopping => ended.context("stopping")?,
            name = signals.next() => log::warn!("{name} again: requests under way are cut off"),
        }
        Ok(())
    }
}

/// The server for operators.
pub(crate) fn operators(socket: Socket, app: assay_http_api::App) -> anyhow::Result<Server> {
    Ok(
        HttpServer::new(move || App::new().configure(assay_http_api::admin(app.clone())))
            .workers(1)
            .shutdown_timeout(1)
            .disable_signals()
            .listen(socket.listener)?
            .run(),
    )
}
