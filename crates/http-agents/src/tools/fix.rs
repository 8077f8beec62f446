//! `next_flake` and `check_fix`: the flaky test to fix next, and what proves its fix.

use assay_answers::{
    fix::{FixStatus, fix_status},
    flaky::{FlakyQuery, flaky_list},
    test_list::TestFilters,
};
use assay_domain::{
    fix::{FixState, WatchedFix},
    page::PerPage,
    project::Project,
    shell,
    test::{FileSelector, TestSelector},
    verdict::{FlakySort, VerdictStatus},
};
use serde_json::{Value, json};

use super::call::{Call, PAGES, Properties, owners, rounded};
use crate::{budget::Draft, error::ToolError};

/// What is no fix.
const RULES: &str = "Fix the cause. Do not lengthen a time-out or a pause, add a retry, weaken an assertion, skip or delete the \
                     test. The comparison of the run with the stable branch shows skipped, missing and slower tests; a \
                     reviewer must look at the change for the rest.";

pub(super) fn next_properties() -> Properties {
    vec![
        ("owner", json!({"type": "string"})),
        ("rank", json!({"type": "integer", "minimum": 1, "default": 1})),
    ]
}

pub(super) fn check_properties() -> Properties {
    vec![
        ("test", json!({"type": "string"})),
        ("file", json!({"type": "string"})),
    ]
}

/// The flaky test that costs the most time.
pub(super) fn next(call: &Call<'_>) -> Result<Draft, ToolError> {
    let arguments = &call.arguments;
    let rank = arguments.number("rank", PAGES)?.unwrap_or(1);
    let zero_based = rank.unsigned_abs().saturating_sub(1);
    let query = FlakyQuery {
        status: Some(VerdictStatus::Flaky),
        sort: FlakySort::TimeLost,
        filters: TestFilters::of_owner(arguments.text("owner")?),
        page: zero_based / 10 + 1,
        per_page: PerPage::Ten,
        explain: false,
    };
    let project = call.project()?;
    let judge = |history: &_| call.engine.suspects(history, call.now);
    let list = flaky_list(call.store, call.engine, judge, &project, &query, call.now)?;
    let draft = Draft::default()
        .fact("project", project.name.as_str())
        .fact("flaky", list.page.total);
    let place = usize::try_from(zero_based % 10).unwrap_or(0);
    let Some(test) = list.tests.get(place) else {
        return Ok(draft
            .fact("test", Value::Null)
            .fact("why", "There is no flaky test of this rank."));
    };
    let selector = TestSelector {
        name: test.test_name.clone(),
        file: FileSelector::Exactly(test.file_path.clone()),
    };
    let draft = draft
        .fact("why", test.explanation.as_str())
        .fact("owners", owners(&test.ownership))
        .fact("timeLostMs", test.figures.time_lost_ms)
        .fact("lastRun", json!(test.last_run.as_ref().map(|run| &run.run_id)));
    with_status(call, draft, &project, &selector)
}

/// What proves the fix of one test, and what is proved so far.
pub(super) fn check(call: &Call<'_>) -> Result<Draft, ToolError> {
    let selector = call.arguments.test()?;
    let project = call.project()?;
    let draft = Draft::default().fact("project", project.name.as_str());
    with_status(call, draft, &project, &selector)
}

fn with_status(
    call: &Call<'_>,
    draft: Draft,
    project: &Project,
    selector: &TestSelector,
) -> Result<Draft, ToolError> {
    let lookup = fix_status(call.store, call.engine, project, selector, call.now)?;
    let status: FixStatus = call.single_test(project, selector, lookup)?;
    // Repetitions prove nothing of a test that fails at certain times only.
    let is_provable = status.calendar.is_none();
    let needed = json!({
        "cleanRepetitionsInOneJob": status.repetitions_needed,
        "orCleanBuilds": status.builds_needed,
        "with": status.mode,
        "thenAtMost": status.largest_rate.map(rounded),
    });
    let variants: Vec<Value> = status
        .variants
        .iter()
        .filter(|variant| variant.failures > 0)
        .map(|variant| json!({"variant": variant.variant, "rate": rounded(variant.rate), "failed": variant.failures, "of": variant.runs}))
        .collect();
    let errors: Vec<Value> = status
        .errors
        .iter()
        .map(|error| json!({"title": error.title, "fingerprint": error.fingerprint, "runs": error.runs}))
        .collect();
    let flag = |name: &str, value: Option<&str>| {
        value.map_or_else(String::new, |value| format!(" --{name} {}", shell::quoted(value)))
    };
    let command = format!(
        "assay verify --project {} --test {}{}{} -- YOUR TEST COMMAND",
        shell::quoted(&project.name),
        shell::quoted(&status.test.name),
        flag("file", status.test.file_path.as_deref()),
        flag("suite", status.only_on()),
    );
    let calendar = status.calendar.map(|sentence| {
        format!("{sentence}. Runs at other times prove nothing; the stable branch at these times shows whether a fix holds.")
    });
    Ok(draft
        .fact("test", status.test.name)
        .fact("file", status.test.file_path)
        .fact("rate", json!(status.rate.map(rounded)))
        .fact("failsOn", variants)
        .fact("calendar", calendar)
        .fact("errors", errors)
        .fact("needed", is_provable.then_some(needed))
        .whole("command", is_provable.then_some(command))
        .fact("rules", RULES)
        .entries("fixes", status.fixes.iter().map(fix).collect()))
}

fn fix(watched: &WatchedFix) -> Value {
    let check = watched.fix.check.map(|check| {
        json!({"outcome": check.outcome, "with": check.mode, "runs": check.runs, "needed": check.needed})
    });
    let left = watched.shown.runs_needed.saturating_sub(watched.shown.clean_runs);
    let is_open = matches!(watched.shown.state, FixState::Waiting | FixState::Watching);
    json!({
        "commit": watched.fix.revision,
        "storedAt": watched.fix.stored_at,
        "check": check,
        "onStableBranch": watched.shown.state,
        "cleanBuilds": watched.shown.clean_runs,
        "buildsLeft": is_open.then_some(left),
        "failedRun": watched.shown.failed_run,
    })
}
