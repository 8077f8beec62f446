//! Runs without a readable pack: they do not count in verdicts, or their pack is damaged. Their failures are explained from
//! their rows.

use assay_domain::{
    cause::FailedRun,
    merge_queue::tested_pull_requests,
    observation::{RunFacts, RunObservations},
    project::Project,
    revision::{checked_out_merge, tested_or_commit},
};
use diesel::prelude::*;

use super::RunContents;
use crate::{
    db::{column::At, pool::Read, schema::run},
    read::{
        observation::{ending, release_branch},
        part,
    },
};

/// Tested revision; merge base and base branch; pull request and its title; suite, whether it is complete, end, status, number of failed tests.
type Facts = (
    Option<String>,
    (Option<String>, Option<String>),
    (Option<i64>, Option<String>),
    Option<String>,
    bool,
    Option<At>,
    Option<String>,
    i32,
);

/// The run as the engine reads it.
pub(crate) fn uncounted_run(
    connection: &mut PgConnection,
    project: &Project,
    failed: &FailedRun,
) -> Read<Option<RunObservations>> {
    let row: Option<Facts> = run::table
        .find((project.id.0, failed.run_number))
        .select((
            run::tested_revision,
            (run::merge_base, run::base_branch),
            (run::pull_request_number, run::pull_request_title),
            run::suite,
            run::complete,
            run::finished_at,
            run::status,
            run::failed,
        ))
        .first(connection)
        .optional()?;
    let Some((
        tested_revision,
        (merge_base, base_branch),
        (pull_request, title),
        suite,
        complete,
        finished_at,
        status,
        failed_tests,
    )) = row
    else {
        return Ok(None);
    };
    let last_seen = finished_at.unwrap_or(At(failed.started_at));
    let mut contents = RunContents::load(connection, project.id.0, failed.run_number, At(failed.started_at))?;
    contents.merge(&part::of_run(connection, project.id.0, failed.run_number)?)?;
    let revision = tested_or_commit(tested_revision.as_deref(), failed.commit_sha.as_deref());
    let run = RunFacts {
        id: failed.id.to_string().into(),
        number: failed.run_number,
        started_at: failed.started_at,
        release_branch: release_branch(
            connection,
            project.id.0,
            (failed.branch.as_deref(), base_branch.as_deref()),
        )?,
        branch: failed.branch.as_deref().map(Into::into),
        revision: revision.map(Into::into),
        merge: checked_out_merge(tested_revision.as_deref(), failed.commit_sha.as_deref()).map(Into::into),
        variant: suite.unwrap_or_default().into(),
        merge_base: merge_base.map(Into::into),
        pull_requests: tested_pull_requests(failed.branch.as_deref(), title.as_deref(), pull_request),
    };
    let ending = ending((complete, last_seen), status.as_deref(), failed_tests)?;
    Ok(Some(contents.pack().observed(run, ending)))
}
