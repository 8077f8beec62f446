//! The server as a process of the test's own, over a private database.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{Client, program};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server over the private database of a folder.
pub(crate) struct Process {
    child: Child,
    out: PathBuf,
    pub(crate) client: Client,
    admin: Client,
}

impl Process {
    /// Starts the server with its working folder in `folder`, on free ports.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let (listen, admin_listen) = (free_address(), free_address());
        let out = folder.join(format!("out-{}", listen.replace(':', "-")));
        let written = File::create(&out).unwrap();
        let child = Command::new(program("assay-server"))
            .args(arguments)
            .current_dir(folder)
            .env_remove("ASSAY_DATABASE_URL")
            .env_remove("ASSAY_DATA_DIR")
            .env("ASSAY_LISTEN", &listen)
            .env("ASSAY_ADMIN_LISTEN", &admin_listen)
            .stdin(Stdio::null())
            .stdout(written.try_clone().unwrap())
            .stderr(written)
            .spawn()
            .unwrap();
        Self {
            child,
            out,
            client: Client::new(format!("http://{listen}")),
            admin: Client::new(format!("http://{admin_listen}")),
        }
    }

    /// Waits until the server is ready, and says how long that took.
    pub(crate) fn ready(&mut self) -> Duration {
        let began = Instant::now();
        while !self
            .admin
            .try_get("/readyz", &[])
            .is_ok_and(|answer| answer.status == 200)
        {
            assert!(
                self.child.try_wait().unwrap().is_none(),
                "it ended: {}",
                self.output()
            );
            assert!(began.elapsed() < PATIENCE, "not ready: {}", self.output());
            thread::sleep(Duration::from_millis(20));
        }
        began.elapsed()
    }

    /// Waits until the server wrote this.
    pub(crate) fn said(&self, text: &str) {
        let began = Instant::now();
        while !self.output().contains(text) {
            assert!(
                began.elapsed() < PATIENCE,
                "never said {text:?}: {}",
                self.output()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything written so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Waits for the end.
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
}

impl Drop for Process {
    fn drop(&mut self) {
        // Ended in order, so that its Postgres ends too.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.signal("TERM");
            self.ended();
        }
    }
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string()
}
