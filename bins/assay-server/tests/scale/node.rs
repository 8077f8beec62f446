//! The test's own Postgres servers, one streaming to the other.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{PATIENCE, free_address};
use rustix::process::{Pid, Signal, kill_process};

/// A folder for Postgres, and the user for its programs.
pub(crate) struct NodeFolder {
    folder: tempfile::TempDir,
    programs: PathBuf,
    /// The user and group for Postgres if this process is root, which Postgres refuses.
    account: Option<(u32, u32)>,
    /// The port of all nodes. They differ by the folders of their sockets.
    port: String,
    /// The node that listens on 127.0.0.1, too.
    with_tcp: Option<&'static str>,
}

impl NodeFolder {
    pub(crate) fn new() -> Self {
        // Always in /tmp, because the path of a socket must be short.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let is_root = fs::metadata(folder.path()).unwrap().uid() == 0;
        let account = is_root.then(|| {
            user_and_group_ids("postgres")
                .or_else(|| user_and_group_ids("nobody"))
                .unwrap()
        });
        let nodes = Self {
            folder,
            programs: programs(),
            account,
            port: "5432".to_owned(),
            with_tcp: None,
        };
        nodes.give_to_postgres(nodes.folder.path());
        nodes
    }

    /// The same, with a node that listens on a free port of 127.0.0.1.
    pub(crate) fn with_tcp(name: &'static str) -> Self {
        let address = free_address();
        Self {
            port: address.rsplit(':').next().unwrap().to_owned(),
            with_tcp: Some(name),
            ..Self::new()
        }
    }

    /// The data folder of a node that is not created here.
    pub(crate) fn data_folder(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}.data"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn give_to_postgres(&self, path: &Path) {
        if let Some((user, group)) = self.account {
            chown(path, Some(user), Some(group)).unwrap();
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        if let Some((user, group)) = self.account {
            command.uid(user).gid(group);
        }
        command
            .current_dir("/")
            .env("LC_ALL", "C")
            .env("PGPORT", &self.port)
            .stdin(Stdio::null());
        command
    }

    /// Runs a program with arguments without spaces, and a last one.
    fn run(&self, program: &str, arguments: &str, last: &str) -> String {
        let mut command = self.command(program);
        let ended = command.args(arguments.split(' ')).arg(last).output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{program} {last}: {stderr}");
        String::from_utf8_lossy(&ended.stdout).trim_end().to_owned()
    }

    /// A connection string of the nodes with these names, in this order.
    pub(crate) fn url(&self, names: &[&str]) -> String {
        let hosts: Vec<String> = names
            .iter()
            .map(|name| self.path(name).display().to_string())
            .collect();
        format!(
            "postgresql:///assay?host={}&port={}&user=assay",
            hosts.join(","),
            self.port
        )
    }
}

/// A running Postgres, which logs every statement.
pub(crate) struct Node<'a> {
    nodes: &'a NodeFolder,
    name: &'static str,
    data: PathBuf,
    process: Child,
}

impl<'a> Node<'a> {
    /// An empty primary.
    pub(crate) fn primary(nodes: &'a NodeFolder, name: &'static str) -> Self {
        let data = nodes.path(&format!("{name}.data"));
        let to = data.display().to_string();
        let arguments = "--no-sync --auth=trust --encoding=UTF8 --locale=C -U assay -D";
        nodes.run("initdb", arguments, &to);
        let node = Self::start(nodes, name, data);
        node.sql("postgres", "CREATE DATABASE assay");
        node
    }

    /// A copy of a node that replicates it.
    pub(crate) fn standby(nodes: &'a NodeFolder, name: &'static str, of: &Node<'_>) -> Self {
        let data = nodes.path(&format!("{name}.data.of.{}", of.name));
        let (from, to) = (of.socket(), data.display().to_string());
        let arguments = format!("-h {from} -U assay -R -X stream -c fast --no-sync -D");
        nodes.run("pg_basebackup", &arguments, &to);
        Self::start(nodes, name, data)
    }

    /// Starts the node again on its data, after the remains of its former process are gone.
    pub(crate) fn restart(&mut self) {
        self.process = launch(self.nodes, self.name, &self.data);
        self.wait_for_answers();
    }

