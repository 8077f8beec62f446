//! The folders of a cluster.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, Write as _},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crate::{ClusterError, account::Account};

/// The prefix of folders in which data are created.
const UNFINISHED: &str = "data.unfinished";
/// The lock file for starting and stopping the cluster.
const START_LOCK: &str = "start.lock";
/// The lock file that all programs share while they use the cluster.
const USERS_LOCK: &str = "users.lock";
const LOG: &str = "postgres.log";
const GITIGNORE: &str = ".gitignore";
/// The names of all files that Assay creates in a cluster's folder.
const CONTENTS: [&str; 7] = [
    "postgres",
    LOG,
    START_LOCK,
    USERS_LOCK,
    GITIGNORE,
    // The demonstration's note.
    "demo.json",
    "demo.json.unfinished",
];
/// How long a program waits for a lock before it logs that it waits.
const SILENT_WAIT: Duration = Duration::from_secs(2);
/// The interval between attempts to take a lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// Longest path of a socket. macOS allows 104 bytes with the final NUL, Linux 108.
const LONGEST_SOCKET_PATH: usize = 103;

/// The paths of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    base: PathBuf,
    socket_dir: PathBuf,
    pub(crate) account: Account,
}

impl Layout {
    /// The layout of the cluster in `dir`, which is created if it is missing. [`Layout::make_private`], under the
    /// start lock, creates the folders that only Postgres uses.
    pub(crate) fn of(dir: &Path) -> Result<Self, ClusterError> {
        let account = Account::of_server()?;
        let mut base = make(dir)?;
        let reached = if is_only_ours(&base) {
            // The folder itself gets its owner later.
            base.parent().is_none_or(|parent| account.reaches(parent))
        } else {
            account.reaches(&base)
        };
        if !reached {
            // Folders of root are closed to the user that Postgres runs as.
            base = make(&Path::new("/var/lib/assay").join(short_name(&base)))?;
        }
        let mut socket_dir = base.join("postgres").join("socket");
        if socket(&socket_dir).as_os_str().len() >= LONGEST_SOCKET_PATH {
            // The temporary folder of the environment is not used, because all programs must use the same one.
            socket_dir = Path::new("/tmp").join(format!("assay-{}", short_name(&base)));
        }
        Ok(Self {
            base,
            socket_dir,
            account,
        })
    }

    /// Closes the cluster's folders to other users. Requires the start lock: a new folder belongs to this
    /// program's user until it is given to Postgres' user, and another program would reject it meanwhile.
    pub(crate) fn make_private(&self) -> Result<(), ClusterError> {
        // The owner decides about the permissions of a folder with other files in it.
        if is_only_ours(&self.base) {
            self.account.give_ownership(&self.base)?;
            close(&self.base, 0o700, self.account)?;
        }
        private_dir(&self.base.join("postgres"), self.account)?;
        private_dir(&self.socket_dir, self.account)
    }

    /// The cluster's folder.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// The folder of Postgres' data.
    pub(crate) fn data(&self) -> PathBuf {
        self.base.join("postgres").join("data")
    }

    /// The folder in which `initdb` creates the data, which are moved into place when they are complete. Each program
    /// has its own. An `initdb` whose program was killed continues for a moment, and must not write into the data of
    /// the next one.
    pub(crate) fn unfinished_data(&self) -> PathBuf {
        let name = format!("{UNFINISHED}{}", std::process::id());
        self.base.join("postgres").join(name)
    }

