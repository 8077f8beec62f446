//! Every test of the engine's window, as the page *Tests* lists them.

use assay_answers::test_list::{TestFilters, TestListEntry, TestQuery, test_list};
use assay_domain::{owners::OwnerFilter, verdict::TestSort};
use serde::Serialize;

use crate::{answer::Answer, call::Call, csv, error::ApiError, route::route};

/// Longest name of a variant, as imports cut it.
const VARIANT_CHARS: usize = 500;

route! {
    /// List the tests of the last 14 days
    ///
    /// One entry per test with a result in the engine's fixed window of 14 days, with its verdict, judged at the time of
    /// the request. With `Accept: text/csv` the answer is the same page as CSV with a header line: one line per test,
    /// lists joined by spaces, null as an empty field.
    ///
    /// Cost: expensive (runs the flakiness engine after each change of the project).
    LIST {
        path: "/projects/{projectId}/tests",
        handler: list,
        id: "listTests",
        tag: "Tests",
        query: [
            "testStatus", "testSort", "testSearch", "file", "failsOn", "failsIn", "error", "red", "new", "owner", "group",
            "page", "perPage"
        ],
        large: true,
        tagged: false,
        csv: true,
        answer: assay_answers::test_list::TestList,
        example: "tests",
    }
}

fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let parameters = call.query();
    let status = parameters.word("status")?;
    let sort = parameters.word("sort")?.unwrap_or(TestSort::Verdict);
    let filters = TestFilters {
        search: parameters.text("search")?,
        file: parameters.text("file")?,
        branch: parameters.text("branch")?,
        variant: parameters.parse("variant", "must be 1 to 500 characters long", |variant| {
            let is_length_valid = (1..=VARIANT_CHARS).contains(&variant.chars().count());
            is_length_valid.then(|| variant.to_owned())
        })?,
        error: parameters.text("error")?,
        is_red: parameters.flag("red")?,
        is_new: parameters.flag("new")?,
        owner: parameters.text("owner")?.as_deref().map(OwnerFilter::of),
    };
    let query = TestQuery {
        filters,
        status,
        sort,
        by_owner: parameters
            .parse("group", "must be owner", |group| (group == "owner").then_some(()))?
            .is_some(),
        page: parameters.page()?,
        per_page: parameters.per_page()?,
    };
    let project = call.project()?;
    let judge = |history: &_| call.judge_all(history, call.now);
    let list = test_list(call.store, judge, &project, &query, call.now)?;
    if call.wants_csv {
        let lines = list.tests.iter().map(Line::of);
        return csv::answer(lines);
    }
    Ok(Answer::of(&list)?.beside_csv())
}

/// A test as a line of CSV.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    test_name: &'a str,
    file_path: Option<&'a str>,
    status: &'static str,
    status_reason: Option<&'static str>,
    explanation: &'a str,
    also_active: String,
    failing_since_run: Option<i32>,
    failure_rate: Option<f64>,
    failure_rate_low: Option<f64>,
    failure_rate_high: Option<f64>,
    flake_score: f64,
    flake_rate: f64,
    flip_rate: f64,
    broken_probability: Option<f64>,
    impact: f64,
    failure_streak: u32,
    runs_in_window: u32,
    runs_considered: u32,
    runs: u64,
    passed: u64,
    failed: u64,
    skipped: u64,
    recovered: u64,
    time_lost_ms: Option<u64>,
    p50_ms: Option<u64>,
    p95_ms: Option<u64>,
    newest_results: &'a str,
    stable_results: &'a str,
    owners: String,
    variants: String,
    first_seen_at: Option<String>,
    last_seen_at: Option<String>,
    first_failed_at: Option<String>,
    last_failed_at: Option<String>,
}

impl<'a> Line<'a> {
    fn of(entry: &'a TestListEntry) -> Self {
        let TestListEntry { verdict, runs, .. } = entry;
        let figures = &verdict.figures;
        let interval = entry.failure_rate_interval;
        let also_active: Vec<&str> = verdict.also_active.iter().map(|signal| signal.as_str()).collect();
        let text = |at: Option<assay_domain::timestamp::Timestamp>| at.map(|at| at.to_string());
        Self {
            test_name: &verdict.test_name,
            file_path: verdict.file_path.as_deref(),
            status: verdict.status.as_str(),
            status_reason: verdict.status_reason.map(|signal| signal.as_str()),
            explanation: &verdict.explanation,
            also_active: also_active.join(" "),
            failing_since_run: verdict.failing_since.as_ref().map(|since| since.run_number),
            failure_rate: figures.failure_rate,
            failure_rate_low: interval.map(|interval| interval.low),
            failure_rate_high: interval.map(|interval| interval.high),
            flake_score: figures.flake_score,
            flake_rate: figures.flake_rate,
            flip_rate: figures.flip_rate,
            broken_probability: figures.broken_probability,
            impact: figures.impact,
            failure_streak: figures.failure_streak,
            runs_in_window: figures.runs_in_window,
            runs_considered: figures.runs_considered,
            runs: runs.total,
            passed: runs.passed,
            failed: runs.failed,
            skipped: runs.skipped,
            recovered: runs.recovered,
            time_lost_ms: figures.time_lost_ms,
            p50_ms: entry.p50_ms,
            p95_ms: entry.p95_ms,
            newest_results: &entry.newest_results,
            stable_results: &entry.stable_results,
            owners: verdict.ownership.owners.join(" "),
            variants: entry.variants.join(" "),
            first_seen_at: text(entry.first_seen_at),
            last_seen_at: text(verdict.last_seen_at),
            first_failed_at: text(verdict.first_failed_at),
            last_failed_at: text(entry.last_failed_at),
        }
    }
}
