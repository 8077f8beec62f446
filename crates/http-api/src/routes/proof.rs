//! A verdict with all that it depends on.

use assay_answers::proof::verdict_proof;
use assay_http::single_test;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// Show all that the verdict on a test depends on
    ///
    /// The runs of the 14 days before the stored verdict, the main constants of the engine, and the answer. `assay proof
    /// check` computes it again without a server. Other tests are numbers, and no error has a text.
    ///
    /// Cost: moderate (one engine pass).
    SHOW {
        path: "/projects/{projectId}/tests/{testName}/proof",
        handler: show,
        id: "getTestProof",
        tag: "Tests",
        query: ["filePath"],
        large: true,
        tagged: false,
        answer: assay_answers::proof::ProofAnswer,
        example: "proof",
    }
}

fn show(call: &Call<'_>) -> Result<Answer, ApiError> {
    let file = call.query().file()?;
    let project = call.project()?;
    let proof = verdict_proof(call.store, &project, &call.test(file), call.now)?;
    Answer::of(&single_test(proof)?)
}
