//! The import use case.
//!
//! Combines a parsed report, flags and CI's variables into one [`Recording`], with the source of every value. The store
//! then writes the results and all derived data in one transaction. The last of several imports judges the project.
//! This crate opens no files and reads neither the environment nor a clock.
//!
//! [`Recording`]: assay_domain::recording::Recording

mod artifacts;
mod bounds;
mod choice;
pub mod ci;
mod ci_values;
mod content;
mod context;
mod flags;
mod prepare;
mod results;
mod run_key;
mod text;
mod times;
mod upload_field;
pub mod values;
mod warnings;

pub use artifacts::{ArtifactsUrl, drop_file_addresses};
pub use bounds::TooLarge;
pub use choice::{Choice, Origin};
pub use ci_values::CiValues;
pub use content::Files;
pub use flags::Flags;
pub use prepare::{Arrival, PreparedReport, prepare};
pub use text::{BadText, name, one_line};
pub use upload_field::{Bound, UploadField};

use assay_domain::{
    id::ProjectId,
    recording::ImportReceipt,
    rules::RecordingRules,
    store::{RecordError, Recorder, StoredRecording},
    timestamp::Timestamp,
    verdict::Judge,
};

/// Stores a prepared report atomically, and judges the project unless another import follows.
///
/// Importing the same report again under the same run key changes nothing. Another report under that key becomes another
/// part of the run. An import against the key's rules is refused.
pub fn import(
    recorder: &dyn Recorder,
    judge: &dyn Judge,
    project: ProjectId,
    prepared: &PreparedReport,
    rules: RecordingRules,
    now: Timestamp,
) -> Result<ImportReceipt, RecordError> {
    let imported = recorder.record_under(project, &prepared.recording, rules, judge, now)?;
    log_stored(project, &imported, prepared);
    Ok(imported)
}

/// Stores a prepared report as [`import`] does, and leaves the judgement to the caller.
pub fn store(
    recorder: &dyn Recorder,
    project: ProjectId,
    prepared: &PreparedReport,
    rules: RecordingRules,
    now: Timestamp,
) -> Result<StoredRecording, RecordError> {
    let stored = recorder.store_under(project, &prepared.recording, rules, now)?;
    log_stored(project, &stored.imported, prepared);
    Ok(stored)
}

fn log_stored(project: ProjectId, imported: &ImportReceipt, prepared: &PreparedReport) {
    log::debug!(
        "run {} of project {project}: {} tests, {:?}",
        imported.run_number,
        prepared.recording.tests.len(),
        imported.effect,
    );
}
