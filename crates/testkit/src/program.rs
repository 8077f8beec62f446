//! The real programs, as built beside the test.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use walkdir::WalkDir;

use crate::{Client, cluster};

/// How long a server may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// The path of a program of this workspace, such as `assay`; both are built where they are missing or older than
/// their sources.
pub fn program(name: &str) -> PathBuf {
    build().unwrap_or_else(|error| panic!("the programs were not built: {error:?}"));
    cluster::profile().join(name)
}

/// The real command line over a database.
#[derive(Debug, Clone)]
pub struct Cli {
    database_url: String,
}

impl Cli {
    /// The command line over the database of this connection string.
    pub fn new(database_url: impl Into<String>) -> Self {
        Self {
            database_url: database_url.into(),
        }
    }

    /// The program with its environment and these arguments, to be run; nothing of CI's own environment reaches it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("assay"));
        command
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME"))
            .env("ASSAY_DATABASE_URL", &self.database_url)
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end, whatever that is.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments)
            .output()
            .unwrap_or_else(|error| panic!("assay {arguments:?}: {error}"))
    }

    /// Runs the program with `--json`, which must end well, and returns the object that it prints.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        let output = self.run(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "assay {arguments:?} ended with {}: {said}",
            output.status
        );
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("assay {arguments:?}: {error}"))
    }
}

/// The real server on free ports; ended with the value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: File,
    client: Client,
    admin: Client,
}

impl Server {
    /// Starts the server over the database of this connection string and waits until it is ready.
    pub fn start(database_url: &str) -> Self {
        Self::start_with(database_url, &[])
    }

    /// The same with more environment variables.
    pub fn start_with(database_url: &str, environment: &[(&str, &str)]) -> Self {
        let mut last = None;
        // A port that was free may be taken by the time the server binds it.
        for _ in 0..3 {
            match Self::launch(database_url, environment) {
                Ok(server) => return server,
                Err(error) => last = Some(error),
            }
        }
        panic!("assay-server did not start: {:?}", last.expect("it was tried"));
    }

    /// A client of the API's listener. Paths begin with `/api/v1`.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A client of the operators' listener.
    pub fn admin(&self) -> &Client {
        &self.admin
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the server wrote so far.
    pub fn log(&self) -> String {
        let mut text = String::new();
        let mut log = &self.log;
        log.seek(SeekFrom::Start(0))
            .and_then(|_| log.read_to_string(&mut text))
            .expect("the log can be read");
        text
    }

    fn launch(database_url: &str, environment: &[(&str, &str)]) -> Result<Self> {
        let (listen, admin_listen) = (free_address()?, free_address()?);
        let log = log_file()?;
        let child = Command::new(program("assay-server"))
            .env("ASSAY_DATABASE_URL", database_url)
            .env("ASSAY_LISTEN", &listen)
            .env("ASSAY_ADMIN_LISTEN", &admin_listen)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .spawn()?;
        let mut server = Self {
            child,
            log,
            client: Client::new(format!("http://{listen}")),
            admin: Client::new(format!("http://{admin_listen}")),
        };
        let deadline = Instant::now() + READY_WITHIN;
        while !server
            .admin
            .try_get("/readyz", &[])
            .is_ok_and(|answer| answer.status == 200)
        {
            if let Some(ended) = server.child.try_wait()? {
                bail!("it ended with {ended}: {}", server.log());
            }
            ensure!(
                Instant::now() < deadline,
                "it was not ready in time: {}",
                server.log()
            );
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait().map(drop)) {
            eprintln!("assay-server was not ended: {error}");
        }
    }
}

fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// A file without a name, so that it goes with its last user.
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

/// Builds the programs, unless they are newer than every source: once for all test processes that wait for it.
fn build() -> Result<()> {
    static DONE: Mutex<bool> = Mutex::new(false);
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if *done {
        return Ok(());
    }
    let profile = cluster::profile();
    let stamp = profile.join("assay-programs.stamp");
    let gate = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(profile.join("assay-programs.lock"))?;
    gate.lock()?;
    let sources = newest_source()?;
    if !is_current(&profile, &stamp, sources) {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--bin", "assay", "--bin", "assay-server"]);
        cargo
            .arg("--target-dir")
            .arg(cluster::target())
            .current_dir(workspace());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        // The file's time is that of the begin: a source that changes meanwhile is newer.
        let began = SystemTime::now();
        let output = cargo
            .stdin(Stdio::null())
            .output()
            .context("cargo could not be run")?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        File::create(&stamp)?.set_modified(began)?;
    }
    *done = true;
    Ok(())
}

fn is_current(profile: &Path, stamp: &Path, sources: SystemTime) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    ["assay", "assay-server"].iter().all(|name| {
        let built = modified(&profile.join(name));
        // Cargo leaves a program alone that no change concerns; the stamp says that it looked.
        built.is_some_and(|built| built.max(modified(stamp).unwrap_or(built)) > sources)
    })
}

fn newest_source() -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for part in [
        "Cargo.toml",
        "Cargo.lock",
        "crates",
        "bins",
        "migrations",
        "testdata",
    ] {
        for entry in WalkDir::new(workspace().join(part)) {
            let Ok(entry) = entry else { continue };
            // Tests are no part of a program, and a folder's time changes with its editors' backup files.
            let is_source = entry.file_type().is_file()
                && !entry.path().components().any(|part| part.as_os_str() == "tests");
            if is_source {
                newest = newest.max(entry.metadata()?.modified()?);
            }
        }
    }
    Ok(newest)
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
