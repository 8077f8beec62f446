//! Whether a release may be cut from a branch.

use assay_answers::release::release;
use assay_domain::observation::History;
use assay_http::Unanswerable;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// May a release be cut from a branch
    ///
    /// What fails on the branch and not on the stable branch, by the newest runs of both in the last 14 days: since which
    /// run and commit, and whether the test is flaky. `answer` is `no` if such a test fails, `unknown` if a suite of the
    /// stable branch did not run there, or its newest run is incomplete or failed outside of its tests, and else `yes`. The
    /// branch need not be one of the project's `releaseBranches`. For the stable branch itself every failing test counts.
    ///
    /// Cost: expensive (runs the flakiness engine).
    SHOW {
        path: "/projects/{projectId}/releases/{branchName}",
        handler: show,
        id: "getRelease",
        tag: "Runs",
        query: ["page", "perPage"],
        large: true,
        tagged: false,
        answer: assay_answers::release::ReleaseState,
        example: "release",
    }
}

fn show(call: &Call<'_>) -> Result<Answer, ApiError> {
    let parameters = call.query();
    let requested = (parameters.page()?, parameters.per_page()?);
    let project = call.project()?;
    // A name that no branch has stands for one that cannot be stored.
    let branch = call.path.value("branchName").unwrap_or_default();
    let judge = |history: &History| call.judge_all(history, call.now);
    let state = release(call.store, judge, &project, branch, requested, call.now)?;
    Answer::of(&state.ok_or(Unanswerable::BranchNotFound)?)
}
