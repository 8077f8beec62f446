//! Errors of the cluster.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

/// The reason why the private cluster could not be started or stopped.
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
        /// The unsuitable version that was found, in words.
        found: Option<String>,
        /// The command that installs it on this system.
        install: Option<String>,
    },
    /// The folder in `PG_BIN` has no Postgres programs, or an unsuitable version.
    #[error(
        "PG_BIN names {}, which holds {}, where Postgres {needed} is needed; name the folder of its `postgres` and \
         `initdb`, or unset PG_BIN to search for them",
        folder.display(),
        found.map_or_else(|| "no programs of Postgres".to_owned(), |major| format!("Postgres {major}"))
    )]
    NamedFolder {
        /// The folder.
        folder: PathBuf,
        /// The major version found there.
        found: Option<u32>,
        /// The required version.
        needed: String,
    },
    /// The data were written by a version of Postgres that is not installed.
    #[error("the data in {} need Postgres {needed}, which is not installed; set PG_BIN to the folder of its programs", data.display())]
    OtherVersion {
        /// The version.
        needed: String,
        /// The folder of the data.
        data: PathBuf,
    },
    /// A file or folder could not be created or read.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// Its file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file or folder of the cluster exists but is not private to the cluster's user.
    #[error(
        "{} belongs to another user, or other users may enter it; make the user that runs Postgres its only user (chown, \
         chmod go-rwx)",
        .0.display()
    )]
    NotPrivate(PathBuf),
    /// Another program holds a lock of the cluster for too long.
    #[error(
        "another program has held {} for {} s: it starts or stops the private database, or it hangs; find it with \
         `fuser {}`, end it, and try again",
        file.display(), waited.as_secs(), file.display()
    )]
    Locked {
        /// The lock's file.
        file: PathBuf,
        /// The waiting time.
        waited: Duration,
    },
    /// This program runs as root, and there is no other user for Postgres.
    #[error(
        "Postgres refuses to run as root, and there is no user `postgres` to run it as; create that user with \
         `useradd --system --user-group postgres`, or start this program as another user"
    )]
    NoAccount,
    /// The data cannot be used.
    #[error(
        "the private database in {} is damaged: {reason}; restore a backup of that folder, or move the folder away to \
         begin with an empty database (the log is {})",
        data.display(), log.display()
    )]
    Damaged {
        /// The folder of the data.
        data: PathBuf,
        /// Postgres' output.
        reason: String,
        /// Its log.
        log: PathBuf,
    },
    /// Postgres exited before it answered.
    #[error("Postgres ended while it started; its log is {}: {output}", log.display())]
    Ended {
        /// Its log.
        log: PathBuf,
        /// The end of the log.
        output: String,
    },
    /// A Postgres program failed.
    #[error("{program} failed ({status}): {output}")]
    Program {
        /// Its name.
        program: &'static str,
        /// Its exit status.
        status: ExitStatus,
        /// The end of its output.
        output: String,
    },
    /// Postgres did not answer in time.
    #[error("Postgres did not answer within {} s; its log is {}: {output}", waited.as_secs(), log.display())]
    NoAnswer {
        /// The waiting time.
        waited: Duration,
        /// Its log.
        log: PathBuf,
        /// The end of the log.
        output: String,
    },
    /// Postgres did not stop in time.
    #[error("Postgres (process {pid}) did not stop within {} s; stop it with `kill -INT {pid}`", waited.as_secs())]
    NotStopped {
        /// Its process id.
        pid: i32,
        /// The waiting time.
        waited: Duration,
    },
}

/// Advice for a folder that cannot be used.
const OTHER_FOLDER: &str = "name a folder of your own with --data-dir (ASSAY_DATA_DIR), or a database with --database-url \
                            (ASSAY_DATABASE_URL)";

impl ClusterError {
    /// Advice that the message does not contain.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::NotPrivate(_) => Some(OTHER_FOLDER),
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied
                    | io::ErrorKind::ReadOnlyFilesystem
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::AlreadyExists
                    | io::ErrorKind::NotFound
            )
            .then_some(OTHER_FOLDER),
            Self::NotFound { .. }
            | Self::NamedFolder { .. }
            | Self::OtherVersion { .. }
            | Self::Locked { .. }
            | Self::NoAccount
            | Self::Damaged { .. }
            | Self::Ended { .. }
            | Self::Program { .. }
            | Self::NoAnswer { .. }
            | Self::NotStopped { .. } => None,
        }
    }

    /// A failure of the operation `doing` on `path`.
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            doing,
            path: path.to_path_buf(),
            source,
        }
    }
}
