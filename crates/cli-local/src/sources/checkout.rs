//! The checkout of the tested sources.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use assay_cli_terminal::progress::Progress;
use assay_domain::test::TestName;
use assay_ingest::ci::CiContext;
use assay_reports::{Format, KnownFiles, Options, SourceFile};
use walkdir::WalkDir;

use crate::sources::{files, git::git};

/// The maximum number of files of a checkout that are read.
const MOST_FILES: usize = 500_000;
/// Folders without sources of the project.
const FOREIGN: &[&str] = &["node_modules", "target", "build", "dist", "vendor", "__pycache__"];

/// The tests of reports, each under the file that is shown for it.
pub fn tests_of_reports(
    progress: &dyn Progress,
    root: &Path,
    paths: &[PathBuf],
) -> anyhow::Result<Vec<TestName>> {
    let sources = files::read(progress, paths, None)?;
    let checkout = Checkout::of(Some(root), &CiContext::default())?;
    let known_files = checkout.known_files(None, &sources);
    let options = checkout.options(None, known_files.as_ref());
    let report = assay_reports::read(&sources, &options)?;
    let shown = |test: assay_reports::ReportedTest| TestName {
        name: test.test.name,
        file_path: test.shown_as.file_path.or(test.test.file_path),
    };
    Ok(report.tests.into_iter().map(shown).collect())
}

/// The checkout's root, if it is known.
pub struct Checkout {
    /// As reports write it: absolute.
    root: Option<String>,
    /// The folder of the sources, if it exists on this machine.
    folder: Option<PathBuf>,
}

impl Checkout {
    /// The checkout from the flag, else CI's workspace, else for absolute paths that of git around the current folder. The
    /// flag may name a folder of another machine, as a report that was written there contains it.
    pub fn of(flag: Option<&Path>, ci: &CiContext) -> anyhow::Result<Self> {
        let root = match flag {
            Some(root) if root.is_dir() => {
                Some(fs::canonicalize(root).with_context(|| format!("--root {}", root.display()))?)
            }
            Some(root) => Some(root.to_path_buf()),
            None => ci.workspace_root.as_deref().map(PathBuf::from),
        };
        let folder = root.clone().filter(|root| root.is_dir());
        let of_git = || {
            let root = git(Path::new("."), &["rev-parse", "--show-toplevel"]).ok();
            root.map(|root| root.trim().to_owned())
        };
        Ok(Self {
            root: root.map(|root| root.display().to_string()).or_else(of_git),
            folder,
        })
    }

    /// The read options for these files.
    pub fn options<'a>(&'a self, format: Option<Format>, known_files: Option<&'a KnownFiles>) -> Options<'a> {
        Options {
            format,
            root: self.root.as_deref(),
            known_files,
            ..Options::default()
        }
    }

    /// The folder of the sources, if it is known and exists on this machine.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Its root as reports write it, if it is known.
    pub fn root(&self) -> Option<&str> {
        self.root.as_deref()
    }

    /// The checkout's files, if a report needs them because it names classes instead of files.
    pub fn known_files(&self, format: Option<Format>, files: &[SourceFile]) -> Option<KnownFiles> {
        Some(self.file_names(format, files)?.into_iter().collect())
    }

    /// The names of the checkout's files relative to its root, if a report needs them.
    pub fn file_names(&self, format: Option<Format>, files: &[SourceFile]) -> Option<Vec<String>> {
        let looks_up_files = |file: &SourceFile| {
            format
                .or_else(|| assay_reports::looks_like_report(&file.bytes))
                .is_some_and(Format::looks_up_files)
        };
        let folder = self.folder.as_ref()?;
        files.iter().any(looks_up_files).then(|| sources(folder))
    }
}

/// The files below a folder, relative to it.
pub fn sources(folder: &Path) -> Vec<String> {
    WalkDir::new(folder)
        .into_iter()
        .filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            entry.depth() == 0 || !(name.starts_with('.') || FOREIGN.contains(&name.as_ref()))
        })
        // A folder without read permission has no source that a report could name.
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .take(MOST_FILES)
        .filter_map(|entry| Some(entry.path().strip_prefix(folder).ok()?.display().to_string()))
        .collect()
}
