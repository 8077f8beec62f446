//! The default folder of the private cluster.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::account::Account;

/// The nearest folder of this name in `from` or above it, or else a new one in `from`.
///
/// A folder of another user is skipped, since that user could have created it as a trap.
pub fn nearest(name: &str, from: &Path) -> PathBuf {
    let account = Account::of_server().ok();
    let is_usable = |dir: &PathBuf| {
        fs::metadata(dir)
            .is_ok_and(|meta| meta.is_dir() && account.is_some_and(|account| account.owns(meta.uid())))
    };
    from.ancestors()
        .map(|folder| folder.join(name))
        .find(is_usable)
        .unwrap_or_else(|| from.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_existing_folder_above_is_used_before_a_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        assert_eq!(nearest(".assay-t", &deep), deep.join(".assay-t"));
        fs::create_dir(dir.path().join(".assay-t")).unwrap();
        assert_eq!(nearest(".assay-t", &deep), dir.path().join(".assay-t"));
        fs::create_dir(dir.path().join("a/.assay-t")).unwrap();
        assert_eq!(nearest(".assay-t", &deep), dir.path().join("a/.assay-t"));
        fs::write(deep.join(".assay-t"), "a file").unwrap();
        assert_eq!(nearest(".assay-t", &deep), dir.path().join("a/.assay-t"));
    }

    #[test]
    fn a_folder_of_another_user_is_passed_over() {
        if !rustix::process::geteuid().is_root() {
            return; // Only root can give a folder away.
        }
        let dir = tempfile::tempdir().unwrap();
        let folder_of_other_user = dir.path().join(".assay-t");
        fs::create_dir(&folder_of_other_user).unwrap();
        std::os::unix::fs::chown(&folder_of_other_user, Some(54_321), Some(54_321)).unwrap();
        let below = dir.path().join("below");
        fs::create_dir(&below).unwrap();
        assert_eq!(nearest(".assay-t", &below), below.join(".assay-t"));
    }
}
