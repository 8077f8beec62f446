//! The flaky list: the engine's live verdicts over its fixed window.

use assay_domain::verdict::{FlakySort, VerdictStatus};
use assay_explain::flaky::{FlakyQuery, flaky_list};

use crate::{answer::Answer, call::Call, error::ApiError};

/// `GET /projects/{projectId}/flaky`: flaky and broken tests of the last 14 days, judged now.
pub(crate) fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let parameters = call.query();
    let query = FlakyQuery {
        status: parameters.parse("status", "must be one of flaky, broken", |word| match word {
            "flaky" => Some(VerdictStatus::Flaky),
            "broken" => Some(VerdictStatus::Broken),
            _ => None,
        })?,
        sort: parameters.word("sort")?.unwrap_or(FlakySort::TimeLost),
        search: parameters.text("search")?,
        page: parameters.page()?,
        per_page: parameters.per_page()?,
        explain: parameters.flag("explain")?,
    };
    let project = call.project()?;
    let judge = |history: &_| call.judge(history);
    let list = flaky_list(call.store, call.engine, judge, &project, &query, call.now)?;
    Answer::of(&list)
}
