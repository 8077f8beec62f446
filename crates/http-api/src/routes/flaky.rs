//! The flaky list: the engine's live verdicts over its fixed window.

use assay_answers::{
    flaky::{FlakyQuery, flaky_list},
    test_list::TestFilters,
};
use assay_domain::verdict::{FlakySort, VerdictStatus};

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// List flaky and broken tests
    ///
    /// The flaky and broken tests, judged at the time of the request over the engine's fixed window of 14 days.
    /// `failingCount` counts the tests whose newest runs failed but that are neither; the list omits them. Call it
    /// once per question, not in a loop. For a single test use its status.
    ///
    /// Cost: expensive (runs the flakiness engine live on every call).
    LIST {
        path: "/projects/{projectId}/flaky",
        handler: list,
        id: "listFlakyTests",
        tag: "Flakiness",
        query: ["flakyStatus", "flakySort", "testSearch", "owner", "page", "perPage", "explain"],
        large: true,
        tagged: false,
        answer: assay_answers::flaky::FlakyList,
        example: "flaky",
    }
}

fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let parameters = call.query();
    let owned = TestFilters::of_owner(parameters.text("owner")?);
    let query = FlakyQuery {
        status: parameters.parse("status", "must be one of flaky, broken", |word| match word {
            "flaky" => Some(VerdictStatus::Flaky),
            "broken" => Some(VerdictStatus::Broken),
            _ => None,
        })?,
        sort: parameters.word("sort")?.unwrap_or(FlakySort::TimeLost),
        filters: TestFilters {
            search: parameters.text("search")?,
            ..owned
        },
        page: parameters.page()?,
        per_page: parameters.per_page()?,
        explain: parameters.flag("explain")?,
    };
    let project = call.project()?;
    let judge = |history: &_| call.judge(history);
    let list = flaky_list(call.store, call.engine, judge, &project, &query, call.now)?;
    Answer::of(&list)
}
