//! The real programs, as built beside the test.

use std::{
    fs::{self, File, OpenOptions},
    io::PipeWriter,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use walkdir::WalkDir;

use crate::cluster;

/// The programs of this workspace.
const PROGRAMS: [&str; 4] = ["assay", "assay-admin", "assay-notify", "assay-server"];

/// The commands of `assay`; `uploads` is in both programs. `assay-admin` has all others.
const OF_ASSAY: [&str; 16] = [
    "run",
    "upload",
    "backfill",
    "analyze",
    "gate",
    "excuse",
    "quarantine",
    "split",
    "culprit",
    "verify",
    "proof",
    "owners",
    "renames",
    "login",
    "logout",
    "mcp",
];

/// The path of a program of this workspace, such as `assay`. The programs are built if they are missing or older
/// than their sources. `ASSAY_TEST_PROGRAMS` names a folder of programs that were built elsewhere.
pub fn program(name: &str) -> PathBuf {
    if let Some(folder) = std::env::var_os("ASSAY_TEST_PROGRAMS") {
        return Path::new(&folder).join(name);
    }
    build().unwrap_or_else(|error| panic!("the programs were not built: {error:?}"));
    cluster::profile().join(name)
}

/// The real command lines over a database.
#[derive(Debug, Clone)]
pub struct Cli {
    database_url: String,
}

impl Cli {
    /// The command lines over the database of this connection string.
    pub fn new(database_url: impl Into<String>) -> Self {
        Self {
            database_url: database_url.into(),
        }
    }

    /// A command of the program that has it, with its environment and these arguments, without CI's own environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let is_of_assay = arguments
            .first()
            .is_some_and(|command| OF_ASSAY.contains(command));
        self.command_of(if is_of_assay { "assay" } else { "assay-admin" }, arguments)
    }

    /// A command of this program.
    ///
    /// In a database of the shared cluster, imports and messages have the logins that `deploy/roles.sql` gives them.
    pub fn command_of(&self, name: &str, arguments: &[&str]) -> Command {
        let login = match (name, arguments.first()) {
            ("assay-admin", Some(&"import")) => cluster::url_as(&self.database_url, "assay_test_importer"),
            ("assay-notify", _) => cluster::url_as(&self.database_url, "assay_test_notifier"),
            _ => self.database_url.clone(),
        };
        let mut command = Command::new(program(name));
        command
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME"))
            .env("ASSAY_DATABASE_URL", login)
            // The sessions of whoever runs the tests are theirs.
            .env("XDG_STATE_HOME", cluster::target().join("state"))
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Runs `assay-notify --once` with a target in a file for all projects and events, which registers it. Returns the
    /// messages, one JSON object a line.
    pub fn notify_once(&self) -> String {
        let folder = tempfile::tempdir().unwrap();
        let messages = folder.path().join("messages");
        let target =
            format!("[[target]]\nname = \"log\"\nfile = {{ path = {messages:?}, format = \"json\" }}\n");
        let config = notify_file(folder.path(), &target);
        let output = self
            .command_of("assay-notify", &["--once", "--config"])
            .arg(config)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
        fs::read_to_string(messages).unwrap_or_default()
    }

    /// Runs the program and returns its output, with any exit status.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments)
            .output()
            .unwrap_or_else(|error| panic!("assay {arguments:?}: {error}"))
    }

    /// Runs the program with `--json`, which must succeed, and returns the printed object.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        let output = self.run(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "assay {arguments:?} ended with {}: {errors}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stdout)
        );
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("assay {arguments:?}: {error}"))
    }
}

/// A command that `wrapper` starts, as `env` and `sh -c` do with the arguments after their own. The command keeps its
/// environment and its working folder.
pub fn started_by(mut wrapper: Command, command: &Command) -> Command {
    wrapper
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    if let Some(folder) = command.get_current_dir() {
        wrapper.current_dir(folder);
    }
    wrapper
}

/// Writes the file of `assay-notify` into a folder, readable for its owner alone.
pub fn notify_file(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("notify.toml");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// The end of a pipe whose reader has closed it.
pub fn closed_pipe() -> PipeWriter {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer
}

/// The standard error of a program.
pub fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Builds the programs unless they are newer than every source. All waiting test processes share one build.
fn build() -> Result<()> {
    static DONE: Mutex<bool> = Mutex::new(false);
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if *done {
        return Ok(());
    }
    let profile = cluster::profile();
    let stamp = profile.join("assay-programs.stamp");
    let lock_file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(profile.join("assay-programs.lock"))?;
    lock_file.lock()?;
    let sources = newest_source()?;
    if !is_current(&profile, &stamp, sources) {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet"]);
        cargo.args(PROGRAMS.iter().flat_map(|name| ["--bin", name]));
        cargo
            .arg("--target-dir")
            .arg(cluster::target())
            .current_dir(workspace());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        // The file has the time of the start. A source that changes during the build is then newer.
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
    PROGRAMS.iter().all(|name| {
        let built = modified(&profile.join(name));
        // Cargo does not touch a program without changes. The stamp records that it checked.
        built.is_some_and(|built| built.max(modified(stamp).unwrap_or(built)) > sources)
    })
}

fn newest_source() -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for part in [
        "Cargo.toml",
        "Cargo.lock",
        "bins",
        "crates",
        "docs/openapi.json",
        "docs/reference.html",
        "migrations",
        "testdata",
        "tools",
    ] {
        // Tests are not part of a program. The workspace's own path may contain any name.
        let files = WalkDir::new(workspace().join(part))
            .into_iter()
            .filter_entry(|entry| entry.file_name() != "tests");
        for entry in files {
            let Ok(entry) = entry else { continue };
            // Backup files of editors change a folder's time.
            if entry.file_type().is_file() {
                newest = newest.max(entry.metadata()?.modified()?);
            }
        }
    }
    Ok(newest)
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
