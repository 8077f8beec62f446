//! `list_errors`: the error signatures of a period, or one signature with its tests and runs.

use assay_domain::{
    page::PerPage,
    period::{Days, Period},
    project::Project,
    signature::{Category, Signature, SignatureQuery, SignatureSort},
};
use serde_json::{Value, json};

use super::call::{Call, PAGES, Properties};
use crate::{budget::Draft, error::ToolError};

/// Most tests and runs of one signature in an answer.
const MOST_ENTRIES: usize = 20;

pub(super) fn properties() -> Properties {
    vec![
        (
            "fingerprint",
            json!({"type": "string", "description": "shows this error alone"}),
        ),
        (
            "days",
            json!({"enum": Days::ALL.map(Days::count), "default": Days::Seven.count()}),
        ),
        ("branch", json!({"type": "string"})),
        (
            "search",
            json!({"type": "string", "description": "part of the title, the message or the file"}),
        ),
        ("category", json!({"enum": Category::ALL})),
        ("page", json!({"type": "integer", "minimum": 1, "default": 1})),
    ]
}

pub(super) fn answer(call: &Call<'_>) -> Result<Draft, ToolError> {
    let arguments = &call.arguments;
    let period = Period::ending(call.now, call.days(Days::Seven)?);
    let page = arguments.number("page", PAGES)?.unwrap_or(1);
    let category = arguments.word("category", Category::ALL)?;
    let project = call.project()?;
    if let Some(fingerprint) = arguments.text("fingerprint")? {
        return one_signature(call, &project, &fingerprint, &period);
    }
    let query = SignatureQuery {
        period,
        branch: arguments.text("branch")?,
        category,
        search: arguments.text("search")?,
        sort: SignatureSort::Occurrences,
        page: page.unsigned_abs(),
        per_page: PerPage::Ten,
    };
    let list = call.store.signatures(&project, &query)?;
    let has_next_page = list.page.page < list.page.page_count;
    Ok(Draft::default()
        .fact("project", project.name.as_str())
        .fact("days", period.days.count())
        .fact("total", list.page.total)
        .fact("page", list.page.page)
        .fact("pages", list.page.page_count)
        .fact("failuresWithoutText", list.unfingerprinted_count)
        .entries("errors", list.signatures.iter().map(signature).collect())
        .next(has_next_page.then(|| arguments.next_page("list_errors", page))))
}

/// One signature with its tests and its newest runs.
fn one_signature(
    call: &Call<'_>,
    project: &Project,
    fingerprint: &str,
    period: &Period,
) -> Result<Draft, ToolError> {
    let details = call
        .store
        .signature(project, fingerprint, period)?
        .ok_or_else(|| {
            ToolError::new("There is no such error in this project.")
                .with_call(call.arguments.other_call("list_errors", &[]))
        })?;
    let tests = details.tests.iter().take(MOST_ENTRIES).map(
        |test| json!({"test": test.test_name, "file": test.file_path, "occurrences": test.occurrence_count}),
    );
    let runs = details.runs.iter().take(MOST_ENTRIES).map(|run| {
        json!({
            "run": run.run_id,
            "number": run.run_number,
            "branch": run.branch,
            "startedAt": run.started_at,
            "test": run.test_name,
            "finalStatus": run.final_status,
        })
    });
    Ok(Draft::default()
        .fact("project", project.name.as_str())
        .fact(
            "days",
            if details.window_empty {
                Value::Null
            } else {
                json!(period.days)
            },
        )
        .fact("error", signature(&details.signature))
        .fact("tests", tests.collect::<Vec<_>>())
        .entries("runs", runs.collect()))
}

fn signature(signature: &Signature) -> Value {
    json!({
        "fingerprint": signature.fingerprint,
        "title": signature.title,
        "category": signature.category,
        "message": signature.message,
        "occurrences": signature.occurrence_count,
        "tests": signature.test_count,
        "runs": signature.run_count,
        "firstSeen": signature.first_seen,
        "lastSeen": signature.last_seen,
        "isNew": signature.is_new,
        "file": signature.file_path,
    })
}
