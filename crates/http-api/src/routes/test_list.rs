//! Every test of the engine's window, as the page *Tests* lists them.

use assay_answers::test_list::{TestFilters, TestQuery, test_list};
use assay_domain::{owners::OwnerFilter, verdict::TestSort};

use crate::{answer::Answer, call::Call, csv, error::ApiError, route::route};

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
        variant: parameters.variant()?,
        error: parameters.text("error")?,
        is_red: parameters.flag("red")?,
        is_new: parameters.flag("new")?,
        owner: parameters.text("owner")?.as_deref().map(OwnerFilter::of),
    };
    let query = TestQuery {
        filters,
        status,
        sort,
        by_owner: parameters.is_word("group", "owner")?,
        page: parameters.page()?,
        per_page: parameters.per_page()?,
    };
    let project = call.project()?;
    let judge = |history: &_| call.judge_all(history, call.now);
    let list = test_list(call.store, judge, &project, &query, call.now)?;
    if call.wants_csv {
        return csv::answer(&COLUMNS, &list.tests);
    }
    Ok(Answer::of(&list)?.beside_csv())
}

/// The columns of the CSV and where an entry has them; the entries of a list are joined by spaces.
const COLUMNS: [(&str, &str); 34] = [
    ("testName", "/testName"),
    ("filePath", "/filePath"),
    ("status", "/status"),
    ("statusReason", "/statusReason"),
    ("explanation", "/explanation"),
    ("alsoActive", "/alsoActive"),
    ("failingSinceRun", "/failingSince/runNumber"),
    ("failureRate", "/failureRate"),
    ("failureRateLow", "/failureRateInterval/low"),
    ("failureRateHigh", "/failureRateInterval/high"),
    ("flakeScore", "/flakeScore"),
    ("flakeRate", "/flakeRate"),
    ("flipRate", "/flipRate"),
    ("brokenProbability", "/brokenProbability"),
    ("impact", "/impact"),
    ("failureStreak", "/failureStreak"),
    ("runsInWindow", "/runsInWindow"),
    ("runsConsidered", "/runsConsidered"),
    ("runs", "/runs/total"),
    ("passed", "/runs/passed"),
    ("failed", "/runs/failed"),
    ("skipped", "/runs/skipped"),
    ("recovered", "/runs/recovered"),
    ("timeLostMs", "/timeLostMs"),
    ("p50Ms", "/p50Ms"),
    ("p95Ms", "/p95Ms"),
    ("newestResults", "/newestResults"),
    ("stableResults", "/stableResults"),
    ("owners", "/owners"),
    ("variants", "/variants"),
    ("firstSeenAt", "/firstSeenAt"),
    ("lastSeenAt", "/lastSeenAt"),
    ("firstFailedAt", "/firstFailedAt"),
    ("lastFailedAt", "/lastFailedAt"),
];
