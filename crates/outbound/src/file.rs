//! The operator's files, in which services are named.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Largest file, in bytes.
const LARGEST_FILE: u64 = 256 << 10;

/// Why a file is not accepted. The text has no secret.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{0} cannot be read: {1}")]
    Unreadable(PathBuf, io::Error),
    /// Other users of the machine can read a secret.
    #[error("{0} has secrets, and other users can read it; run `chmod 600 {0}`")]
    Exposed(PathBuf),
    /// It is too large.
    #[error("{0} is larger than 256 KiB")]
    TooLarge(PathBuf),
    /// Something in it is wrong; the text begins with its path.
    #[error("{0}")]
    Invalid(String),
}

impl FileError {
    /// Something is wrong at a byte of a file with this text.
    pub fn at(path: &Path, text: &str, byte: usize, problem: &str) -> Self {
        let before = text.get(..byte).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Self::Invalid(format!("{}:{line}: {problem}", path.display()))
    }
}

/// Reads a file.
///
/// # Errors
/// If it cannot be read or is too large.
pub fn read_file(path: &Path) -> Result<String, FileError> {
    read(path, false)
}

/// Reads a file that only its owner can read.
///
/// # Errors
/// As [`read_file`], or if others can read it.
pub fn read_secret_file(path: &Path) -> Result<String, FileError> {
    read(path, true)
}

fn read(path: &Path, is_secret: bool) -> Result<String, FileError> {
    let unreadable = |error| FileError::Unreadable(path.to_owned(), error);
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    if is_secret && mode & 0o077 != 0 {
        return Err(FileError::Exposed(path.to_owned()));
    }
    let mut text = String::new();
    let length = file.take(LARGEST_FILE + 1).read_to_string(&mut text);
    match u64::try_from(length.map_err(unreadable)?).is_ok_and(|length| length <= LARGEST_FILE) {
        true => Ok(text),
        false => Err(FileError::TooLarge(path.to_owned())),
    }
}
