//! The Postgres process: creates its data, starts, finds and stops it.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::{
    ClusterError,
    binaries::Binaries,
    init::{make_data, remove_tree, tail},
    layout::{Layout, open_private},
    probe::{self, Answer},
    settings::{Durability, Settings},
};

/// Interval of checks while a process starts or stops.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// A start removes a log that is longer than this, in bytes.
const LONGEST_LOG: u64 = 10 * 1024 * 1024;

/// A running Postgres.
#[derive(Debug)]
pub(crate) struct Postmaster {
    pid: Pid,
    /// Our child process; none if another program started Postgres.
    child: Option<Child>,
}

impl Postmaster {
    /// The process id.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The Postgres that already runs in this layout, once it answers.
    ///
    /// After a crash, the recorded process id may belong to any other program. It counts only if that program is a
    /// Postgres in this folder. Otherwise the files with the id are removed, because Postgres would refuse to start
    /// beside them.
    pub(crate) fn running(layout: &Layout, timeout: Duration) -> Result<Option<Self>, ClusterError> {
        let Some(pid) = recorded_pid(layout) else {
            return Ok(None);
        };
        let deadline = Instant::now() + timeout;
        while is_postmaster(pid, &layout.data()) {
            match probe::answer(&layout.socket()) {
                Answer::Accepted => return Ok(Some(Self { pid, child: None })),
                Answer::Refused(reason) => return Err(damaged(layout, reason)),
                Answer::NotYet => {}
            }
            if Instant::now() >= deadline {
                return Err(no_answer(layout, timeout));
            }
            thread::sleep(CHECK_INTERVAL);
        }
        let socket = layout.socket();
        let mut socket_lock = socket.clone().into_os_string();
        socket_lock.push(".lock");
        for stale in [layout.data().join("postmaster.pid"), socket_lock.into(), socket] {
            remove_if_there(&stale)?;
        }
        Ok(None)
    }

