//! What a job left failed in a run that was closed before the job ran again. The later attempt begins a run of its own,
//! which must not be green because a failed test did not run again.

use std::collections::BTreeSet;

use assay_domain::{attempt::ErrorDetail, recording::Recording};
use diesel::PgConnection;
use uuid::Uuid;

use super::{
    RunContents,
    run::{KnownRun, RunKey},
};
use crate::{
    db::pool::Read,
    read::{
        part,
        test::{name_of, names_by_ordinal},
    },
};

/// The number of tests that the report's job left failed in the run of this key that was closed last, and that are not
/// among those of the report, and an error that says so. None if there are none.
pub(super) fn left_failed(
    connection: &mut PgConnection,
    project: Uuid,
    (recording, reported): (&Recording, BTreeSet<i32>),
    key: RunKey<'_>,
) -> Read<Option<(usize, ErrorDetail)>> {
    let Some(closed_runs) = key.closed_runs.checked_sub(1) else {
        return Ok(None);
    };
    let Some(closed) = KnownRun::find(connection, project, RunKey { closed_runs, ..key })? else {
        return Ok(None);
    };
    let parts = part::of_run(connection, project, closed.number)?;
    let mut contents = RunContents::load(connection, project, closed.number, closed.started_at)?;
    contents.merge(&parts)?;
    let of_job = parts
        .iter()
        .filter(|part| part.sender_job == recording.sender.job);
    let of_job: BTreeSet<i16> = of_job.map(|part| part.number).collect();
    let left = contents
        .failed_in(&of_job)
        .filter(|test| !reported.contains(test));
    let left: Vec<i32> = left.collect();
    let Some(first) = left.first() else {
        return Ok(None);
    };
    let names = names_by_ordinal(connection, project, &[*first])?;
    let tests = if left.len() == 1 { "test" } else { "tests" };
    let message = format!(
        "{} {tests} failed in an earlier attempt of this job, in run {}, and did not run again, such as {}",
        left.len(),
        closed.number,
        name_of(&names, *first)?.name
    );
    let error = ErrorDetail {
        message: Some(message),
        ..ErrorDetail::default()
    };
    Ok(Some((left.len(), error)))
}