    /// Folders of programs that were killed before their data were complete.
    pub(crate) fn abandoned_data(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.base.join("postgres")).into_iter().flatten();
        entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED))
            .map(|entry| entry.path())
            .collect()
    }

    /// The log of Postgres.
    pub(crate) fn log(&self) -> PathBuf {
        self.base.join(LOG)
    }

    /// The folder of the socket.
    pub(crate) fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// The socket.
    pub(crate) fn socket(&self) -> PathBuf {
        socket(&self.socket_dir)
    }

    /// Waits until no other program is starting or stopping the cluster, for at most `start_timeout`.
    pub(crate) fn lock_start(&self, start_timeout: Duration) -> Result<File, ClusterError> {
        self.lock(START_LOCK, start_timeout, File::try_lock)
    }

    /// Takes the shared lock of the programs that use the cluster. Requires the start lock.
    pub(crate) fn lock_users(&self, start_timeout: Duration) -> Result<File, ClusterError> {
        self.lock(USERS_LOCK, start_timeout, File::try_lock_shared)
    }

    fn lock(
        &self,
        name: &str,
        start_timeout: Duration,
        try_lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<File, ClusterError> {
        let path = self.base.join(name);
        let file = open_private(&path, self.account)?;
        let began = Instant::now();
        let mut is_silent = true;
        loop {
            match try_lock(&file) {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(source)) => return Err(ClusterError::io("lock", &path, source)),
                Err(TryLockError::WouldBlock) if began.elapsed() >= start_timeout => {
                    return Err(ClusterError::Locked {
                        file: path,
                        waited: start_timeout,
                    });
                }
                Err(TryLockError::WouldBlock) => {
                    if is_silent && began.elapsed() >= SILENT_WAIT {
                        is_silent = false;
                        log::warn!(
                            "waiting up to {} s for another program that starts or stops the private database in {}",
                            start_timeout.as_secs(),
                            self.base.display()
                        );
                    }
                    thread::sleep(RETRY_INTERVAL);
                }
            }
        }
    }
}

/// Opens a private file for appending, and creates it if it is missing. It is private, because every user who can
/// open a file can lock it.
pub(crate) fn open_private(path: &Path, account: Account) -> Result<File, ClusterError> {
    let failed = |source| ClusterError::io("open", path, source);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    if !account.owns(file.metadata().map_err(failed)?.uid()) {
        return Err(ClusterError::NotPrivate(path.to_path_buf()));
    }
    close(path, 0o600, account)?;
    Ok(file)
}

/// Removes every permission beyond `mode` from a file or folder.
fn close(path: &Path, mode: u32, account: Account) -> Result<(), ClusterError> {
    let failed = |source| ClusterError::io("change the permissions of", path, source);
    let meta = fs::metadata(path).map_err(failed)?;
    if account.owns(meta.uid()) && meta.mode() & 0o777 & !mode != 0 {
        fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
    }
    Ok(())
}

/// Creates a folder if it is missing, closed to other users and ignored by git, and returns its real path.
fn make(dir: &Path) -> Result<PathBuf, ClusterError> {
    let failed = |source| ClusterError::io("make the folder", dir, source);
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => ignore_in_git(dir)?,
        // It existed before, or another program created it in the meantime.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(failed(source)),
    }
    let real = dir
        .canonicalize()
        .map_err(|source| ClusterError::io("find the folder", dir, source))?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(failed(io::ErrorKind::NotADirectory.into()))
    }
}

/// Makes git ignore the contents of a new folder, except the files that belong to the sources.
fn ignore_in_git(dir: &Path) -> Result<(), ClusterError> {
    let path = dir.join(GITIGNORE);
    let mut options = OpenOptions::new();
    options
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(b"*\n!config.toml\n!renames\n"))
        .map_err(|source| ClusterError::io("write", &path, source))
}

/// Whether a folder has only files of Assay.
fn is_only_ours(dir: &Path) -> bool {
    let is_ours = |name: &OsStr| CONTENTS.iter().any(|ours| name == *ours);
    fs::read_dir(dir)
        .is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| is_ours(&entry.file_name()))))
}

fn socket(dir: &Path) -> PathBuf {
    dir.join(".s.PGSQL.5432")
}

/// Creates a folder that only the user may enter, or checks that an existing one is private.
fn private_dir(dir: &Path, account: Account) -> Result<(), ClusterError> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => account.give_ownership(dir),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let meta = fs::symlink_metadata(dir).map_err(|source| ClusterError::io("read", dir, source))?;
            if meta.is_dir() && meta.uid() == account.uid && meta.mode() & 0o077 == 0 {
                Ok(())
            } else {
                Err(ClusterError::NotPrivate(dir.to_path_buf()))
            }
        }
        Err(source) => Err(ClusterError::io("make the folder", dir, source)),
    }
}

/// A short name for a path: its FNV-1a hash, the same in every build of every program.
fn short_name(path: &Path) -> String {
    let hash = path
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!("{hash:016x}")
}
