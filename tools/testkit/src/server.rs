//! The real server as a process: requests, log, signals and kill.

use std::{
    fs::{self, File, OpenOptions},
    net::TcpListener,
    ops::Range,
    os::unix::fs::FileExt as _,
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use crate::{Client, PATIENCE, cluster, program};

/// Time limit for a server to become ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Interval of checks of a condition.
const STEP: Duration = Duration::from_millis(20);

/// The real server on free ports. Dropping the value kills it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: File,
    address: String,
    client: Client,
    admin: Client,
    ingest: Option<Client>,
    front: Option<Client>,
}

impl Server {
    /// Starts the server over the database of this connection string and waits until it is ready.
    pub fn start(database_url: &str) -> Self {
        Self::start_with(database_url, &[])
    }

    /// The same with additional environment variables. In a database of the shared cluster it has the login of a server.
    pub fn start_with(database_url: &str, environment: &[(&str, &str)]) -> Self {
        let login = cluster::url_as(database_url, "assay_test_server");
        let environment = [&[("ASSAY_DATABASE_URL", login.as_str())], environment].concat();
        let mut last = None;
        // A port that was free may be taken by the time the server binds it.
        for _ in 0..3 {
            let mut server = Self::launch(Command::new(program("assay-server")), &environment);
            match server.wait("ready", READY_WITHIN, Self::is_ready) {
                Ok(()) => return server,
                Err(error) => last = Some(error),
            }
        }
        panic!("assay-server did not start: {:?}", last.expect("it was tried"));
    }

    /// Starts a server with the ingest listener and these environment variables.
    pub fn start_with_ingest(database_url: &str, environment: &[(&str, &str)]) -> Self {
        let address = free_address();
        let ingester = cluster::url_as(database_url, "assay_test_ingester");
        let own = [
            ("ASSAY_INGEST_LISTEN", address.as_str()),
            ("ASSAY_INGEST_DATABASE_URL", ingester.as_str()),
        ];
        let mut server = Self::start_with(database_url, &[&own, environment].concat());
        server.ingest = Some(Client::new(format!("http://{address}")));
        server
    }

    /// Starts a server with the pages and these environment variables.
    pub fn start_with_front(database_url: &str, environment: &[(&str, &str)]) -> Self {
        let address = free_address();
        let mut server = Self::start_with(
            database_url,
            &[environment, &[("ASSAY_FRONT_LISTEN", &address)]].concat(),
        );
        server.front = Some(Client::new(format!("http://{address}")));
        server
    }

    /// Starts a server with the pages and the ingest listener on the address of the API.
    pub fn start_on_one_address(database_url: &str, environment: &[(&str, &str)]) -> Self {
        let ingester = cluster::url_as(database_url, "assay_test_ingester");
        let own = [
            ("ASSAY_FRONT_LISTEN", "same"),
            ("ASSAY_INGEST_LISTEN", "same"),
            ("ASSAY_INGEST_DATABASE_URL", ingester.as_str()),
        ];
        let mut server = Self::start_with(database_url, &[&own, environment].concat());
        let client = || Client::new(format!("http://{}", server.address));
        (server.front, server.ingest) = (Some(client()), Some(client()));
        server
    }

    /// Starts this command, which may wrap the program, with these environment variables. Does not wait.
    pub fn launch(mut command: Command, environment: &[(&str, &str)]) -> Self {
        let (address, operators) = (free_address(), free_address());
        let log = log_file().expect("a log can be made");
        let output = || Stdio::from(log.try_clone().expect("the log can be shared"));
        let child = command
            .env_remove("ASSAY_DATABASE_URL")
            .env_remove("ASSAY_INGEST_DATABASE_URL")
            .env_remove("ASSAY_DATA_DIR")
            .env("ASSAY_LISTEN", &address)
            .env("ASSAY_ADMIN_LISTEN", &operators)
            .env("ASSAY_INGEST_LISTEN", "off")
            // The pages are off, also in tests of demonstrations, which would otherwise share a port. A test of pages
            // sets an address.
            .env("ASSAY_FRONT_LISTEN", "off")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(output())
            .stderr(output())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self {
            child,
            log,
            client: Client::new(format!("http://{address}")),
            admin: Client::new(format!("http://{operators}")),
            ingest: None,
            front: None,
            address,
        }
    }

