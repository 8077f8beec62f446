//! Where the time of the stable branch's runs goes.

use assay_answers::durations::durations;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// Get where the time goes
    ///
    /// The time of each suite on the stable branch as a sum, with what changed it within 14 days; the slowest tests;
    /// and the tests that became slower and stayed so, each with the run since which it is. For these, the factor of
    /// each run, the median over its tests, is removed, so a slow machine makes no test slower. A test needs five
    /// complete runs before and three since then.
    ///
    /// Cost: expensive.
    FIND {
        path: "/projects/{projectId}/durations",
        handler: find,
        id: "getDurations",
        tag: "Tests",
        query: [],
        large: false,
        tagged: false,
        answer: assay_answers::durations::ProjectDurations,
        example: "durations",
    }
}

fn find(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    Answer::of(&durations(call.store, &project, call.now)?)
}
