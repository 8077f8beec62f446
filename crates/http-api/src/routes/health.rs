//! The health of a project over weeks.

use assay_answers::health::health;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// Show the health of a project over weeks
    ///
    /// By week: how long the stable branch was red, what flaky tests cost, failed and recovered runs, tests by verdict, and
    /// the time of suites; with the figure that changed most. A past week is judged as of its end, from the runs that are
    /// stored now. So weeks end only where the engine's window of 14 days lies within the retention.
    ///
    /// Cost: expensive (runs the flakiness engine for each week after each change of the project).
    SHOW {
        path: "/projects/{projectId}/health",
        handler: show,
        id: "getHealth",
        tag: "Tests",
        query: [],
        large: false,
        tagged: false,
        answer: assay_answers::health::ProjectHealth,
        example: "health",
    }
}

fn show(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let judge = |history: &_, at| call.judge_all(history, at);
    Answer::of(&health(call.store, &judge, &project, call.now)?)
}
