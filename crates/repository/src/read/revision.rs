//! The revisions of the engine's window.

use assay_domain::{
    project::Project,
    revision::{Revisions, TestedRevision, tested_or_commit},
    timestamp::Timestamp,
    verdict::ENGINE_WINDOW_DAYS,
};
use diesel::{pg::PgRowByRowLoadingMode, prelude::*};

use crate::db::{column::At, schema::run};

/// The revisions of the window that ends at `to`. Runs that do not count in verdicts and runs with only skipped results
/// are left out. Reads nothing without a requested run, or if the newest one started before the window.
pub(crate) fn load(
    connection: &mut PgConnection,
    project: &Project,
    stable_branch: &str,
    to: Timestamp,
    newest: Option<Timestamp>,
) -> QueryResult<Revisions> {
    let from = to.plus_days(-ENGINE_WINDOW_DAYS);
    if newest.is_none_or(|newest| newest < from) {
        return Ok(Revisions::of((from, to), stable_branch, &[]));
    }
    type Row = (i32, At, Option<String>, Option<String>, Option<String>);
    let rows = run::table
        .filter(run::project_id.eq(project.id.0))
        .filter(run::started_at.between(At(from), At(to)))
        .filter(run::counts_in_verdicts)
        .filter((run::passed + run::failed).gt(0))
        .select((
            run::number,
            run::started_at,
            run::tested_revision,
            run::commit_sha,
            run::branch,
        ))
        .load_iter::<Row, PgRowByRowLoadingMode>(connection)?;
    let runs = rows.map(|row| {
        let (run, started_at, tested_revision, commit_sha, branch) = row?;
        Ok(TestedRevision {
            run,
            started_at: started_at.0,
            revision: tested_or_commit(tested_revision, commit_sha),
            branch,
        })
    });
    let runs: Vec<TestedRevision> = runs.collect::<QueryResult<_>>()?;
    Ok(Revisions::of((from, to), stable_branch, &runs))
}
