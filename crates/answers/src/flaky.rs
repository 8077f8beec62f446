//! The flaky list: the engine's live verdicts over its fixed window.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
};

use assay_domain::{
    folding::fold,
    observation::{History, RunFacts},
    owners::{OwnerFilter, Owners},
    page::{Page, PerPage},
    project::{Project, ProjectTag},
    store::{ResultKey, SharedKey, Snapshot, Store, StoreError, in_snapshot, shared},
    test::{TestName, TestOrdinal},
    timestamp::Timestamp,
    verdict::{
        ENGINE_WINDOW_DAYS, Evidence, FlakySort, Judge, LastRun, Suspects, Verdict, VerdictEntry,
        VerdictStatus,
    },
};
use serde::Serialize;

use crate::{
    numbers::count,
    owners::owners,
    stable_branch::{BranchState, StableBranchState},
};

/// The flaky and broken tests of the last 14 days as of one state of the project. A simultaneous import or deletion
/// does not mix two states. `judge` calls the engine; the caller measures its duration there.
pub fn flaky_list(
    store: &dyn Store,
    engine: &dyn Judge,
    judge: impl Fn(&History) -> Suspects,
    project: &Project,
    query: &FlakyQuery,
    now: Timestamp,
) -> Result<FlakyList, StoreError> {
    in_snapshot(store, project, |snapshot| {
        let from = now.plus_days(-ENGINE_WINDOW_DAYS);
        let history = snapshot.observations(from, now)?;
        // A verdict depends on the runs of the window that are settled, so requests over the same ones share it.
        let key = SharedKey::of_verdicts("flaky list", &history, now);
        let judged = shared(snapshot, key, (from, now), |_| {
            let suspects = judge(&history);
            let first_failures = first_failures(&history, &suspects);
            let bytes: usize = suspects.verdicts.iter().map(Verdict::bytes).sum();
            let bytes = bytes + first_failures.len() * size_of::<(TestOrdinal, Timestamp)>();
            Ok((
                JudgedWindow {
                    suspects,
                    first_failures,
                },
                bytes,
            ))
        })?;
        let JudgedWindow {
            suspects,
            first_failures,
        } = &*judged;
        let stable = StableBranchState::in_snapshot(snapshot, &history, (from, now))?;
        let owners = owners(snapshot, now)?;
        let ranked = query.rank(with_names(snapshot, &suspects.verdicts)?, &owners);
        let page = Page::of(query.page, query.per_page, count(ranked.len()));
        let on_page: Vec<NamedVerdict<'_>> = page.part(ranked).collect();
        let last_runs = last_runs(snapshot, &history, on_page.iter().map(|(_, verdict)| *verdict))?;
        let mut evidence = if query.explain {
            evidence(engine, &history, now, &on_page)
        } else {
            HashMap::new()
        };
        let on_page_tests: Vec<TestOrdinal> = on_page.iter().map(|(_, verdict)| verdict.test).collect();
        let former_names = snapshot.former_names(&on_page_tests)?;
        check_length("former names", former_names.len(), on_page.len())?;
        let mut owners = owners.lookup();
        let entry = |((test, verdict), last, former_names): (NamedVerdict<'_>, _, _)| {
            let evidence = evidence.remove(&verdict.test);
            let failing_since = stable.failing_since(&history, verdict.test);
            let first_failed_at = first_failures.get(&verdict.test).copied();
            let ownership = owners.of(test.file_path.as_deref()).clone();
            VerdictEntry {
                ownership,
                former_names,
                ..VerdictEntry::new(
                    test,
                    verdict.clone(),
                    failing_since,
                    first_failed_at,
                    last,
                    evidence,
                )
            }
        };
        let entries = on_page.into_iter().zip(last_runs).zip(former_names);
        let entries = entries.map(|((named, last), former)| (named, last, former));
        Ok(FlakyList {
            project: project.tag(),
            window_days: ENGINE_WINDOW_DAYS,
            stable: stable.state(&history),
            sort: query.sort,
            page,
            tests: entries.map(entry).collect(),
            failing_count: suspects.failing,
            gathering_data_count: suspects.gathering,
        })
    })
}

/// The verdicts of a window, which requests share.
struct JudgedWindow {
    suspects: Suspects,
    /// Of the suspects.
    first_failures: HashMap<TestOrdinal, Timestamp>,
}

/// The first failure of each suspect.
fn first_failures(history: &History, suspects: &Suspects) -> HashMap<TestOrdinal, Timestamp> {
    let mut first = history.first_failures();
    let tests: HashSet<TestOrdinal> = suspects.verdicts.iter().map(|verdict| verdict.test).collect();
    first.retain(|test, _| tests.contains(test));
    first.shrink_to_fit();
    first
}

/// Flaky and broken tests of the window, judged at the time of the request.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlakyList {
    /// The project.
    pub project: ProjectTag,
    /// The engine's fixed window in days.
    pub window_days: i64,
    /// What fails on the stable branch now, whatever the verdicts.
    pub stable: BranchState,
    /// The order of the list.
    pub sort: FlakySort,
    /// The position of this page in the list.
    pub page: Page,
    /// The tests of this page.
    pub tests: Vec<VerdictEntry>,
    /// Tests whose newest runs failed but that are neither flaky nor broken. The list omits them.
    pub failing_count: u64,
    /// Tests of the window with too few runs for a verdict.
    pub gathering_data_count: u64,
}

