//! The reports that a command has written since its start.

use std::{
    collections::HashMap,
    fs::Metadata,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context as _, bail};
use assay_cli_terminal::progress::Progress;
use assay_reports::{Format, SourceFile, shown_path};

use crate::sources::files::{self, ByteBudget, Candidate};

/// Where test runners write their reports, in the order of search. A folder is walked.
const USUAL_PLACES: [&str; 22] = [
    "junit.xml",
    "report.xml",
    "results.xml",
    "test-results.xml",
    "junit-report.xml",
    "nosetests.xml",
    "output.xml",
    "results.json",
    "report.json",
    "test-results.json",
    "test-results",
    "test-reports",
    "reports",
    "TestResults",
    "*/TestResults",
    "target/surefire-reports",
    "*/target/surefire-reports",
    "build/test-results",
    "*/build/test-results",
    "target/nextest",
    "allure-results",
    "playwright-report",
];
/// How many found reports a message names.
const MOST_NAMED: usize = 5;

/// The inode, size and modification time of a file. Writing the file changes at least one of them.
type State = (u64, u64, SystemTime);

fn state(path: &Path) -> Option<State> {
    let metadata = path.metadata().ok()?;
    Some((inode(&metadata), metadata.len(), metadata.modified().ok()?))
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

/// Windows has no inodes.
#[cfg(not(unix))]
const fn inode(_: &Metadata) -> u64 {
    0
}

/// The files that existed before a command. A later comparison with their states is exact. A comparison with a clock is
/// not, because the clock of a file system differs and is coarser.
pub struct Before<'a> {
    /// The reports that the user named; none for the usual places.
    named: &'a [PathBuf],
    states: HashMap<PathBuf, State>,
}

impl<'a> Before<'a> {
    /// Looks at the files now. Folders that cannot be read are named once, after the command.
    pub fn of(named: &'a [PathBuf]) -> anyhow::Result<Self> {
        let (existing, _) = files::existing(&places(named))?;
        let states = existing
            .iter()
            .filter_map(|candidate| Some((candidate.path.clone(), state(&candidate.path)?)))
            .collect();
        Ok(Self { named, states })
    }

    /// Reads the reports that were written since. Without named reports, those of the first usual place that has one.
    pub fn read_written(
        &self,
        progress: &dyn Progress,
        format: Option<Format>,
    ) -> anyhow::Result<Vec<SourceFile>> {
        self.read_new(progress, format).context("nothing was stored")
    }

    fn read_new(&self, progress: &dyn Progress, format: Option<Format>) -> anyhow::Result<Vec<SourceFile>> {
        if self.named.is_empty() {
            return self.read_usual(progress, format);
        }
        let (existing, unreadable) = files::existing(self.named)?;
        unreadable.note(progress);
        let (new, old) = self.partition(existing);
        if new.is_empty() {
            let patterns: Vec<_> = self.named.iter().map(|path| shown_path(path)).collect();
            let patterns = patterns.join(", ");
            match old.len() {
                0 => bail!("the command wrote no report: no file matches {patterns}"),
                count => bail!(
                    "the command wrote no report: of {patterns} there {} from before the start",
                    match count {
                        1 => "is only one file".to_owned(),
                        count => format!("are only {count} files"),
                    }
                ),
            }
        }
        files::read_candidates(progress, &new, self.named, format)
    }

    /// The reports that the user named by their paths and that were not written, as empty files. Reading takes each for the
    /// report of a reporter that never ran.
    pub fn missing(&self) -> impl Iterator<Item = SourceFile> {
        let is_missing = |path: &&PathBuf| {
            let is_pattern = path.to_string_lossy().contains(['*', '?', '[']);
            !is_pattern && !path.is_dir() && !self.is_written(path)
        };
        self.named.iter().filter(is_missing).map(|path| not_written(path))
    }

    /// As [`Self::read_written`], of a command that failed: if it wrote nothing, an empty report, so that its failure is
    /// stored.
    pub fn read_written_of_failed(
        &self,
        progress: &dyn Progress,
        format: Option<Format>,
    ) -> anyhow::Result<Vec<SourceFile>> {
        match self.read_new(progress, format) {
            Err(error) if self.written()?.is_empty() => {
                progress.note(&error.to_string());
                let names_file = self.missing().next().is_some();
                let report = (!names_file).then(|| not_written(Path::new("report")));
                Ok(report.into_iter().collect())
            }
            read => read.context("nothing was stored"),
        }
    }

    /// The files that were written since, among the named reports or in all usual places.
    pub fn written(&self) -> anyhow::Result<Vec<PathBuf>> {
        let (existing, _) = files::existing(&places(self.named))?;
        let (new, _) = self.partition(existing);
        Ok(new.into_iter().map(|candidate| candidate.path).collect())
    }

    fn read_usual(&self, progress: &dyn Progress, format: Option<Format>) -> anyhow::Result<Vec<SourceFile>> {
        for place in places(&[]) {
            let (existing, _) = files::existing(&[place])?;
            let budget = ByteBudget::default();
            let is_report = |bytes: &[u8]| assay_reports::looks_like_report(bytes).is_some();
            let mut reports = Vec::new();
            for candidate in self.partition(existing).0 {
                // A file that cannot be read was not named, so it is none of the report's.
                reports.extend(
                    candidate
                        .read_if(|bytes| format.is_some() || is_report(bytes), &budget)
                        .ok()
                        .flatten(),
                );
            }
            if !reports.is_empty() {
                let names: Vec<_> = reports
                    .iter()
                    .take(MOST_NAMED)
                    .map(|report| report.name.as_str())
                    .collect();
                let more = match reports.len().saturating_sub(MOST_NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                progress.note(&format!(
                    "found the report {}{more}; --report names another one",
                    names.join(", ")
                ));
                return Ok(reports);
            }
        }
        bail!(
            "the command wrote no report in a usual place, such as junit.xml, results.json, test-results or \
             target/surefire-reports; name it with --report"
        )
    }

    /// The files that were written since, and the others.
    fn partition(&self, existing: Vec<Candidate>) -> (Vec<Candidate>, Vec<Candidate>) {
        existing
            .into_iter()
            .partition(|candidate| self.is_written(&candidate.path))
    }

    fn is_written(&self, path: &Path) -> bool {
        state(path).is_some_and(|now| self.states.get(path) != Some(&now))
    }
}

/// A report that was not written, as an empty file.
fn not_written(path: &Path) -> SourceFile {
    SourceFile {
        name: shown_path(path),
        bytes: Vec::new(),
        modified: None,
    }
}

/// The named places, else the usual ones.
fn places(named: &[PathBuf]) -> Vec<PathBuf> {
    match named {
        [] => USUAL_PLACES.map(PathBuf::from).to_vec(),
        named => named.to_vec(),
    }
}
