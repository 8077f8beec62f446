//! Writes a history as CSV, one attempt a row, as `assay analyze` reads it.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use assay_domain::recording::Recording;
use csv::Writer;
use tempfile::TempPath;

const COLUMNS: &str =
    "test,file,run,started_at,branch,revision,variant,execution,retry,status,duration_ms,error,merge";
/// The most characters of an error that are written.
const LONGEST_ERROR: usize = 2_000;

/// A history that is being written. A file that was there before stays until the new one is complete.
pub struct HistoryWriter {
    rows: Writer<File>,
    path: PathBuf,
    /// The file beside it. A pipe has none.
    unfinished: Option<TempPath>,
}

impl HistoryWriter {
    /// Writes the header.
    pub fn create(path: &Path) -> io::Result<Self> {
        // A link keeps its place.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (file, unfinished) = match path.exists() && !path.is_file() {
            true => (File::create(&path)?, None),
            false => {
                let folder = path.parent().unwrap_or(Path::new(""));
                let beside = tempfile::Builder::new().make_in(folder, |path| File::create_new(path))?;
                let (file, path) = beside.into_parts();
                (file, Some(path))
            }
        };
        let mut rows = Writer::from_writer(file);
        rows.write_record(COLUMNS.split(','))?;
        Ok(Self {
            rows,
            path,
            unfinished,
        })
    }

    /// Writes the attempts of a report.
    pub fn add(&mut self, recording: &Recording) -> Result<(), csv::Error> {
        let context = &recording.context;
        let run = recording.run_key.replace('\t', " ");
        let start = recording.started_at.to_string();
        for test in &recording.tests {
            for (execution, retry, attempt) in test.attempts.numbered() {
                let attempt = &attempt.attempt;
                let message = attempt.errors.first().and_then(|error| error.message.as_deref());
                let error: String = message.unwrap_or_default().chars().take(LONGEST_ERROR).collect();
                self.rows.serialize((
                    &test.test.name,
                    &test.test.file_path,
                    &run,
                    &start,
                    &context.branch,
                    context.revision(),
                    &context.suite,
                    execution,
                    retry,
                    attempt.status.as_str(),
                    attempt.duration_ms,
                    error,
                    context.merge(),
                ))?;
            }
        }
        Ok(())
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<()> {
        self.rows.flush()?;
        match self.unfinished {
            Some(file) => Ok(file.persist(self.path)?),
            None => Ok(()),
        }
    }
}
