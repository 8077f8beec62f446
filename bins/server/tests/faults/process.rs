//! The server as a process that is watched, signalled, killed.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{Client, program};

/// How long anything may take that has no bound of its own.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Process {
    child: Child,
    out: PathBuf,
    /// Where the API listens, as `127.0.0.1:port`.
    pub(crate) address: String,
    pub(crate) client: Client,
    pub(crate) admin: Client,
}

impl Process {
    /// Starts the server over a database without a rate limit, and waits until it is ready. What it writes goes to a
    /// file in `folder`.
    pub(crate) fn start(folder: &Path, database_url: &str) -> Self {
        Self::start_with(
            Command::new(program("assay-server")),
            folder,
            &[("ASSAY_DATABASE_URL", database_url)],
        )
    }

    /// The same as this command, which may wrap the program, with this environment.
    pub(crate) fn start_with(command: Command, folder: &Path, environment: &[(&str, &str)]) -> Self {
        let mut process = Self::launch(command, folder, environment);
        process.ready();
        process
    }

    /// The same without waiting.
    pub(crate) fn launch(mut command: Command, folder: &Path, environment: &[(&str, &str)]) -> Self {
        let (address, operators) = (free_address(), free_address());
        let out = folder.join(format!("server-{}.log", address.replace(':', "-")));
        let written = File::create(&out).unwrap();
        let child = command
            .current_dir(folder)
            .env_remove("ASSAY_DATABASE_URL")
            .env_remove("ASSAY_DATA_DIR")
            .env("ASSAY_RATE_LIMIT", "0")
            // The line of each request would be most of what a flood costs.
            .env("RUST_LOG", "info,access=off,actix_server=warn")
            .env("ASSAY_LISTEN", &address)
            .env("ASSAY_ADMIN_LISTEN", &operators)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(written.try_clone().unwrap())
            .stderr(written)
            .spawn()
            .unwrap();
        Self {
            child,
            out,
            client: Client::new(format!("http://{address}")),
            admin: Client::new(format!("http://{operators}")),
            address,
        }
    }

    /// Waits until it is ready.
    pub(crate) fn ready(&mut self) {
        self.until("ready", |process| {
            let answer = process.admin.try_get("/readyz", &[]);
            answer.is_ok_and(|answer| answer.status == 200)
        });
    }

    /// Waits for a condition, which must come while the process lives.
    pub(crate) fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !condition(self) {
            assert!(self.lives(), "it ended: {}", self.output());
            assert!(began.elapsed() < PATIENCE, "not {what}: {}", self.output());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it runs.
    pub(crate) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Whether it says that it is alive.
    pub(crate) fn is_healthy(&self) -> bool {
        let answer = self.admin.try_get("/healthz", &[]);
        answer.is_ok_and(|answer| answer.status == 200)
    }

    /// Everything written so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        crate::postgres::signal(name, &[self.child.id() as i32]);
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end: {}", self.output());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its memory that lies in RAM, in megabytes.
    pub(crate) fn megabytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes / 1_024
    }

    /// How many files it holds open.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id()))
            .unwrap()
            .count()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Whatever became of it: a test that failed leaves nothing running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}
