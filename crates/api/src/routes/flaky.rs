//! The flaky list: the engine's live verdicts over its fixed window.

use std::{cmp::Ordering, collections::HashMap};

use assay_domain::{
    folding::{contains_folded, fold},
    observation::{History, RunFacts},
    page::{Page, PerPage},
    project::{Project, ProjectTag},
    store::{ResultKey, Snapshot, StoreError, in_snapshot},
    test::{TestName, TestOrdinal},
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Evidence, FlakySort, LastRun, Verdict, VerdictEntry, VerdictStatus},
};
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError, request::Query};

/// `GET /projects/{projectId}/flaky`: flaky and broken tests of the last 14 days, judged now.
pub(crate) fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let asked = Asked::of(&call.query())?;
    let project = call.project()?;
    let list = in_snapshot(call.store, &project, |snapshot| {
        judged(call, &project, &asked, snapshot)
    })?;
    Answer::of(&list)
}

/// The list as of one state of the project, so that an import or a deletion in between does not mix two.
fn judged(
    call: &Call<'_>,
    project: &Project,
    asked: &Asked,
    snapshot: &mut dyn Snapshot,
) -> Result<FlakyList, StoreError> {
    let from = call.now.plus_days(-ENGINE_WINDOW_DAYS);
    let history = snapshot.observations(from, call.now)?;
    let suspects = call.judge(&history);
    let ranked = asked.rank(named(snapshot, suspects.verdicts)?);
    let page = Page::of(asked.page, asked.per_page, count(ranked.len()));
    let shown = slice(ranked, &page);
    Ok(FlakyList {
        project: project.tag(),
        window_days: ENGINE_WINDOW_DAYS,
        sort: asked.sort,
        page,
        tests: entries(call, snapshot, &history, shown, asked.explain)?,
        failing_count: suspects.failing,
        gathering_data_count: suspects.gathering,
    })
}

/// Flaky and broken tests of the window, judged at the time of the request.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct FlakyList {
    /// The project.
    project: ProjectTag,
    /// The engine's fixed window in days.
    window_days: i64,
    /// The order of the list.
    sort: FlakySort,
    /// Where this page lies in the list.
    page: Page,
    /// The tests of this page.
    tests: Vec<VerdictEntry>,
    /// Tests whose newest runs failed and that are neither flaky nor broken; the list leaves them out.
    failing_count: u64,
    /// Tests of the window with too few runs for a verdict.
    gathering_data_count: u64,
}

/// The parameters.
struct Asked {
    status: Option<VerdictStatus>,
    sort: FlakySort,
    /// Folded.
    search: Option<String>,
    page: u64,
    per_page: PerPage,
    explain: bool,
}

type Named = (TestName, Verdict);
/// The final attempt's start, and its run.
type Last = (Timestamp, LastRun);

impl Asked {
    fn of(query: &Query<'_>) -> Result<Self, ApiError> {
        Ok(Self {
            status: query.parse("status", "must be one of flaky, broken", |word| match word {
                "flaky" => Some(VerdictStatus::Flaky),
                "broken" => Some(VerdictStatus::Broken),
                _ => None,
            })?,
            sort: query.word("sort")?.unwrap_or(FlakySort::TimeLost),
            search: query.text("search")?.map(|text| fold(&text)),
            page: query.page()?,
            per_page: query.per_page()?,
            explain: query.flag("explain")?,
        })
    }

    /// The tests that match, in a total order, so that pages never overlap.
    fn rank(&self, tests: Vec<Named>) -> Vec<Named> {
        let mut matching: Vec<_> = tests.into_iter().filter(|test| self.matches(test)).collect();
        matching.sort_by(|(left_name, left), (right_name, right)| {
            self.compare(left, right)
                .then_with(|| right.figures.flake_score.total_cmp(&left.figures.flake_score))
                .then_with(|| left_name.cmp(right_name))
        });
        matching
    }

    fn matches(&self, (test, verdict): &Named) -> bool {
        let contains = |search: &String| {
            let holds = |text: &str| contains_folded(text, search);
            holds(&test.name) || test.file_path.as_deref().is_some_and(holds)
        };
        self.status.is_none_or(|status| verdict.status == status) && self.search.as_ref().is_none_or(contains)
    }

    /// The largest first, unknown last.
    fn compare(&self, left: &Verdict, right: &Verdict) -> Ordering {
        let (left, right) = (&left.figures, &right.figures);
        match self.sort {
            FlakySort::TimeLost => right.time_lost_ms.cmp(&left.time_lost_ms),
            FlakySort::Rate => match (left.failure_rate, right.failure_rate) {
                (Some(left), Some(right)) => right.total_cmp(&left),
                (left, right) => right.is_some().cmp(&left.is_some()),
            },
            FlakySort::Impact => right.impact.total_cmp(&left.impact),
        }
    }
}

