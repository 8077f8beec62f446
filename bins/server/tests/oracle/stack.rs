//! The real programs: a server over its private cluster, and the command line beside it.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;

/// A running server; dropped, it is asked to end.
pub(crate) struct Server {
    child: Child,
    /// Where it answers the API.
    pub(crate) address: SocketAddr,
    /// Where it answers operators.
    pub(crate) admin: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _asked = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status();
        let patience = Instant::now() + Duration::from_secs(20);
        while Instant::now() < patience {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// What a command answered.
#[derive(Debug)]
pub(crate) struct Said {
    /// Its exit status.
    pub(crate) status: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

/// The programs around one data directory.
pub(crate) struct Stack {
    server: Option<Server>,
    scratch: tempfile::TempDir,
}

impl Stack {
    /// Starts a server without a rate limit.
    pub(crate) fn start() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        // The cluster may run as another user, who has to pass through.
        open_to_all(scratch.path());
        fs::create_dir(scratch.path().join("work")).unwrap();
        let mut stack = Self {
            server: None,
            scratch,
        };
        stack.server = Some(stack.another_server(&[("ASSAY_RATE_LIMIT", "0")]));
        stack
    }

    /// The server without a limit.
    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().expect("started")
    }

    /// One more server over the same database.
    pub(crate) fn another_server(&self, settings: &[(&str, &str)]) -> Server {
        let address = free_address();
        let admin = free_address();
        let log =
            fs::File::create(self.scratch.path().join(format!("server-{}.log", address.port()))).unwrap();
        let mut command = Command::new(program("assay-server"));
        self.surround(&mut command);
        command
            .env("ASSAY_LISTEN", address.to_string())
            .env("ASSAY_ADMIN_LISTEN", admin.to_string())
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let mut child = command.spawn().expect("the server starts");
        let patience = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(address).is_err() {
            let ended = child.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < patience,
                "no server: {}",
                self.logs()
            );
            sleep(Duration::from_millis(50));
        }
        Server {
            child,
            address,
            admin,
        }
    }

    /// Runs `assay` with these arguments and variables.
    pub(crate) fn assay(
        &self,
        arguments: &[String],
        variables: &BTreeMap<String, String>,
        input: &[u8],
    ) -> Said {
        let mut command = Command::new(program("assay"));
        self.surround(&mut command);
        let mut child = command
            .args(arguments)
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("assay starts");
        // A command that reads no input may have ended already.
        let _sent = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        Said {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs `assay … --json` and reads what it prints; its failure is ours.
    pub(crate) fn told(&self, arguments: &[&str]) -> Value {
        let said = self.command(arguments);
        assert_eq!(said.status, 0, "assay {arguments:?}: {}", said.err);
        serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("assay {arguments:?} printed {}", said.out))
    }

    /// Runs `assay … --json` without variables or input.
    pub(crate) fn command(&self, arguments: &[&str]) -> Said {
        let mut all: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        all.push("--json".to_owned());
        self.assay(&all, &BTreeMap::new(), b"")
    }

    /// Writes a file for an import.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.scratch.path().join("work").join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Runs a statement in the private cluster's database, for what no command can bring about, such as the end
    /// of a key's months.
    pub(crate) fn sql(&self, statement: &str) -> Option<String> {
        let pid_file = find_file(&self.scratch.path().join("data"), "postmaster.pid")?;
        let lines: Vec<String> = fs::read_to_string(pid_file)
            .ok()?
            .lines()
            .map(str::to_owned)
            .collect();
        let (port, socket) = (lines.get(3)?, lines.get(4)?);
        let psql = std::env::var_os("PG_BIN")
            .map(|bin| Path::new(&bin).join("psql"))
            .filter(|psql| psql.exists());
        let psql = psql.unwrap_or_else(|| PathBuf::from("psql"));
        let own = std::env::var("USER").unwrap_or_default();
        // A cluster belongs to the name that it was made with, or to whoever ran its making.
        ["assay", "postgres", "nobody", "root", &own]
            .iter()
            .find_map(|user| {
                let ask = |database: &str, statement: &str| {
                    let output = Command::new(&psql)
                        .args([
                            "-h", socket, "-p", port, "-U", user, "-d", database, "-Atqc", statement,
                        ])
                        .output()
                        .ok()?;
                    let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                    output.status.success().then_some(told)
                };
                let databases = ask(
                    "postgres",
                    "select datname from pg_database where not datistemplate order by datname = 'postgres'",
                )?;
                ask(databases.lines().next()?, statement)
            })
    }

    /// What the servers logged.
    pub(crate) fn logs(&self) -> String {
        let mut all = String::new();
        for entry in fs::read_dir(self.scratch.path()).unwrap().flatten() {
            if entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "log")
            {
                all.push_str(&fs::read_to_string(entry.path()).unwrap_or_default());
            }
        }
        all
    }

    fn surround(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.scratch.path())
            .envs(std::env::var_os("PG_BIN").map(|bin| ("PG_BIN", bin)))
            .env("RUST_LOG", "warn")
            .env("ASSAY_DATA_DIR", self.scratch.path().join("data"))
            .current_dir(self.scratch.path().join("work"));
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The programs as built from these sources, or those of the folder that `ASSAY_ORACLE_PROGRAMS` names.
fn program(name: &str) -> PathBuf {
    match std::env::var_os("ASSAY_ORACLE_PROGRAMS") {
        Some(folder) => Path::new(&folder).join(name),
        None => assay_testkit::program(name),
    }
}

fn find_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries
        .iter()
        .find(|path| path.file_name().is_some_and(|found| found == name))
        .cloned()
        .or_else(|| {
            entries
                .iter()
                .filter(|path| path.is_dir())
                .find_map(|path| find_file(path, name))
        })
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}
