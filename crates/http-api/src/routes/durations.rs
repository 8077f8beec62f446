//! Where the time of the stable branch's runs goes.

use assay_answers::durations::durations;

#[cfg(test)]
use crate::openapi::{Operation, register};
use crate::{answer::Answer, call::Call, error::ApiError, route::Route};

/// `GET /projects/{projectId}/durations`.
pub(super) const FIND: Route = Route {
    path: "/projects/{projectId}/durations",
    handler: find,
    is_large: false,
    #[cfg(test)]
    operation: Some(Operation {
        id: "getDurations",
        tag: "Tests",
        cost: "expensive",
        summary: "Get where the time goes",
        description: "The time of each suite on the stable branch as a sum, with what changed it within 14 days; the slowest tests; and the tests that became slower and stayed so, each with the run since which it is. For these, the factor of each run, the median over its tests, is removed, so a slow machine makes no test slower. A test needs five complete runs before and three since then.",
        query: &[],
        tagged: false,
        answer: register::<assay_answers::durations::ProjectDurations>,
        example: include_str!("../openapi/examples/durations.json"),
    }),
};

/// The suites, the slowest tests, and those that became slower.
fn find(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    Answer::of(&durations(call.store, &project, call.now)?)
}