/// The tests with their names.
fn named(snapshot: &mut dyn Snapshot, listed: Vec<Verdict>) -> Result<Vec<Named>, StoreError> {
    let ordinals: Vec<TestOrdinal> = listed.iter().map(|verdict| verdict.test).collect();
    let names = snapshot.test_names(&ordinals)?;
    same_length("test name", names.len(), listed.len())?;
    Ok(names.into_iter().zip(listed).collect())
}

/// The entries of one page, with what only a page is asked for: final results and evidence.
fn entries(
    call: &Call<'_>,
    snapshot: &mut dyn Snapshot,
    history: &History,
    shown: Vec<Named>,
    explain: bool,
) -> Result<Vec<VerdictEntry>, StoreError> {
    let last_runs = last_runs(snapshot, history, &shown)?;
    let mut evidence = if explain {
        evidence(call, history, &shown)
    } else {
        HashMap::new()
    };
    let entry = |((test, verdict), last): (Named, Option<Last>)| {
        let evidence = evidence.remove(&verdict.test);
        VerdictEntry::new(test, verdict, last, evidence)
    };
    Ok(shown.into_iter().zip(last_runs).map(entry).collect())
}

fn evidence(call: &Call<'_>, history: &History, shown: &[Named]) -> HashMap<TestOrdinal, Evidence> {
    let tests: Vec<_> = shown.iter().map(|(_, verdict)| verdict.test).collect();
    let judgements = call.engine.judge_tests(history, call.now, &tests);
    judgements
        .into_iter()
        .map(|judgement| (judgement.verdict.test, judgement.evidence))
        .collect()
}

/// Each test's newest run that did not skip it, with its final result there.
fn last_runs(
    snapshot: &mut dyn Snapshot,
    history: &History,
    shown: &[Named],
) -> Result<Vec<Option<Last>>, StoreError> {
    let run_of = |verdict: &Verdict| Some(&history.runs.get(verdict.last_run?)?.run);
    let runs: Vec<_> = shown.iter().map(|(_, verdict)| run_of(verdict)).collect();
    let asked: Vec<_> = shown
        .iter()
        .zip(&runs)
        .filter_map(|((_, verdict), run)| {
            let run = (*run)?;
            Some(ResultKey {
                test: verdict.test,
                run_number: run.number,
                run_started_at: run.started_at,
            })
        })
        .collect();
    let results = snapshot.final_results(&asked)?;
    same_length("final result", results.len(), asked.len())?;
    let mut results = results.into_iter();
    let last = |run: Option<&RunFacts>| {
        let run = run?;
        let result = results.next()?;
        let last = LastRun {
            run_id: run.id.to_string(),
            run_number: run.number,
            status: result.status,
            started_at: run.started_at,
        };
        Some((result.started_at, last))
    };
    Ok(runs.into_iter().map(last).collect())
}

fn slice(ranked: Vec<Named>, page: &Page) -> Vec<Named> {
    let offset = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let per_page = usize::try_from(page.per_page).unwrap_or(usize::MAX);
    ranked.into_iter().skip(offset).take(per_page).collect()
}

/// An answer in the same order has the same length; anything else would pair a test with another's facts.
fn same_length(what: &'static str, got: usize, asked: usize) -> Result<(), StoreError> {
    if got == asked {
        return Ok(());
    }
    Err(StoreError::Corrupt {
        what,
        value: format!("{got} answers to {asked} questions"),
    })
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use assay_domain::verdict::Figures;

    use super::*;

    #[test]
    fn a_search_finds_a_sigma_in_any_case_and_place() {
        let verdict = |test| Verdict {
            test,
            status: VerdictStatus::Flaky,
            reason: None,
            explanation: String::new(),
            signals: Vec::new(),
            labels: Vec::new(),
            figures: Figures::default(),
            last_run: None,
            failing_on: Vec::new(),
        };
        let test = |name: &str, file_path: Option<&str>| TestName {
            name: name.to_owned(),
            file_path: file_path.map(str::to_owned),
        };
        let asked = Asked {
            status: None,
            sort: FlakySort::TimeLost,
            search: Some(fold("ΟΔΟΣ")),
            page: 1,
            per_page: PerPage::Ten,
            explain: false,
        };
        let found = asked.rank(vec![
            (test("x", Some("ΟΔΟΣΑ.ts")), verdict(0)),
            (test("οδός", None), verdict(1)),
            (test("μια οδος", None), verdict(2)),
        ]);
        let found: Vec<_> = found.iter().map(|(_, verdict)| verdict.test).collect();
        assert_eq!(found, [0, 2]);
    }
}
