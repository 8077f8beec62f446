//! A worktree in which commits run.

use std::path::{Path, PathBuf};

use assay_cli_local::sources::git::git;
use assay_cli_terminal::progress::Progress;

use crate::culprit::SearchError;

/// A worktree of a repository, removed at the end.
pub(crate) struct Worktree<'a> {
    progress: &'a dyn Progress,
    /// Holds the folder of the worktree.
    _parent: tempfile::TempDir,
    folder: PathBuf,
    repository: PathBuf,
}

impl<'a> Worktree<'a> {
    pub(crate) fn new(
        progress: &'a dyn Progress,
        repository: &Path,
        commit: &str,
    ) -> Result<Self, SearchError> {
        let parent = tempfile::tempdir().map_err(SearchError::Folder)?;
        let folder = parent.path().join("worktree");
        let name = folder.display().to_string();
        git(
            repository,
            &[
                "worktree",
                "add",
                "--quiet",
                "--detach",
                "--end-of-options",
                &name,
                commit,
            ],
        )?;
        Ok(Self {
            progress,
            _parent: parent,
            folder,
            repository: repository.to_path_buf(),
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn check_out(&self, commit: &str) -> Result<(), SearchError> {
        git(
            &self.folder,
            &["checkout", "--quiet", "--force", "--detach", commit, "--"],
        )?;
        Ok(())
    }
}

impl Drop for Worktree<'_> {
    fn drop(&mut self) {
        let name = self.folder.display().to_string();
        if let Err(error) = git(&self.repository, &["worktree", "remove", "--force", &name]) {
            self.progress
                .note(&format!("the worktree is not removed: {error}"));
        }
    }
}
