//! The server's TLS: accepted and refused handshakes, and renewal of certificates.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{PATIENCE, Response, Server, TestDatabase, World, program, wire};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, ServerName},
    version::{TLS12, TLS13},
};

/// Writes a new certificate for `localhost` and its key, and returns the certificate.
pub(crate) fn issue(folder: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.join("key.pem"), signing_key.serialize_pem()).unwrap();
    fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    cert.der().clone()
}

pub(crate) fn start(database: &TestDatabase, folder: &Path) -> (Server, SocketAddr) {
    let file = |name: &str| folder.join(name).display().to_string();
    let server = Server::start_with(
        database.url(),
        &[
            ("ASSAY_TLS_CERT", &file("cert.pem")),
            ("ASSAY_TLS_KEY", &file("key.pem")),
            // actix-tls limits the handshakes of each worker. With one worker, the silent connections of a test exceed
            // its default limit, which the server raises.
            ("ASSAY_WORKERS", "1"),
        ],
    );
    let address = server.client().address();
    (server, address)
}

pub(crate) type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A connection that trusts one certificate, after its handshake.
fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
    protocols: &[&[u8]],
) -> Result<Tls, std::io::Error> {
    handshake(TcpStream::connect(address)?, trusted, versions, protocols)
}

/// The same over a connected socket.
pub(crate) fn handshake(
    mut socket: TcpStream,
    trusted: &CertificateDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
    protocols: &[&[u8]],
) -> Result<Tls, std::io::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut stream = StreamOwned::new(client, socket.try_clone()?);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut socket)?;
    }
    Ok(stream)
}

fn ask(stream: &mut Tls) -> Option<Response> {
    send(stream, "GET /api/v1/projects", "", "")
}

