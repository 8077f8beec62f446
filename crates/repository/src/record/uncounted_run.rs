//! Runs without a readable pack: they do not count in verdicts, or their pack is damaged. Their failures are explained from
//! their rows.

use assay_domain::{cause::FailedRun, observation::RunObservations, project::Project};
use diesel::prelude::*;

use super::RunContents;
use crate::{
    db::{column::At, pool::Read},
    read::{observation::run_with_results, part},
};

/// The run as the engine reads it.
pub(crate) fn uncounted_run(
    connection: &mut PgConnection,
    project: &Project,
    failed: &FailedRun,
) -> Read<Option<RunObservations>> {
    let (project, number) = (project.id.0, failed.run_number);
    let mut contents = RunContents::load(connection, project, number, At(failed.started_at))?;
    contents.merge(&part::of_run(connection, project, number)?)?;
    run_with_results(connection, project, number, contents.pack())
}
