//! Why there is no cluster.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// Why the private cluster could not be started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// There are no Postgres programs of a sufficient version.
    #[error(
        "Postgres 15 or newer was not found{}; install it ({}), set PG_BIN to the folder of its programs, or set \
         ASSAY_DATABASE_URL to use a database of your own",
        found.as_ref().map(|found| format!(" (only {found})")).unwrap_or_default(),
        install.as_deref().unwrap_or("apt-get install -y postgresql")
    )]
    NotFound {
        /// What was found instead.
        found: Option<String>,
        /// The command that installs it here.
        install: Option<String>,
    },
    /// The folder that `PG_BIN` names is not one of Postgres' programs, or of a version that does not do.
    #[error(
        "PG_BIN names {}, which holds {}, where Postgres {needed} is needed; name the folder of its `postgres` and \
         `initdb`, or unset PG_BIN to have it searched for",
        folder.display(),
        found.map_or_else(|| "no programs of Postgres".to_owned(), |major| format!("Postgres {major}"))
    )]
    NamedFolder {
        /// The folder.
        folder: PathBuf,
        /// The major version of what lies there.
        found: Option<u32>,
        /// The version that would do.
        needed: String,
    },
    /// The data were written by a version of Postgres that is not installed.
    #[error("the data in {} need Postgres {needed}, which is not installed; set PG_BIN to the folder of its programs", data.display())]
    OtherVersion {
        /// The version.
        needed: String,
        /// Where the data lie.
        data: PathBuf,
    },
    /// A file or folder could not be made or read.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A folder for the socket exists and is not this user's alone.
    #[error("the folder {} for the database's socket is not private to its user", .0.display())]
    SocketDirNotPrivate(PathBuf),
    /// This program runs as root, and no other user exists that Postgres could run as.
    #[error("Postgres refuses to run as root, and there is no user `postgres` or `nobody` to run it as")]
    NoAccount,
    /// A Postgres program failed.
    #[error("{program} failed: {output}")]
    Program {
        /// Its name.
        program: &'static str,
        /// The end of what it wrote.
        output: String,
    },
    /// Postgres did not answer in time.
    #[error("Postgres did not answer within {} s; its log is {}: {output}", waited.as_secs(), log.display())]
    NoAnswer {
        /// How long it was waited for.
        waited: Duration,
        /// Its log.
        log: PathBuf,
        /// The end of the log.
        output: String,
    },
    /// Postgres did not stop in time.
    #[error("Postgres (process {pid}) did not stop within {} s", waited.as_secs())]
    NotStopped {
        /// Its process id.
        pid: i32,
        /// How long it was waited for.
        waited: Duration,
    },
    /// There is no package manager that is known here.
    #[error("none of apt-get, dnf, apk and brew was found to install Postgres with")]
    NoInstaller,
}

impl ClusterError {
    /// A failure of `doing` something on `path`.
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            doing,
            path: path.to_path_buf(),
            source,
        }
    }
}
