//! A commit: all its runs joined.

use assay_answers::{
    commit::{CommitSelector, Trust, commit_results, newest_commit},
    failures::FailureFilter,
};
use assay_domain::owners::OwnerFilter;
use assay_http::Unanswerable;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// Show all runs of a commit and explain their failures
    ///
    /// The newest run of each suite of a commit, with all its shards, and one list of their failed and recovered
    /// tests with causes. The beginning of a commit selects the newest commit that matches. Runs of keys for pull
    /// requests only are joined only if no other run matches. `gate` is the action for all runs together.
    ///
    /// Cost: moderate (runs the flakiness engine on the failed tests).
    DETAIL {
        path: "/projects/{projectId}/commits/{commitSha}",
        handler: detail,
        id: "getCommit",
        tag: "Runs",
        query: ["owner", "page", "limit"],
        large: true,
        tagged: false,
        answer: assay_answers::commit::CommitResults,
        example: "commit",
    }
}

fn detail(call: &Call<'_>) -> Result<Answer, ApiError> {
    let parameters = call.query();
    let filter = FailureFilter {
        name_part: None,
        owner: parameters.text("owner")?.as_deref().map(OwnerFilter::of),
    };
    let requested = (parameters.page()?, parameters.limit()?);
    let project = call.project()?;
    let selector = CommitSelector::Sha(call.commit()?);
    let commit = newest_commit(call.store, &project, &selector, Trust::Preferred, call.now)?
        .ok_or(Unanswerable::CommitNotFound)?;
    let results = commit_results(
        call.store,
        call.engine,
        &project,
        &commit.runs,
        (&filter, requested),
        call.now,
    )?;
    Answer::of(&results.ok_or(Unanswerable::CommitNotFound)?)
}
