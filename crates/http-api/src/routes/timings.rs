//! The usual durations of a project's tests.

use assay_domain::{
    project::ProjectTag,
    timestamp::Timestamp,
    timing::{TestTiming, TimedRun},
};
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// List the usual durations of a project's tests
    ///
    /// The median duration of each test in the newest ten passed, complete runs of each suite on the stable branch.
    /// `before` leaves out runs of which a part arrived later, so that all machines of a build get the same answer.
    ///
    /// Cost: expensive.
    LIST {
        path: "/projects/{projectId}/timings",
        handler: list,
        id: "listTimings",
        tag: "Tests",
        query: ["timingsBefore"],
        large: true,
        tagged: true,
        answer: TimingList,
        example: "timings",
    }
}

fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let before = call
        .query()
        .parse("before", "must be a time such as 2026-11-20T18:00:00Z", |text| {
            text.parse::<Timestamp>().ok()
        })?;
    let project = call.project()?;
    let before = before.unwrap_or(call.now);
    let timings = call.store.timings(&project, before)?;
    Answer::tagged(&TimingList {
        project: project.tag(),
        stable_branch: timings.stable_branch,
        runs: timings.runs,
        tests: timings.tests,
    })
}

/// The usual durations of a project's tests.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct TimingList {
    /// The project.
    project: ProjectTag,
    /// The stable branch.
    stable_branch: String,
    /// The runs that the durations are of, newest first: at most ten of each suite, and 100 in all.
    runs: Vec<TimedRun>,
    /// The tests that passed in one of these runs with a duration, by file, then name.
    tests: Vec<TestTiming>,
}
