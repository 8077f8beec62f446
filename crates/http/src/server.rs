//! A listener's server: HTTP/1.1 with time limits, over TLS if there is a certificate.
//!
//! It builds what `actix_web::HttpServer` builds, with a [`Connection`] around each stream, which `HttpServer` cannot
//! do.

use std::{io, net, pin::Pin, sync::Arc, time::Duration};

use actix_http::{HttpService, Protocol, Request, Response, body::BoxBody, error::DispatchError};
use actix_server::{GracefulShutdownSignal, Server};
use actix_service::{
    Service, ServiceFactory, ServiceFactoryExt as _, apply_fn_factory, fn_service, map_config,
};
use actix_tls::accept::{
    TlsError, max_concurrent_tls_connect,
    rustls_0_23::{Acceptor, TlsStream},
};
use actix_web::{App, dev::AppConfig, rt::net::TcpStream, web::ServiceConfig};
use assay_service_log::PanicLevel;
use log::Level;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connection::{Answering, Connection, HEAD_WITHIN};

/// How long a connection stays open without a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of a worker's blocking threads, higher than what admission control may start. Actix's default is
/// 512 divided by the number of processors.
const BLOCKING_THREADS: usize = 4_096;
/// How long a client may take to close a finished connection.
const DISCONNECT_WITHIN: Duration = Duration::from_secs(1);

/// Decides whether a client that sent `Expect: 100-continue` may send its body: returns the request, or the refusal.
/// The handler receives the values that it inserts into the request's extensions.
pub type Continue =
    Arc<dyn Fn(Request) -> Pin<Box<dyn Future<Output = Result<Request, Response<BoxBody>>>>> + Send + Sync>;

/// The configuration of a listener.
pub struct Listener {
    /// The prefix of its threads' names.
    pub name: &'static str,
    /// The bound socket; see [`bind`](crate::bind()).
    pub socket: net::TcpListener,
    /// The number of threads that answer requests.
    pub workers: usize,
    /// The maximum number of connected clients, over all workers.
    pub connections: u64,
    /// How long requests in progress may take after a stop, in seconds.
    pub shutdown_within_s: u64,
    /// The TLS configuration; without it, the listener serves plain HTTP.
    pub tls: Option<ServerConfig>,
    /// The check before an announced body is sent; without it, every client may send one.
    pub on_continue: Option<Continue>,
    /// Whether a client that closes its sending side still gets its answer.
    pub answers_half_closed: bool,
}

impl Listener {
    /// Starts to serve what `configure` mounts, over HTTP/1.1 only. `configure` runs once for each worker.
    pub fn start<C>(self, configure: C) -> io::Result<Server>
    where
        C: Fn(&mut ServiceConfig) + Clone + Send + 'static,
    {
        let connections = per_worker(self.connections, self.workers);
        let server = Server::build()
            .workers(self.workers)
            .worker_max_blocking_threads(BLOCKING_THREADS)
            .max_concurrent_connections(connections)
            .shutdown_timeout(self.shutdown_within_s)
            .disable_signals();
        let http = Http {
            configure,
            shutdown_signal: server.graceful_shutdown_signal(),
            on_continue: self.on_continue,
            answers_half_closed: self.answers_half_closed,
        };
        let server = match self.tls {
            None => server.listen(self.name, self.socket, move || {
                fn_service(|stream: TcpStream| async {
                    let client = prepare(&stream)?;
                    Ok((
                        Connection::new(stream, |stream| stream),
                        Protocol::Http1,
                        Some(client),
                    ))
                })
                .and_then(http.clone().service())
            })?,
            Some(mut tls) => {
                tls.alpn_protocols = vec![b"http/1.1".to_vec()];
                // A slow handshake must not delay other clients. The bound on connections still holds.
                max_concurrent_tls_connect(connections);
                server.listen(self.name, self.socket, move || {
                    Acceptor::new(tls.clone())
                        .map_err(TlsError::into_service_error)
                        .and_then(fn_service(|stream: TlsStream<TcpStream>| async {
                            let client = prepare(stream.get_ref().0).map_err(TlsError::Tls)?;
                            Ok((
                                Connection::new(stream, |stream| stream.get_ref().0),
                                Protocol::Http1,
                                Some(client),
                            ))
                        }))
                        .and_then(http.clone().service().map_err(TlsError::Service))
                })?
            }
        };
        Ok(server.run())
    }
}

