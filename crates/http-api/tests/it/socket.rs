//! Behaviour of a real connection: HEAD without a body, and raw paths.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use actix_web::{App as Actix, HttpServer, dev::ServerHandle};

use crate::{
    client::Api,
    ids::{PROJECT, RUN},
};

fn serve(api: &Api) -> (SocketAddr, ServerHandle) {
    let app = api.app();
    let server = HttpServer::new(move || Actix::new().configure(assay_http_api::configure(app.clone())))
        .workers(1)
        .disable_signals()
        .bind("127.0.0.1:0")
        .unwrap();
    let address = server.addrs()[0];
    let server = server.run();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    (address, handle)
}

/// Sends one raw request and reads until the server closes.
async fn raw(address: SocketAddr, request: String) -> String {
    let exchange = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    actix_web::web::block(exchange).await.unwrap()
}

#[actix_web::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let api = Api::new();
    *api.seed.padding.lock().unwrap() = 500;
    let (address, handle) = serve(&api);
    let key = api.seed.keys.good.reveal();
    let request_of = |method: &str| {
        let path = format!("/api/v1/projects/{PROJECT}/runs/{RUN}");
        let headers = "Host: a\r\nAccept-Encoding: gzip\r\nX-Request-Id: r\r\nConnection: close";
        format!("{method} {path} HTTP/1.1\r\n{headers}\r\nAuthorization: Bearer {key}\r\n\r\n")
    };
    let get = raw(address, request_of("GET")).await;
    let head = raw(address, request_of("HEAD")).await;
    let headers = |answer: &str| {
        let head = answer.split("\r\n\r\n").next().unwrap();
        let mut lines: Vec<_> = head
            .lines()
            .filter(|line| !line.starts_with("date"))
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(headers(&get), headers(&head));
    assert!(head.ends_with("\r\n\r\n"), "a body after HEAD");
    assert!(
        headers(&head)
            .iter()
            .any(|line| line.starts_with("content-length: ") && line != "content-length: 0")
    );
    handle.stop(false).await;
}

#[actix_web::test]
async fn the_edges_refusal_has_no_body_and_no_content_type() {
    let api = Api::limited(1);
    let (address, handle) = serve(&api);
    let request = || {
        "GET /api/v1/projects HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nConnection: close\r\n\r\n".to_owned()
    };
    raw(address, request()).await;
    let refused = raw(address, request()).await.to_lowercase();
    assert!(refused.starts_with("http/1.1 429 "), "{refused}");
    assert!(
        refused.ends_with("\r\n\r\n") && refused.contains("content-length: 0\r\n"),
        "{refused}"
    );
    assert!(
        !refused.contains("content-type") && !refused.contains("retry-after"),
        "{refused}"
    );
    handle.stop(false).await;
}