/// Filters, order and page of the flaky list.
#[derive(Debug, Clone)]
pub struct FlakyQuery {
    /// Only tests with this verdict.
    pub status: Option<VerdictStatus>,
    /// The order of the list.
    pub sort: FlakySort,
    /// Only tests whose name or file contains this, ignoring case.
    pub search: Option<String>,
    /// Only tests with this owner.
    pub owner: Option<OwnerFilter>,
    /// The requested page, from 1.
    pub page: u64,
    /// Tests per page.
    pub per_page: PerPage,
    /// Whether each entry has the numbers behind its verdict.
    pub explain: bool,
}

type NamedVerdict<'a> = (TestName, &'a Verdict);
/// The final attempt's start, and its run.
pub(crate) type FinalResult = (Timestamp, LastRun);

impl FlakyQuery {
    /// The tests that match, in a total order, so that pages never overlap.
    fn rank<'a>(&self, tests: Vec<NamedVerdict<'a>>, owners: &Owners) -> Vec<NamedVerdict<'a>> {
        let search = self.search.as_deref().map(fold);
        let mut lookup = owners.lookup();
        let mut has_owner = |(test, _): &NamedVerdict<'_>| match &self.owner {
            Some(owner) => owner.selects(lookup.of(test.file_path.as_deref())),
            None => true,
        };
        let matches = |test: &NamedVerdict<'_>| self.matches(test, search.as_deref()) && has_owner(test);
        let mut matching: Vec<_> = tests.into_iter().filter(matches).collect();
        matching.sort_by(|(left_name, left), (right_name, right)| {
            self.compare(left, right)
                .then_with(|| right.figures.flake_score.total_cmp(&left.figures.flake_score))
                .then_with(|| left_name.cmp(right_name))
        });
        matching
    }

    fn matches(&self, (test, verdict): &NamedVerdict<'_>, search: Option<&str>) -> bool {
        self.status.is_none_or(|status| verdict.status == status)
            && search.is_none_or(|search| test.borrowed().contains_folded(search))
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

/// The verdicts with the names of their tests.
fn with_names<'a>(
    snapshot: &mut dyn Snapshot,
    verdicts: &'a [Verdict],
) -> Result<Vec<NamedVerdict<'a>>, StoreError> {
    let ordinals: Vec<TestOrdinal> = verdicts.iter().map(|verdict| verdict.test).collect();
    let names = snapshot.test_names(&ordinals)?;
    check_length("test name", names.len(), verdicts.len())?;
    Ok(names.into_iter().zip(verdicts).collect())
}

fn evidence(
    engine: &dyn Judge,
    history: &History,
    now: Timestamp,
    verdicts: &[NamedVerdict<'_>],
) -> HashMap<TestOrdinal, Evidence> {
    let tests: Vec<_> = verdicts.iter().map(|(_, verdict)| verdict.test).collect();
    let judgements = engine.judge_tests(history, now, &tests);
    judgements
        .into_iter()
        .map(|judgement| (judgement.verdict.test, judgement.evidence))
        .collect()
}

/// Each test's newest run that did not skip it, with its final result there.
pub(crate) fn last_runs<'v>(
    snapshot: &mut dyn Snapshot,
    history: &History,
    verdicts: impl Iterator<Item = &'v Verdict> + Clone,
) -> Result<Vec<Option<FinalResult>>, StoreError> {
    let run_of = |verdict: &Verdict| Some(&history.runs.get(verdict.last_run?)?.run);
    let runs: Vec<_> = verdicts.clone().map(run_of).collect();
    let keys: Vec<_> = verdicts
        .zip(&runs)
        .filter_map(|(verdict, run)| {
            let run = (*run)?;
            Some(ResultKey {
                test: verdict.test,
                run_number: run.number,
                run_started_at: run.started_at,
            })
        })
        .collect();
    let results = snapshot.final_results(&keys)?;
    check_length("final result", results.len(), keys.len())?;
    let mut results = results.into_iter();
    let last = |run: Option<&RunFacts>| {
        let run = run?;
        let result = results.next()?;
        let last_run = LastRun {
            run_id: run.id.to_string(),
            run_number: run.number,
            status: result.status,
            started_at: run.started_at,
        };
        Some((result.started_at, last_run))
    };
    Ok(runs.into_iter().map(last).collect())
}

/// Lists in the same order must have the same length. Otherwise a test would be paired with another test's data.
pub(crate) fn check_length(what: &'static str, length: usize, expected: usize) -> Result<(), StoreError> {
    if length == expected {
        return Ok(());
    }
    Err(StoreError::Corrupt {
        what,
        value: format!("{length} values for {expected} tests"),
    })
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
        let query = FlakyQuery {
            status: None,
            sort: FlakySort::TimeLost,
            search: Some("ΟΔΟΣ".to_owned()),
            owner: None,
            page: 1,
            per_page: PerPage::Ten,
            explain: false,
        };
        let verdicts = [0, 1, 2].map(verdict);
        let tests = vec![
            (test("x", Some("ΟΔΟΣΑ.ts")), &verdicts[0]),
            (test("οδός", None), &verdicts[1]),
            (test("μια οδος", None), &verdicts[2]),
        ];
        let ranked = query.rank(tests, &Owners::default());
        let ranked: Vec<_> = ranked.iter().map(|(_, verdict)| verdict.test).collect();
        assert_eq!(ranked, [0, 2]);
    }
}
