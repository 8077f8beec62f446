//! Slow clients: those that hold a connection on purpose are disconnected; slow readers get the whole answer.

use std::{
    fmt::Write as _,
    fs,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{Cli, Server, TestDatabase, text, wire};
use rustls::{pki_types::CertificateDer, version::TLS13};
use socket2::{Domain, Socket, Type};

use crate::tls;

/// The time until a client that reads nothing is disconnected: thirty seconds, a second for each ten kilobytes in the
/// systems' buffers, and a margin for a busy machine.
const DISCONNECTED_WITHIN: Duration = Duration::from_secs(90);
/// The same for a client whose request does not end. The server waits for five seconds.
const HEAD_WITHIN: Duration = Duration::from_secs(60);
/// The number of tests in the large answer.
const TESTS: usize = 8_000;

#[test]
fn stalled_clients_are_disconnected_and_slow_readers_are_served_whole() {
    let served = PlainAndTls::new();
    let plain = |room| served.plain(room);
    let over_tls = |room| served.over_tls(room);
    thread::scope(|scope| {
        for open in [&plain as &(dyn Fn(usize) -> Box<dyn Stream> + Sync), &over_tls] {
            scope.spawn(|| half_a_second_request(&served, open(65_536)));
            scope.spawn(|| a_body_without_end(&served, open(65_536)));
            scope.spawn(|| reading_drop_by_drop(&served, open(4_096)));
            scope.spawn(|| reading_slowly_but_steadily(&served, open(65_536)));
        }
    });
}

/// A whole request, then one whose head arrives byte by byte.
fn half_a_second_request(served: &PlainAndTls, mut stream: Box<dyn Stream>) {
    stream.write_all(served.request("/branches").as_bytes()).unwrap();
    assert_eq!(
        wire::read(&mut stream, &mut Vec::new(), false).unwrap().status,
        200
    );
    stream
        .write_all(b"GET /api/v1/projects HTTP/1.1\r\nX-Slow: ")
        .unwrap();
    send_until_disconnected(stream, b"a");
}

/// A request that is answered before its body, whose pieces arrive slowly.
fn a_body_without_end(served: &PlainAndTls, mut stream: Box<dyn Stream>) {
    let head = served.request("/branches");
    let head = head.trim_end();
    stream
        .write_all(format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\n").as_bytes())
        .unwrap();
    assert_eq!(
        wire::read(&mut stream, &mut Vec::new(), false).unwrap().status,
        200
    );
    send_until_disconnected(stream, b"1\r\na\r\n");
}

#[test]
fn a_sign_in_form_that_does_not_arrive_ends_in_time() {
    let database = TestDatabase::new();
    let server = Server::start_with_front(database.url(), &[]);
    let mut stream = connect(server.front().address(), 65_536);
    stream
        .write_all(b"POST /login HTTP/1.1\r\nHost: h\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 100\r\n\r\nkey=")
        .unwrap();
    stream.set_read_timeout(Some(HEAD_WITHIN)).unwrap();
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .expect("the connection ends in time");
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

/// Sends as many requests as the server accepts, and reads no answers.
#[test]
fn endless_requests_without_reading_answers_use_no_processor_time() {
    let database = TestDatabase::new();
    let server = Server::start_with(database.url(), &[("RUST_LOG", "warn")]);
    let mut stream = connect(server.client().address(), 4_096);
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let requests = "GET /api/v1/projects HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1_000);
    while stream.write_all(requests.as_bytes()).is_ok() {}
    let before = processor_time(server.pid());
    thread::sleep(Duration::from_secs(5));
    let spent = processor_time(server.pid()) - before;
    println!("{spent:?} of processor time in five seconds");
    assert!(spent < Duration::from_millis(500), "{spent:?} of five seconds");
    // The process was still running then.
    drop(stream);
}

/// The processor time of a process so far.
pub(crate) fn processor_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name is in parentheses and may contain anything.
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    // Linux always counts a hundred of them per second.
    Duration::from_millis(ticks * 10)
}

/// Sends `drop` twice a second, and fails if the server does not disconnect within the time limit.
fn send_until_disconnected(mut stream: Box<dyn Stream>, drop: &[u8]) {
    let began = Instant::now();
    stream.wait_at_most(Duration::from_millis(500));
    loop {
        assert!(began.elapsed() < HEAD_WITHIN, "the connection is held");
        match stream.read(&mut [0; 512]) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if is_timeout(&error) => {
                if stream.write_all(drop).and_then(|()| stream.flush()).is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// A large answer. The client reads hardly any of it.
fn reading_drop_by_drop(served: &PlainAndTls, mut stream: Box<dyn Stream>) {
    stream
        .write_all(served.request(&served.large).as_bytes())
        .unwrap();
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < DISCONNECTED_WITHIN, "the connection is held");
        thread::sleep(Duration::from_millis(250));
        match stream.read(&mut [0; 64]) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
    }
}

/// The same at about thirty kilobytes a second, which takes longer than the longest permitted pause.
fn reading_slowly_but_steadily(served: &PlainAndTls, stream: Box<dyn Stream>) {
    let began = Instant::now();
    let mut stream = Steady(stream);
    stream
        .write_all(served.request(&served.large).as_bytes())
        .unwrap();
    let answer = wire::read(&mut stream, &mut Vec::new(), false).expect("a whole answer");
    assert_eq!(answer.json()["tests"].as_array().unwrap().len(), TESTS);
    assert!(
        began.elapsed() > Duration::from_secs(45),
        "too fast to exceed the permitted pause: {:?}",
        began.elapsed()
    );
}

/// Reads eight kilobytes three times a second.
struct Steady(Box<dyn Stream>);

impl Read for Steady {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        thread::sleep(Duration::from_millis(300));
        let room = buffer.len().min(8_192);
        self.0.read(&mut buffer[..room])
    }
}

impl Write for Steady {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// A connection with or without TLS.
trait Stream: Read + Write + Send {
    fn wait_at_most(&self, time: Duration);
}

impl Stream for TcpStream {
    fn wait_at_most(&self, time: Duration) {
        self.set_read_timeout(Some(time)).unwrap();
    }
}

impl Stream for tls::Tls {
    fn wait_at_most(&self, time: Duration) {
        self.sock.wait_at_most(time);
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// One database, served with and without TLS.
struct PlainAndTls {
    key: String,
    project: String,
    /// The path of the large answer, below the project.
    large: String,
    plain: SocketAddr,
    tls: SocketAddr,
    trusted: CertificateDer<'static>,
    _servers: [Server; 2],
    /// Dropped last.
    _database: TestDatabase,
}

impl PlainAndTls {
    fn new() -> Self {
        let (database, folder) = (TestDatabase::new(), tempfile::tempdir().unwrap());
        let cli = Cli::new(database.url());
        cli.json(&["org", "create", "Shop", "--plan", "pro"]);
        let project = text(&cli.json(&["project", "create", "--org", "Shop", "web"])["id"]);
        let key = text(&cli.json(&["key", "create", "--org", "Shop", "--days", "90"])["key"]);
        let mut report = "<testsuite>".to_owned();
        for test in 0..TESTS {
            write!(
                report,
                "<testcase classname=\"cart\" name=\"keeps {test}\" file=\"cart.test.ts\" time=\"0.01\"/>"
            )
            .unwrap();
        }
        report.push_str("</testsuite>");
        let path = folder.path().join("report.xml");
        fs::write(&path, report).unwrap();
        let run = cli.json(&[
            "import",
            "--project",
            "web",
            "--branch",
            "main",
            &path.display().to_string(),
        ]);
        let trusted = tls::issue(folder.path());
        let (over_tls, tls) = tls::start(&database, folder.path());
        let plain = Server::start(database.url());
        Self {
            large: format!("/runs/{}", text(&run["runId"])),
            plain: plain.client().address(),
            tls,
            key,
            project,
            trusted,
            _servers: [plain, over_tls],
            _database: database,
        }
    }

    fn request(&self, below: &str) -> String {
        let (project, key) = (&self.project, &self.key);
        format!(
            "GET /api/v1/projects/{project}{below} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
        )
    }

    /// A connection whose system buffers at most this many unread bytes.
    fn plain(&self, room: usize) -> Box<dyn Stream> {
        Box::new(connect(self.plain, room))
    }

    fn over_tls(&self, room: usize) -> Box<dyn Stream> {
        Box::new(tls::handshake(connect(self.tls, room), &self.trusted, &[&TLS13], &[]).unwrap())
    }
}

fn connect(address: SocketAddr, room: usize) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(room).unwrap();
    socket.connect(&address.into()).unwrap();
    socket.into()
}
