//! What is known of a test that is to be fixed.

use assay_answers::fix::fix_status;
use assay_http::single_test;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// Show what a fix of a test must prove
    ///
    /// The rate at which the test fails on good code, by variant, its errors, and how many clean runs prove a fix.
    /// `fixes` has what `assay verify` and people reported, and whether the stable branch keeps it.
    ///
    /// Cost: moderate (one engine pass for each variant on which the test failed).
    SHOW {
        path: "/projects/{projectId}/tests/{testName}/fix",
        handler: show,
        id: "getTestFix",
        tag: "Tests",
        query: ["filePath"],
        large: false,
        tagged: false,
        answer: assay_answers::fix::FixStatus,
        example: "fix",
    }
}

fn show(call: &Call<'_>) -> Result<Answer, ApiError> {
    let file = call.query().file()?;
    let project = call.project()?;
    let status = fix_status(call.store, call.engine, &project, &call.test(file), call.now)?;
    Answer::of(&single_test(status)?)
}
