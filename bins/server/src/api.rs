//! The API's server: HTTP/1.1 on connections that end in time, over TLS where there is a certificate.
//!
//! It is what `actix_web::HttpServer` builds, with a [`Connection`] around each stream, for which that has no place.

use std::{io, net, time::Duration};

use actix_http::{HttpService, Protocol, Request, error::DispatchError};
use actix_server::{GracefulShutdownSignal, Server};
use actix_service::{
    Service, ServiceFactory, ServiceFactoryExt as _, apply_fn_factory, fn_service, map_config,
};
use actix_tls::accept::{
    TlsError, max_concurrent_tls_connect,
    rustls_0_23::{Acceptor, TlsStream},
};
use actix_web::{App, dev::AppConfig, rt::net::TcpStream};
use log::Level;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    config::Sizes,
    connection::{Answering, Connection, HEAD_WITHIN},
    descriptors,
    guard::PanicLevel,
    serve::PATIENCE_S,
};

/// How long a connection stays open without a request.
const IDLE_FOR: Duration = Duration::from_secs(5);
/// How long a client may take to close a connection that is over.
const GOODBYE_WITHIN: Duration = Duration::from_secs(1);

/// Begins to serve on the listener, over TLS where `tls` says how. It speaks HTTP/1.1 only.
pub(crate) fn start(
    listener: net::TcpListener,
    sizes: Sizes,
    app: assay_api::App,
    tls: Option<ServerConfig>,
) -> anyhow::Result<Server> {
    let threads = usize::try_from(sizes.blocking)?;
    let workers = usize::try_from(sizes.workers)?;
    let connections = per_worker(descriptors::room_for_connections(sizes.pool), workers)?;
    let app = app.with_threads(threads);
    let server = Server::build()
        .workers(workers)
        .max_concurrent_connections(connections)
        .shutdown_timeout(PATIENCE_S)
        .disable_signals();
    let ending = server.graceful_shutdown_signal();
    let server = match tls {
        None => server.listen("api", listener, move || {
            fn_service(|stream: TcpStream| async {
                let client = prepare(&stream)?;
                Ok((
                    Connection::new(stream, |stream| stream),
                    Protocol::Http1,
                    Some(client),
                ))
            })
            .and_then(http(app.clone(), ending.clone()))
        })?,
        Some(mut tls) => {
            tls.alpn_protocols = vec![b"http/1.1".to_vec()];
            // Who is slow to greet must not keep others from it; the bound on connections holds all the same.
            max_concurrent_tls_connect(connections);
            server.listen("api", listener, move || {
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
                    .and_then(http(app.clone(), ending.clone()).map_err(TlsError::Service))
            })?
        }
    };
    Ok(server.run())
}

/// How many connections each worker accepts: its share of the room, and at least one, since the server takes 0 as no limit.
fn per_worker(room: u64, workers: usize) -> anyhow::Result<usize> {
    Ok((usize::try_from(room)? / workers.max(1)).max(1))
}

/// Readies a stream that was accepted, and tells who is at its other end.
fn prepare(stream: &TcpStream) -> io::Result<net::SocketAddr> {
    // Compressed answers are written in several parts, which must not wait for each other's receipt.
    stream.set_nodelay(true)?;
    stream.peer_addr()
}

/// HTTP on accepted streams.
fn http<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    app: assay_api::App,
    ending: GracefulShutdownSignal,
) -> impl ServiceFactory<
    (Connection<S>, Protocol, Option<net::SocketAddr>),
    Config = (),
    Response = (),
    Error = DispatchError,
    InitError = (),
> {
    let app = map_config(App::new().configure(assay_api::configure(app)), |()| {
        AppConfig::default()
    });
    let service = HttpService::build()
        .client_request_timeout(HEAD_WITHIN)
        .keep_alive(IDLE_FOR)
        .client_disconnect_timeout(GOODBYE_WITHIN)
        .graceful_shutdown_signal(move || {
            let ending = ending.clone();
            async move { ending.notified().await }
        })
        .on_connect_ext(|connection: &Connection<S>, extensions| {
            extensions.insert(connection.answering());
        })
        .finish(apply_fn_factory(app, answer));
    apply_fn_factory(service, |connection, service| {
        PanicLevel::during(Level::Warn, service.call(connection))
    })
}

/// Answers a request, and tells its connection so meanwhile.
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

    #[test]
    fn every_worker_accepts_a_bounded_number_of_connections() {
        for (room, workers, expected) in [
            (20_000, 4, 5_000),
            (10, 3, 3),
            (2, 4, 1),
            (1, 1_024, 1),
            (7, 0, 7),
        ] {
            assert_eq!(per_worker(room, workers).unwrap(), expected);
        }
    }
}
