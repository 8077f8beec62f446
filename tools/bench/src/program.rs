//! The measured server.

use std::{
    fs::File,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};

use crate::{
    client::{Client, Request},
    dataset::OpenDataset,
};

/// Time limit for the server's first answer.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The running server. Dropping the value ends it.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    pub(crate) client: Client,
}

impl Program {
    /// The real server over the data set, without a rate limit.
    pub(crate) fn server(server: &Path, opened: &OpenDataset) -> anyhow::Result<Self> {
        let (listen, admin, front) = (free_address()?, free_address()?, free_address()?);
        let log = File::create(opened.dir.join("assay-server.log")).context("making a log")?;
        let mut command = Command::new(server);
        command
            .env("ASSAY_DATABASE_URL", opened.running.url())
            .env("ASSAY_LISTEN", listen.to_string())
            .env("ASSAY_ADMIN_LISTEN", admin.to_string())
            .env("ASSAY_FRONT_LISTEN", front.to_string())
            .env("ASSAY_RATE_LIMIT", "0")
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut program = Self {
            child: command
                .spawn()
                .with_context(|| format!("running {}", server.display()))?,
            client: Client::new(listen, front, &opened.data.key),
        };
        program.until_ready(admin)?;
        Ok(program)
    }

    fn until_ready(&mut self, admin: SocketAddr) -> anyhow::Result<()> {
        let (probe, ready) = (Client::new(admin, admin, ""), Request::Get("/readyz".to_owned()));
        let deadline = Instant::now() + READY_WITHIN;
        while !probe.once(&ready).is_ok_and(|answer| answer.status == 200) {
            if let Some(ended) = self.child.try_wait()? {
                bail!("the server ended at once with {ended}; its log lies in the data folder");
            }
            ensure!(Instant::now() < deadline, "the server was not ready in time");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait().map(drop)) {
            eprintln!("assay-bench: a server was not ended: {error}");
        }
    }
}

/// An address with a free port.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// The named server, else the one in this program's folder.
pub(crate) fn server(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let path = match named {
        Some(path) => path.to_path_buf(),
        None => std::env::current_exe()?.with_file_name("assay-server"),
    };
    ensure!(
        path.is_file(),
        "there is no server at {}; build it with `cargo build --release --bin assay-server`, or name one with --server",
        path.display()
    );
    Ok(path)
}
