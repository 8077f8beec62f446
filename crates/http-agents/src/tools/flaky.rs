//! `list_flaky`: flaky and broken tests, judged at the time of the call.

use assay_answers::{
    flaky::{FlakyQuery, flaky_list},
    test_list::TestFilters,
};
use assay_domain::{
    page::PerPage,
    verdict::{FlakySort, VerdictEntry, VerdictStatus},
};
use serde_json::{Value, json};

use super::call::{Call, PAGES, Properties, owners, rounded};
use crate::{budget::Draft, error::ToolError};

/// The statuses of the tests in the list.
const LISTED: [VerdictStatus; 2] = [VerdictStatus::Flaky, VerdictStatus::Broken];

pub(super) fn properties() -> Properties {
    vec![
        ("status", json!({"enum": LISTED})),
        (
            "sort",
            json!({"enum": FlakySort::ALL, "default": FlakySort::TimeLost}),
        ),
        (
            "search",
            json!({"type": "string", "description": "part of a test's name or file"}),
        ),
        ("owner", json!({"type": "string", "description": "or unowned"})),
        ("page", json!({"type": "integer", "minimum": 1, "default": 1})),
    ]
}

pub(super) fn answer(call: &Call<'_>) -> Result<Draft, ToolError> {
    let arguments = &call.arguments;
    let page = arguments.number("page", PAGES)?.unwrap_or(1);
    let query = FlakyQuery {
        status: arguments.word("status", &LISTED)?,
        sort: arguments
            .word("sort", FlakySort::ALL)?
            .unwrap_or(FlakySort::TimeLost),
        filters: TestFilters {
            search: arguments.text("search")?,
            ..TestFilters::of_owner(arguments.text("owner")?)
        },
        page: page.unsigned_abs(),
        per_page: PerPage::Ten,
        explain: false,
    };
    let project = call.project()?;
    let judge = |history: &_| call.engine.suspects(history, call.now);
    let list = flaky_list(call.store, call.engine, judge, &project, &query, call.now)?;
    let has_next_page = list.page.page < list.page.page_count;
    Ok(Draft::default()
        .fact("project", project.name.as_str())
        .fact("stableBranch", list.stable.explanation.as_str())
        .fact("failingOnStable", list.stable.failing)
        .fact("days", list.window_days)
        .fact("total", list.page.total)
        .fact("page", list.page.page)
        .fact("pages", list.page.page_count)
        .fact("failingUndecided", list.failing_count)
        .entries("tests", list.tests.iter().map(entry).collect())
        .next(has_next_page.then(|| arguments.next_page("list_flaky", page))))
}

fn entry(test: &VerdictEntry) -> Value {
    json!({
        "test": test.test_name,
        "file": test.file_path,
        "status": test.status,
        "why": test.explanation,
        "failsOnStableSince": test.failing_since.as_ref().map(|since| json!({"run": since.run_id, "number": since.run_number, "revision": since.revision})),
        "failureRate": test.figures.failure_rate.map(rounded),
        "timeLostMs": test.figures.time_lost_ms,
        "lastRun": test.last_run.as_ref().map(|run| json!({"run": run.run_id, "number": run.run_number, "status": run.status})),
        "owners": owners(&test.ownership),
    })
}
