//! The folders of a cluster.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use crate::{ClusterError, account::Account};

/// How the name of a folder begins in which data are made.
const UNFINISHED: &str = "data.unfinished";
/// What a socket's path may be long at most, its final NUL included; macOS allows 104, Linux 108.
const LONGEST_SOCKET_PATH: usize = 103;

/// Where the parts of a cluster lie.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    base: PathBuf,
    socket_dir: PathBuf,
    pub(crate) account: Account,
}

impl Layout {
    /// The layout of the cluster in `dir`, which is made if it is not there. What only Postgres uses is made by
    /// [`Layout::make_private`], behind the gate.
    pub(crate) fn of(dir: &Path) -> Result<Self, ClusterError> {
        let make = |dir: &Path| {
            fs::create_dir_all(dir).map_err(|source| ClusterError::io("make the folder", dir, source))?;
            dir.canonicalize()
                .map_err(|source| ClusterError::io("find the folder", dir, source))
        };
        let account = Account::of_server()?;
        let mut base = make(dir)?;
        if !account.reaches(&base) {
            // Root's own folders are closed to the user that Postgres runs as.
            base = make(&Path::new("/var/lib/assay").join(short_name(&base)))?;
        }
        let mut socket_dir = base.join("postgres").join("socket");
        if socket(&socket_dir).as_os_str().len() >= LONGEST_SOCKET_PATH {
            // Not the environment's temporary folder: every program must come to the same place.
            socket_dir = Path::new("/tmp").join(format!("assay-{}", short_name(&base)));
        }
        Ok(Self {
            base,
            socket_dir,
            account,
        })
    }

    /// Makes the folders that only Postgres's user may enter. To be called behind the gate: between being made and
    /// being given to that user, a folder looks like a stranger's to another program.
    pub(crate) fn make_private(&self) -> Result<(), ClusterError> {
        private_dir(&self.base.join("postgres"), self.account)?;
        private_dir(&self.socket_dir, self.account)
    }

    /// The cluster's folder.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// The folder that Postgres keeps its data in.
    pub(crate) fn data(&self) -> PathBuf {
        self.base.join("postgres").join("data")
    }

    /// Where `initdb` makes the data, which are moved into place once they are whole. Each program has a place of its own:
    /// an `initdb` whose program was killed goes on for a moment and must not write into what the next one makes.
    pub(crate) fn unfinished_data(&self) -> PathBuf {
        let name = format!("{UNFINISHED}{}", std::process::id());
        self.base.join("postgres").join(name)
    }

    /// What programs left behind that were killed before their data were whole.
    pub(crate) fn abandoned_data(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.base.join("postgres")).into_iter().flatten();
        entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED))
            .map(|entry| entry.path())
            .collect()
    }

    /// What Postgres says.
    pub(crate) fn log(&self) -> PathBuf {
        self.base.join("postgres.log")
    }

    /// The folder of the socket.
    pub(crate) fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// The socket.
    pub(crate) fn socket(&self) -> PathBuf {
        socket(&self.socket_dir)
    }

    /// Waits until no other program is starting or stopping the cluster.
    pub(crate) fn lock_gate(&self) -> Result<File, ClusterError> {
        let gate = self.open_lock("start.lock")?;
        gate.lock()
            .map_err(|source| ClusterError::io("lock", &self.base, source))?;
        Ok(gate)
    }

    /// Opens a file to be locked.
    pub(crate) fn open_lock(&self, name: &str) -> Result<File, ClusterError> {
        let path = self.base.join(name);
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|source| ClusterError::io("open", &path, source))
    }
}

fn socket(dir: &Path) -> PathBuf {
    dir.join(".s.PGSQL.5432")
}

/// Makes a folder that only the user may enter, or checks that an existing one is such.
fn private_dir(dir: &Path, account: Account) -> Result<(), ClusterError> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => account.give(dir),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let meta = fs::symlink_metadata(dir).map_err(|source| ClusterError::io("read", dir, source))?;
            if meta.is_dir() && meta.uid() == account.uid && meta.mode() & 0o077 == 0 {
                Ok(())
            } else {
                Err(ClusterError::SocketDirNotPrivate(dir.to_path_buf()))
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
