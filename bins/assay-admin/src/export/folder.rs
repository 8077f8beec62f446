//! The folder of an export: names of files, what an earlier export left there, and the current piece.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use assay_answers::failures::ExplainedFailure;
use assay_domain::id::ProjectId;
use assay_repository::ExportedRun;
use rustix::fs::{FlockOperation, flock};

use super::{
    Format, Table, TableFile,
    table::{ATTEMPTS, FAILURES, OF_PIECE, RESULTS, RUNS, failure_row},
};

/// The file with the id of the project and the format. The numbers of runs and tests are those of one project.
const PROJECT: &str = "project";
/// A part of the name of a file until it is complete.
const UNFINISHED: &str = "unfinished";

/// A folder that this process alone exports to.
pub(crate) struct ExportFolder {
    path: PathBuf,
    format: Format,
    /// Locked until it is closed.
    lock: File,
}

/// The numbers of completed files, of their bytes, and of the rows of each table.
pub(crate) type Written = BTreeMap<&'static str, u64>;

impl ExportFolder {
    /// Prepares a folder for an export of a project that goes on after a run. Removes the files of a piece that was not
    /// completed.
    ///
    /// # Errors
    /// If another export writes there, or if the folder already has the run or another project.
    pub(crate) fn open(
        path: &Path,
        format: Format,
        project: ProjectId,
        after: Option<i32>,
    ) -> anyhow::Result<Self> {
        let text = path.display();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("could not make the folder {text}; name another one"))?;
        let lock = File::open(path).with_context(|| format!("could not open the folder {text}"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).with_context(|| {
            format!("another export is writing to {text}; wait until it ends, or name another folder")
        })?;
        let folder = Self {
            path: path.to_owned(),
            format,
            lock,
        };
        let id = path.join(PROJECT);
        let own = format!("{project}\n{}\n", format.extension());
        match fs::read_to_string(&id) {
            Ok(known) => ensure!(
                known == own,
                "{text} has an export of another project or in another format; name a new folder"
            ),
            Err(_) => {
                fs::write(&id, own).with_context(|| format!("could not write {}", id.display()))?;
            }
        }
        let pieces = folder.pieces()?;
        let of_runs = pieces.iter().filter(|(table, ..)| **table == RUNS);
        let last = of_runs.map(|(_, number, _)| *number).max();
        if let Some(last) = last {
            ensure!(
                after.is_some_and(|after| after >= last),
                "{text} has an export up to run {last}; to go on after it, add --after {last}, else name a new folder"
            );
        }
        for (_, number, file) in &pieces {
            if last.is_none_or(|last| *number > last) {
                fs::remove_file(file).with_context(|| format!("could not remove {}", file.display()))?;
            }
        }
        Ok(folder)
    }

    /// The files of pieces: table, number of the last run, and path.
    fn pieces(&self) -> anyhow::Result<Vec<(&'static Table, i32, PathBuf)>> {
        let mut pieces = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let file = entry?.path();
            let number = |table: &Table| {
                let name = file.file_name()?.to_str()?;
                let number = name.strip_prefix(table.name)?.strip_prefix('-')?;
                let number = number.strip_suffix(self.format.extension())?.strip_suffix('.')?;
                number.parse().ok()
            };
            let piece = OF_PIECE
                .into_iter()
                .find_map(|table| Some((table, number(table)?)));
            if let Some((table, number)) = piece {
                pieces.push((table, number, file));
            }
        }
        Ok(pieces)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.{}", self.format.extension()))
    }

    /// A new file of a table.
    pub(crate) fn create(&self, table: &'static Table) -> anyhow::Result<TableFile> {
        let path = self.file(&format!("{}.{UNFINISHED}", table.name));
        TableFile::create(path, table, self.format)
    }

    /// Completes a file under this name, in the place of an earlier one.
    pub(crate) fn finish(&self, file: TableFile, name: &str, written: &mut Written) -> anyhow::Result<()> {
        *written.entry(file.table().name).or_default() += file.rows();
        *written.entry("files").or_default() += 1;
        *written.entry("bytes").or_default() += file.finish(&self.file(name))?;
        // The name is on disk before that of the next file.
        Ok(self.lock.sync_all()?)
    }
}

/// The files of the current piece, in the order of [`OF_PIECE`].
pub(crate) struct Piece<'a> {
    folder: &'a ExportFolder,
    files: Vec<TableFile>,
}

impl<'a> Piece<'a> {
    /// An empty piece, with or without failures.
    pub(crate) fn create(folder: &'a ExportFolder, has_failures: bool) -> anyhow::Result<Self> {
        let tables = OF_PIECE.into_iter();
        let tables = tables.filter(|table| has_failures || **table != FAILURES);
        let files = tables
            .map(|table| folder.create(table))
            .collect::<Result<_, _>>()?;
        Ok(Self { folder, files })
    }

    /// Adds a run. Returns the number of results of the piece.
    pub(crate) fn push(&mut self, run: ExportedRun, failures: Vec<ExplainedFailure>) -> anyhow::Result<u64> {
        let failures = failures
            .into_iter()
            .map(|failure| failure_row(&run.key, failure))
            .collect();
        for (table, rows) in [
            (&RESULTS, run.results),
            (&ATTEMPTS, run.attempts),
            (&FAILURES, failures),
            (&RUNS, vec![run.run]),
        ] {
            if let Some(file) = self.files.iter_mut().find(|file| file.table() == table) {
                rows.into_iter().try_for_each(|row| file.push(row))?;
            }
        }
        Ok(self.files.first().map_or(0, TableFile::rows))
    }

    /// Completes the files. `last` is the number of the last run of the piece.
    pub(crate) fn finish(self, last: i32, written: &mut Written) -> anyhow::Result<()> {
        for file in self.files {
            let name = format!("{}-{last:010}", file.table().name);
            self.folder.finish(file, &name, written)?;
        }
        Ok(())
    }
}