    /// Kills the node, like a power failure.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Runs statements in a database and returns their output.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let (socket, stop) = (self.socket(), "-v ON_ERROR_STOP=1");
        let arguments = format!("-XAtq {stop} -h {socket} -U assay -d {database} -c");
        self.nodes.run("psql", &arguments, sql)
    }

    /// Runs commands of a page on this node's machine, and returns what they print, or why they fail.
    pub(crate) fn shell(&self, script: &str) -> Result<String, String> {
        let path = std::env::var("PATH").unwrap();
        let mut bash = self.nodes.command("/bin/bash");
        bash.args(["-euo", "pipefail", "-c", script])
            .env("PATH", format!("{}:{path}", self.nodes.programs.display()))
            .env("PGHOST", self.socket())
            .env("PGUSER", "assay")
            .env("PGDATABASE", "postgres")
            .env("ASSAY_STANDBY_PASSWORD", "a'b c");
        let output = bash.output().unwrap();
        let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        if output.status.success() {
            Ok(printed.concat())
        } else {
            Err(printed.concat())
        }
    }

    /// Replaces the rules for connections.
    pub(crate) fn allow(&self, rules: &str) {
        fs::write(self.data.join("pg_hba.conf"), rules).unwrap();
        self.sql("postgres", "SELECT pg_reload_conf()");
    }

    /// The statements and messages so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(log_of(self.nodes, self.name)).unwrap()).into_owned()
    }

    fn socket(&self) -> String {
        self.nodes.path(self.name).display().to_string()
    }

    /// A node on data that are complete.
    pub(crate) fn start(nodes: &'a NodeFolder, name: &'static str, data: PathBuf) -> Self {
        let socket = nodes.path(name);
        fs::create_dir_all(&socket).unwrap();
        nodes.give_to_postgres(&socket);
        let process = launch(nodes, name, &data);
        let mut node = Self {
            nodes,
            name,
            data,
            process,
        };
        node.wait_for_answers();
        node
    }

    fn wait_for_answers(&mut self) {
        let (socket, begun) = (self.socket(), Instant::now());
        let asks = ["-h", &socket, "-U", "assay", "-d", "postgres", "-c", ""];
        while !self
            .nodes
            .command("psql")
            .args(asks)
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
        {
            assert!(begun.elapsed() < PATIENCE, "no answer: {}", self.log());
            if self.process.try_wait().unwrap().is_some() {
                // The processes of a killed Postgres need a moment to exit.
                self.process = launch(self.nodes, self.name, &self.data);
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            // Stops at once, but removes its shared memory, unlike after SIGKILL.
            let _ = kill_process(Pid::from_child(&self.process), Signal::QUIT);
            let _ = self.process.wait();
        }
    }
}

fn launch(nodes: &NodeFolder, name: &str, data: &Path) -> Child {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log_of(nodes, name))
        .unwrap();
    let settings = "max_connections=60 shared_buffers=16MB fsync=off autovacuum=off wal_keep_size=256MB \
         wal_retrieve_retry_interval=200ms log_statement=all log_line_prefix=";
    let mut command = nodes.command("postgres");
    command.arg("-D").arg(data).arg("-k").arg(nodes.path(name));
    let listens = nodes.with_tcp == Some(name);
    command.arg("-c").arg(format!(
        "listen_addresses={}",
        if listens { "127.0.0.1" } else { "" }
    ));
    for setting in settings.split_ascii_whitespace() {
        command.args(["-c", setting]);
    }
    let log_too: File = log.try_clone().unwrap();
    command.stdout(log).stderr(log_too).spawn().unwrap()
}

fn log_of(nodes: &NodeFolder, name: &str) -> PathBuf {
    nodes.path(&format!("{name}.log"))
}

/// The ids of a user and its group.
fn user_and_group_ids(name: &str) -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut ids = line.split(':').skip(2).map(|id| id.parse().unwrap());
    Some((ids.next()?, ids.next()?))
}

/// The folder of Postgres' programs: `PG_BIN`, then `PATH`, then the newest of Debian's folders.
fn programs() -> PathBuf {
    let named = std::env::var_os("PG_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut packaged: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path().join("bin"))
        .collect();
    packaged.sort();
    named
        .into_iter()
        .chain(std::env::split_paths(&path))
        .chain(packaged.into_iter().rev())
        .find(|folder| folder.join("initdb").is_file() && folder.join("pg_basebackup").is_file())
        .expect("Postgres is needed: apt-get install -y postgresql")
}
