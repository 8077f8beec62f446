//! The tests that became slower on the stable branch.

use assay_explain::slower::slower_list;

#[cfg(test)]
use crate::openapi::{Operation, register};
use crate::{answer::Answer, call::Call, error::ApiError, route::Route};

/// `GET /projects/{projectId}/slower`.
pub(super) const LIST: Route = Route {
    path: "/projects/{projectId}/slower",
    handler: list,
    is_large: false,
    #[cfg(test)]
    operation: Some(Operation {
        id: "listSlowerTests",
        tag: "Tests",
        cost: "expensive",
        summary: "List the tests that became slower",
        description: "The tests that became slower on the stable branch within 14 days and stayed so, each with the run since which it is. The factor of each run, the median over its tests, is removed, so a slow machine makes no test slower. A test needs five complete runs before and three since then.",
        query: &[],
        tagged: false,
        answer: register::<assay_explain::slower::SlowerList>,
        example: include_str!("../openapi/examples/slower.json"),
    }),
};

/// The tests that became slower.
fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    Answer::of(&slower_list(call.store, &project, call.now)?)
}
