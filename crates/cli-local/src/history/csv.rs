//! Writes a history as CSV, one attempt a row, as `assay analyze` reads it.

use std::io::Write;

use assay_domain::recording::Recording;
use csv::Writer;

const COLUMNS: &str =
    "test,file,run,started_at,branch,revision,variant,execution,retry,status,duration_ms,error";
/// The most characters of an error that are written.
const LONGEST_ERROR: usize = 2_000;

/// A history that is being written.
pub struct HistoryWriter<W: Write>(Writer<W>);

impl<W: Write> HistoryWriter<W> {
    /// Writes the header.
    pub fn new(out: W) -> Result<Self, csv::Error> {
        let mut writer = Writer::from_writer(out);
        writer.write_record(COLUMNS.split(','))?;
        Ok(Self(writer))
    }

    /// Writes the attempts of a report.
    pub fn add(&mut self, recording: &Recording) -> Result<(), csv::Error> {
        let context = &recording.context;
        let run = recording.run_key.replace('\t', " ");
        let start = recording.started_at.to_string();
        for test in &recording.tests {
            for (execution, attempts) in test.attempts.executions().enumerate() {
                for (retry, attempt) in attempts.iter().enumerate() {
                    let attempt = &attempt.attempt;
                    let message = attempt.errors.first().and_then(|error| error.message.as_deref());
                    let error: String = message.unwrap_or_default().chars().take(LONGEST_ERROR).collect();
                    self.0.serialize((
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
                    ))?;
                }
            }
        }
        Ok(())
    }

    /// Writes what is left.
    pub fn finish(mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