    /// Starts Postgres. Creates its data if there are none.
    pub(crate) fn start(layout: &Layout, settings: &Settings) -> Result<Self, ClusterError> {
        let data = layout.data();
        if settings.durability == Durability::Ephemeral {
            remove_tree(&data)?;
        }
        let binaries = Binaries::find(settings, &data)?;
        if !data.join("PG_VERSION").is_file() {
            if fs::read_dir(&data).is_ok_and(|mut entries| entries.next().is_some()) {
                return Err(damaged(layout, "its file PG_VERSION is missing".to_owned()));
            }
            make_data(layout, &binaries)?;
        }
        let deadline = Instant::now() + settings.timeout;
        loop {
            let mut child = launch(layout, &binaries, settings.durability)?;
            loop {
                match (probe::answer(&layout.socket()), recorded_pid(layout)) {
                    (Answer::Accepted, Some(pid)) => {
                        return Ok(Self {
                            pid,
                            child: Some(child),
                        });
                    }
                    (Answer::Refused(reason), _) => {
                        end(&mut child);
                        return Err(damaged(layout, reason));
                    }
                    (Answer::Accepted | Answer::NotYet, _) => {}
                }
                if Instant::now() >= deadline {
                    end(&mut child);
                    return Err(no_answer(layout, settings.timeout));
                }
                if matches!(child.try_wait(), Ok(Some(_))) {
                    break;
                }
                thread::sleep(CHECK_INTERVAL);
            }
            // Postgres exited. After a kill, the remaining processes of the former Postgres need a moment to end, and
            // until then the new one refuses to start. Only this failure is tried again. Any other one would repeat
            // until the time limit.
            let output = log_end(layout);
            if !output.contains("still in use") {
                return Err(ClusterError::Ended {
                    log: layout.log(),
                    output,
                });
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Ends every session and stops Postgres.
    pub(crate) fn stop(&mut self, layout: &Layout, timeout: Duration) -> Result<(), ClusterError> {
        let deadline = Instant::now() + timeout;
        if is_postmaster(self.pid, &layout.data())
            && let Err(error) = kill_process(self.pid, Signal::INT)
        {
            log::debug!("Postgres could not be signalled to stop: {error}");
        }
        while !self.has_ended(layout) {
            if Instant::now() >= deadline {
                return Err(ClusterError::NotStopped {
                    pid: self.pid(),
                    waited: timeout,
                });
            }
            thread::sleep(CHECK_INTERVAL);
        }
        Ok(())
    }

    fn has_ended(&mut self, layout: &Layout) -> bool {
        match &mut self.child {
            Some(child) => matches!(child.try_wait(), Ok(Some(_)) | Err(_)),
            None => !is_postmaster(self.pid, &layout.data()),
        }
    }
}

/// Starts the process outside of this program's terminal and process group: Ctrl-C must stop the program before its
/// database.
fn launch(layout: &Layout, binaries: &Binaries, durability: Durability) -> Result<Child, ClusterError> {
    let log = open_log(layout)?;
    let log_too = log
        .try_clone()
        .map_err(|source| ClusterError::io("open", &layout.log(), source))?;
    let program = binaries.program("postgres");
    let mut command = layout.account.command(&program);
    command
        .arg("-D")
        .arg(layout.data())
        .arg("-k")
        .arg(layout.socket_dir());
    for setting in settings_of(durability) {
        command.args(["-c", setting]);
    }
    command
        .current_dir("/")
        .env("LC_ALL", "C")
        .env_remove("PGDATA")
        .env_remove("PGPORT")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(log_too)
        .spawn()
        .map_err(|source| ClusterError::io("run", &program, source))
}

fn settings_of(durability: Durability) -> impl Iterator<Item = &'static str> {
    let common = [
        "listen_addresses=",
        "port=5432",
        "unix_socket_permissions=0700",
        "cluster_name=assay",
        "timezone=UTC",
        "log_timezone=UTC",
        "logging_collector=off",
        "log_checkpoints=off",
        // Statements contain texts of reports, which must not be logged.
        "log_min_error_statement=panic",
        // Compiling a plan costs more than these statements take.
        "jit=off",
        "random_page_cost=1.1",
    ];
    let own: &[&str] = match durability {
        Durability::Durable => &[
            "max_connections=100",
            "shared_buffers=256MB",
            "work_mem=16MB",
            "max_wal_size=2GB",
            "wal_compression=on",
        ],
        Durability::Ephemeral => &[
            "max_connections=400",
            "shared_buffers=64MB",
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
            "wal_level=minimal",
            "max_wal_senders=0",
            "autovacuum=off",
            "checkpoint_timeout=1h",
        ],
    };
    common.into_iter().chain(own.iter().copied())
}

/// The process id that Postgres recorded.
fn recorded_pid(layout: &Layout) -> Option<Pid> {
    let recorded = fs::read_to_string(layout.data().join("postmaster.pid")).ok()?;
    let pid: i32 = recorded.lines().next()?.trim().parse().ok()?;
    if pid > 1 { Pid::from_raw(pid) } else { None }
}

/// Whether a process is a Postgres that works in this folder. If the system does not show that, a living process
/// counts as one.
fn is_postmaster(pid: Pid, data: &Path) -> bool {
    if test_kill_process(pid).is_err() {
        return false;
    }
    let process = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
    if let Ok(state) = fs::read_to_string(process.join("stat"))
        && state
            .rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z'))
    {
        return false; // it ended and waits to be reaped
    }
    match fs::read_to_string(process.join("comm")) {
        Ok(name) => {
            name.trim() == "postgres" && fs::read_link(process.join("cwd")).is_ok_and(|folder| folder == data)
        }
        Err(_) => !process.exists() && !Path::new("/proc/self").exists(),
    }
}

fn open_log(layout: &Layout) -> Result<File, ClusterError> {
    let path = layout.log();
    let long = fs::metadata(&path).is_ok_and(|meta| meta.len() > LONGEST_LOG);
    if long {
        remove_if_there(&path)?;
    }
    open_private(&path, layout.account)
}

fn damaged(layout: &Layout, reason: String) -> ClusterError {
    ClusterError::Damaged {
        data: layout.data(),
        reason,
        log: layout.log(),
    }
}

fn no_answer(layout: &Layout, waited: Duration) -> ClusterError {
    ClusterError::NoAnswer {
        waited,
        log: layout.log(),
        output: log_end(layout),
    }
}

fn log_end(layout: &Layout) -> String {
    tail(&String::from_utf8_lossy(
        &fs::read(layout.log()).unwrap_or_default(),
    ))
}

fn end(child: &mut Child) {
    if let Err(error) = child.kill().and_then(|()| child.wait().map(drop)) {
        log::warn!("a Postgres that did not answer could not be ended: {error}");
    }
}

fn remove_if_there(path: &Path) -> Result<(), ClusterError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(ClusterError::io("remove", path, error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