    /// The address of the API, as `127.0.0.1:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A client of the API's listener. Paths begin with `/api/v1`.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A client of the operators' listener.
    pub fn admin(&self) -> &Client {
        &self.admin
    }

    /// A client of the listener for reports. Paths begin with `/ingest/v1`.
    ///
    /// # Panics
    ///
    /// If the server was started without that listener.
    pub fn ingest(&self) -> &Client {
        self.ingest.as_ref().expect("the server takes reports")
    }

    /// A client of the listener for the pages.
    ///
    /// # Panics
    ///
    /// If the server was started without that listener.
    pub fn front(&self) -> &Client {
        self.front.as_ref().expect("the server has pages")
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it is ready.
    pub fn ready(&mut self) {
        self.until("ready", Self::is_ready);
    }

    /// Waits until its log contains this text.
    pub fn wait_for_log(&mut self, text: &str) {
        self.until(text, |server| server.log().contains(text));
    }

    /// Waits for a condition, which must become true while the process lives.
    pub fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        if let Err(error) = self.wait(what, PATIENCE, condition) {
            panic!("{error}");
        }
    }

    fn wait(&mut self, what: &str, within: Duration, condition: impl Fn(&Self) -> bool) -> Result<()> {
        let began = Instant::now();
        while !condition(self) {
            ensure!(self.lives(), "not {what}: it ended: {}", self.log());
            ensure!(began.elapsed() < within, "not {what} in time: {}", self.log());
            thread::sleep(STEP);
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        let answer = self.admin.try_get("/readyz", &[]);
        answer.is_ok_and(|answer| answer.status == 200)
    }

    /// Whether its health check succeeds.
    pub fn is_healthy(&self) -> bool {
        let answer = self.admin.try_get("/healthz", &[]);
        answer.is_ok_and(|answer| answer.status == 200)
    }

    /// Whether it is running.
    pub fn lives(&mut self) -> bool {
        self.ended_with().is_none()
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        // The read uses an offset, because the file position is shared with the server's writes.
        let mut text = Vec::new();
        let mut part = [0; 8_192];
        loop {
            let offset = u64::try_from(text.len()).expect("a log fits into memory");
            match self.log.read_at(&mut part, offset).expect("the log can be read") {
                0 => return String::from_utf8_lossy(&text).into_owned(),
                read => text.extend(part.iter().take(read)),
            }
        }
    }

    /// Its resident memory, in megabytes.
    pub fn megabytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kilobytes.expect("the system shows its memory") / 1_024
    }

    /// The number of its open files.
    pub fn descriptors(&self) -> usize {
        let files = fs::read_dir(format!("/proc/{}/fd", self.pid()));
        files.expect("it runs").count()
    }

    /// Sends a signal, by its name without `SIG`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.pid().to_string()])
            .status();
        assert!(sent.is_ok_and(|sent| sent.success()), "kill -s {name}");
    }

    /// Kills it.
    pub fn kill(&mut self) {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.expect("it can be killed");
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.ended_with() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end: {}", self.log());
            thread::sleep(STEP);
        }
    }

    fn ended_with(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server in any state is killed, so that a failed test leaves no processes.
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait().map(drop)) {
            eprintln!("assay-server was not ended: {error}");
        }
    }
}

/// An address of this machine with a free port, for a program that listens on it later.
///
/// The port is below the systems' range for clients (from 32768), and concurrent test programs begin at different
/// ports. Other connections and tests therefore do not take it in the meantime.
pub fn free_address() -> String {
    const PORTS: Range<u32> = 10_000..32_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(7_919);
    let candidates = (0..PORTS.end - PORTS.start).map(|_| {
        let step = TAKEN.fetch_add(1, Ordering::Relaxed);
        PORTS.start + first.wrapping_add(step) % (PORTS.end - PORTS.start)
    });
    let mut addresses = candidates.map(|port| format!("127.0.0.1:{port}"));
    let free = addresses.find(|address| TcpListener::bind(address).is_ok());
    free.expect("a port is free")
}

/// A file without a name. It disappears with its last user.
fn log_file() -> Result<File> {
    let path = cluster::target().join(format!("assay-server-{}.log", uuid::Uuid::now_v7().simple()));
    let file = OpenOptions::new()
        .create_new(true)
        .read(true)
        .append(true)
        .open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
