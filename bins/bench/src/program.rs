//! The measured programs: the real server, and the small ones to compare with.

use std::{
    ffi::OsStr,
    fs::File,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};

use crate::client::{Client, Request};

/// How long a program may take until it answers.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A running program; ended with the value.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    pub(crate) client: Client,
}

impl Program {
    /// The real server over this database, without a rate limit.
    pub(crate) fn server(server: &Path, url: &str, log: &str, dir: &Path) -> anyhow::Result<Self> {
        let (listen, admin) = (free_address()?, free_address()?);
        let mut command = Command::new(server);
        command
            .env("ASSAY_DATABASE_URL", url)
            .env("ASSAY_LISTEN", listen.to_string())
            .env("ASSAY_ADMIN_LISTEN", admin.to_string())
            .env("ASSAY_RATE_LIMIT", "0")
            .env("RUST_LOG", log);
        let child = spawn(command, dir, "assay-server.log")?;
        Self::ready(child, listen, admin, "/readyz")
    }

    /// Another subcommand of this program that serves.
    pub(crate) fn own(arguments: &[&str], dir: &Path) -> anyhow::Result<Self> {
        let listen = free_address()?;
        let mut command = Command::new(std::env::current_exe().context("finding this program")?);
        command.args(arguments).arg("--listen").arg(listen.to_string());
        let name = arguments.first().copied().unwrap_or("own");
        Self::ready(
            spawn(command, dir, &format!("{name}.log"))?,
            listen,
            listen,
            "/ready",
        )
    }

    /// A foreign program that listens there.
    pub(crate) fn foreign(command: Command, dir: &Path, listen: SocketAddr) -> anyhow::Result<Self> {
        Self::ready(spawn(command, dir, "foreign.log")?, listen, listen, "/")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn ready(child: Child, listen: SocketAddr, probe: SocketAddr, path: &str) -> anyhow::Result<Self> {
        let mut program = Self {
            child,
            client: Client::new(listen)?,
        };
        let probe = Client::new(probe)?;
        let deadline = Instant::now() + READY_WITHIN;
        let request = Request::get(path, &[]);
        while !probe.once(&request).is_ok_and(|answer| answer.status == 200) {
            if let Some(ended) = program.child.try_wait()? {
                bail!("a server ended at once with {ended}; its log lies in the data folder");
            }
            ensure!(Instant::now() < deadline, "a server was not ready in time");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(program)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait().map(drop)) {
            eprintln!("assay-bench: a server was not ended: {error}");
        }
    }
}

fn spawn(mut command: Command, dir: &Path, log: &str) -> anyhow::Result<Child> {
    let log = File::create(dir.join(log)).context("making a log")?;
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("running {}", Path::new(command.get_program()).display()))
}

/// An address that is free now.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// The named server, else the one beside this program.
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

/// Finds a program: in the given folder, on the path, or in Debian's folder of Postgres.
pub(crate) fn find(name: &str, named: Option<&Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH");
    let on_path = path.iter().flat_map(|path| std::env::split_paths::<OsStr>(path));
    let mut packaged: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    packaged.sort();
    named
        .map(Path::to_path_buf)
        .into_iter()
        .chain(on_path)
        .chain(packaged.into_iter().rev())
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}