/// The number of connections for each worker: its share, but at least one, because the server reads 0 as no limit.
fn per_worker(room: u64, workers: usize) -> usize {
    (usize::try_from(room).unwrap_or(usize::MAX) / workers.max(1)).max(1)
}

/// Prepares an accepted stream and returns the peer's address.
fn prepare(stream: &TcpStream) -> io::Result<net::SocketAddr> {
    // A compressed answer is written in several parts, which must not wait for acknowledgements.
    stream.set_nodelay(true)?;
    stream.peer_addr()
}

/// Serves HTTP on accepted streams.
#[derive(Clone)]
struct Http<C> {
    configure: C,
    shutdown_signal: GracefulShutdownSignal,
    on_continue: Option<Continue>,
    answers_half_closed: bool,
}

impl<C: Fn(&mut ServiceConfig) + Clone + Send + 'static> Http<C> {
    fn service<S: AsyncRead + AsyncWrite + Unpin + 'static>(
        self,
    ) -> impl ServiceFactory<
        (Connection<S>, Protocol, Option<net::SocketAddr>),
        Config = (),
        Response = (),
        Error = DispatchError,
        InitError = (),
    > {
        let Self {
            configure,
            shutdown_signal,
            on_continue,
            answers_half_closed,
        } = self;
        let app = map_config(App::new().configure(configure), |()| AppConfig::default());
        let service = HttpService::build()
            .client_request_timeout(HEAD_WITHIN)
            .keep_alive(IDLE_TIMEOUT)
            .client_disconnect_timeout(DISCONNECT_WITHIN)
            .h1_allow_half_closed(answers_half_closed)
            .graceful_shutdown_signal(move || {
                let shutdown_signal = shutdown_signal.clone();
                async move { shutdown_signal.notified().await }
            })
            .expect(fn_service(move |request: Request| {
                let on_continue = on_continue.clone();
                async move {
                    match on_continue {
                        Some(decide) => decide(request).await,
                        None => Ok(request),
                    }
                }
            }))
            .on_connect_ext(|connection: &Connection<S>, extensions| {
                extensions.insert(connection.answering());
            })
            .finish(apply_fn_factory(app, answer));
        apply_fn_factory(service, |connection: (Connection<S>, _, _), service| {
            let unanswered = connection.0.unanswered();
            let served = PanicLevel::during(Level::Warn, service.call(connection));
            async move {
                let served = served.await;
                unanswered.refuse().await;
                served
            }
        })
    }
}

/// Answers a request and marks its connection as busy meanwhile.
fn answer<A: Service<Request>>(
    request: Request,
    app: &A,
) -> impl Future<Output = Result<A::Response, A::Error>> + use<A> {
    let answering = request.conn_data::<Answering>().cloned().unwrap_or_default();
    answering.set(true);
    let _level = PanicLevel::set(Level::Error);
    let answer = PanicLevel::during(Level::Error, app.call(request));
    async move {
        let answer = answer.await;
        answering.set(false);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn panics_have_the_level_of_the_layer_that_is_polled() {
        let inner = PanicLevel::during(Level::Error, async { PanicLevel::current() });
        let outer = async { (PanicLevel::current(), inner.await, PanicLevel::current()) };
        let levels = PanicLevel::during(Level::Warn, outer).await;
        assert_eq!(levels, (Level::Warn, Level::Error, Level::Warn));
        assert_eq!(PanicLevel::current(), Level::Error);
        let panicked = std::panic::catch_unwind(|| {
            let _level = PanicLevel::set(Level::Warn);
            panic!("on purpose");
        });
        assert!(panicked.is_err());
        assert_eq!(PanicLevel::current(), Level::Error);
    }

    #[test]
    fn every_worker_accepts_a_bounded_number_of_connections() {
        for (room, workers, expected) in [
            (20_000, 4, 5_000),
            (10, 3, 3),
            (2, 4, 1),
            (1, 1_024, 1),
            (7, 0, 7),
        ] {
            assert_eq!(per_worker(room, workers), expected);
        }
    }
}
