//! `list_tests`: every test of the engine's window.

use assay_answers::test_list::{TestFilters, TestListEntry, TestQuery, test_list};
use assay_domain::{
    owners::OwnerFilter,
    page::PerPage,
    verdict::{TestSort, VerdictStatus},
};
use serde_json::{Value, json};

use super::call::{Call, PAGES, Properties, owners, rounded};
use crate::{budget::Draft, error::ToolError};

pub(super) fn properties() -> Properties {
    vec![
        ("status", json!({"enum": VerdictStatus::ALL})),
        (
            "sort",
            json!({"enum": TestSort::ALL, "default": TestSort::Verdict}),
        ),
        ("search", json!({"type": "string"})),
        ("owner", json!({"type": "string"})),
        (
            "branch",
            json!({"type": "string", "description": "only tests that failed there"}),
        ),
        ("page", json!({"type": "integer", "minimum": 1, "default": 1})),
    ]
}

pub(super) fn answer(call: &Call<'_>) -> Result<Draft, ToolError> {
    let arguments = &call.arguments;
    let page = arguments.number("page", PAGES)?.unwrap_or(1);
    let query = TestQuery {
        status: arguments.word("status", VerdictStatus::ALL)?,
        sort: arguments
            .word("sort", TestSort::ALL)?
            .unwrap_or(TestSort::Verdict),
        filters: TestFilters {
            search: arguments.text("search")?,
            owner: arguments.text("owner")?.map(|owner| OwnerFilter::of(&owner)),
            branch: arguments.text("branch")?,
            ..TestFilters::default()
        },
        by_owner: false,
        page: page.unsigned_abs(),
        per_page: PerPage::Ten,
    };
    let project = call.project()?;
    let judge = |history: &_| call.engine.verdicts(history, call.now);
    let list = test_list(call.store, judge, &project, &query, call.now)?;
    let has_next_page = list.page.page < list.page.page_count;
    Ok(Draft::default()
        .fact("project", project.name.as_str())
        .fact("stableBranch", list.stable.explanation.as_str())
        .fact("days", list.window_days)
        .fact("counts", json!(list.counts))
        .fact("total", list.page.total)
        .fact("page", list.page.page)
        .fact("pages", list.page.page_count)
        .entries("tests", list.tests.iter().map(entry).collect())
        .next(has_next_page.then(|| arguments.next_page("list_tests", page))))
}

fn entry(test: &TestListEntry) -> Value {
    let verdict = &test.verdict;
    json!({
        "test": verdict.test_name,
        "file": verdict.file_path,
        "status": verdict.status,
        "why": verdict.explanation,
        "failureRate": verdict.figures.failure_rate.map(rounded),
        "newest": test.newest_results,
        "p50Ms": test.p50_ms,
        "p95Ms": test.p95_ms,
        "timeLostMs": verdict.figures.time_lost_ms,
        "owners": owners(&verdict.ownership),
    })
}