/// Sends a request with these lines of its head, each with its end, and this body.
fn send(stream: &mut Tls, request: &str, head: &str, body: &str) -> Option<Response> {
    use std::io::Write as _;
    let length = body.len();
    let head = format!("Host: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{head}");
    let request = format!("{request} HTTP/1.1\r\n{head}\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    wire::read(stream, &mut Vec::new(), false)
}

#[test]
fn the_api_is_served_over_tls_and_a_renewed_certificate_is_used_without_a_restart() {
    let (database, folder) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let first = issue(folder.path());
    let (server, address) = start(&database, folder.path());
    assert!(server.log().contains("https://"), "{}", server.log());

    for version in [&TLS12, &TLS13] {
        let mut stream = connect(address, &first, &[version], &[]).unwrap();
        assert_eq!(stream.conn.protocol_version(), Some(version.version));
        assert_eq!(ask(&mut stream).unwrap().code(), "missing_key");
    }
    let stream = connect(address, &first, &[&TLS13], &[b"h2", b"http/1.1"]).unwrap();
    assert_eq!(
        stream.conn.alpn_protocol(),
        Some(b"http/1.1".as_slice()),
        "HTTP/2 must not be negotiated"
    );
    assert!(
        connect(address, &first, &[&TLS13], &[b"h2"]).is_err(),
        "HTTP/2 must not be negotiated"
    );
    let plain = wire::send(
        address,
        b"GET /api/v1/projects HTTP/1.1\r\nHost: a\r\n\r\n",
        false,
    );
    assert!(plain.is_none(), "plain text was answered: {plain:?}");

    // Invalid files change nothing.
    let former = fs::read(folder.path().join("cert.pem")).unwrap();
    fs::write(folder.path().join("cert.pem"), "half a certif").unwrap();
    send_hangup_signal(&server);
    until(
        || server.log().contains("the former certificate stays in use"),
        &server,
    );
    assert!(connect(address, &first, &[&TLS13], &[]).is_ok());
    fs::write(folder.path().join("cert.pem"), former).unwrap();

    let mut begun = connect(address, &first, &[&TLS13], &[]).unwrap();
    let second = issue(folder.path());
    send_hangup_signal(&server);
    until(|| connect(address, &second, &[&TLS13], &[]).is_ok(), &server);
    assert!(
        connect(address, &first, &[&TLS13], &[]).is_err(),
        "the former certificate is still served"
    );
    // An open connection continues.
    assert_eq!(ask(&mut begun).unwrap().status, 401);
    assert_eq!(server.admin().get("/readyz", None).status, 200);
}

#[test]
fn clients_that_never_start_a_handshake_do_not_delay_others() {
    let (database, folder) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let trusted = issue(folder.path());
    let (_server, address) = start(&database, folder.path());
    let silent: Vec<_> = (0..600).map(|_| TcpStream::connect(address).unwrap()).collect();
    // Each handshake may take three seconds. One after the other they would exceed this client's time limit.
    assert_eq!(
        ask(&mut connect(address, &trusted, &[&TLS13], &[]).unwrap())
            .unwrap()
            .status,
        401
    );
    drop(silent);
}

#[test]
fn pages_are_served_over_tls_with_a_cookie_for_tls_and_this_host_alone() {
    let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
    let trusted = issue(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let environment = [
        ("ASSAY_TLS_CERT", file("cert.pem")),
        ("ASSAY_TLS_KEY", file("key.pem")),
    ];
    let environment = environment
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let server = Server::start_with_front(world.database.url(), &environment);
    let address = server.front().address();
    let ask = |request: &str, head: &str, body: &str| {
        let mut stream = connect(address, &trusted, &[&TLS13], &[]).unwrap();
        send(&mut stream, request, head, body).unwrap()
    };
    let form = "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n";
    let answer = ask("POST /login", form, &format!("key={}", world.key));
    assert_eq!(answer.status, 303, "{}", answer.text());
    let set = answer.header("set-cookie").unwrap();
    // A browser accepts this prefix only with `Secure`, without a domain, and with the path `/`.
    assert!(
        set.starts_with("__Host-assay=") && set.contains("; Path=/;"),
        "{set}"
    );
    assert!(
        set.contains("; Secure") && set.contains("; HttpOnly") && !set.contains("Domain"),
        "{set}"
    );
    let cookie = set.split(';').next().unwrap();
    let page = format!("GET /p/{}", world.project);
    assert_eq!(ask(&page, &format!("Cookie: {cookie}\r\n"), "").status, 200);
    let of_plain_pages = cookie.replace("__Host-assay", "assay");
    assert_eq!(
        ask(&page, &format!("Cookie: {of_plain_pages}\r\n"), "").status,
        303
    );
    let plain = wire::send(address, b"GET /login HTTP/1.1\r\nHost: a\r\n\r\n", false);
    assert!(plain.is_none(), "plain text was answered: {plain:?}");
}

#[test]
fn without_tls_a_hangup_signal_is_logged_and_ignored() {
    let database = TestDatabase::new();
    let server = Server::start(database.url());
    for times in 1..=2 {
        send_hangup_signal(&server);
        until(
            || server.log().matches("SIGHUP: ignored").count() == times,
            &server,
        );
    }
    assert_eq!(server.client().get("/api/v1/projects", None).status, 401);
}

fn send_hangup_signal(server: &Server) {
    let sent = Command::new("kill")
        .args(["-s", "HUP", &server.pid().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

fn until(mut done: impl FnMut() -> bool, server: &Server) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "{}", server.log());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn each_fault_of_the_files_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    issue(folder.path());
    let of = |name: &str| folder.path().join(name).display().to_string();
    let secret = fs::read_to_string(of("key.pem")).unwrap();
    let other = tempfile::tempdir().unwrap();
    issue(other.path());
    fs::write(of("empty.pem"), "").unwrap();
    fs::write(
        of("text.pem"),
        "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    fs::write(of("cut.pem"), &secret[..secret.len() / 2]).unwrap();
    let other_key = other.path().join("key.pem").display().to_string();
    for (cert, key, expected) in [
        (
            "",
            of("key.pem"),
            "ASSAY_TLS_KEY is set without ASSAY_TLS_CERT".to_owned(),
        ),
        (
            &of("cert.pem"),
            String::new(),
            "ASSAY_TLS_CERT is set without ASSAY_TLS_KEY".to_owned(),
        ),
        (
            &of("none.pem"),
            of("key.pem"),
            format!(
                "ASSAY_TLS_CERT: {}: cannot be read; expected a PEM file",
                of("none.pem")
            ),
        ),
        (
            &of("empty.pem"),
            of("key.pem"),
            format!(
                "ASSAY_TLS_CERT: {}: holds no certificate; expected PEM",
                of("empty.pem")
            ),
        ),
        (
            &of("text.pem"),
            of("key.pem"),
            format!("ASSAY_TLS_CERT: {}: is not valid PEM", of("text.pem")),
        ),
        (
            &of("cert.pem"),
            of("none.pem"),
            format!(
                "ASSAY_TLS_KEY: {}: cannot be read; expected a PEM file",
                of("none.pem")
            ),
        ),
        (
            &of("cert.pem"),
            of("cert.pem"),
            format!(
                "ASSAY_TLS_KEY: {}: holds no private key; expected PEM",
                of("cert.pem")
            ),
        ),
        (
            &of("cert.pem"),
            of("cut.pem"),
            format!("ASSAY_TLS_KEY: {}: holds no private key", of("cut.pem")),
        ),
        (
            &of("cert.pem"),
            other_key.clone(),
            format!(
                "ASSAY_TLS_KEY: {other_key} is not the key of the first certificate in {}",
                of("cert.pem")
            ),
        ),
    ] {
        let output = Command::new(program("assay-server"))
            .env("ASSAY_TLS_CERT", cert)
            .env("ASSAY_TLS_KEY", &key)
            // Unreachable.
            .env("ASSAY_DATABASE_URL", "postgresql://127.0.0.1:1/none")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let contradicts = cert.is_empty() || key.is_empty();
        assert_eq!(
            output.status.code(),
            Some(if contradicts { 2 } else { 1 }),
            "{stderr}"
        );
        assert!(stderr.contains(&expected), "{expected}: {stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
        assert!(
            !stderr.contains(secret.lines().nth(1).unwrap()),
            "the key is printed"
        );
    }
}
