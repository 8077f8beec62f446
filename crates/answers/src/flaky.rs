//! The flaky list: the engine's live verdicts over its fixed window.

use std::collections::HashMap;

use assay_domain::{
    observation::{History, RunFacts, RunObservations},
    owners::Owners,
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
    test_list::{NamedVerdict, TestFilters, compare},
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
        let suspects = shared(snapshot, key, (from, now), |_| {
            let suspects = judge(&history);
            let bytes = suspects.verdicts.iter().map(Verdict::bytes).sum();
            Ok((suspects, bytes))
        })?;
        let stable = StableBranchState::in_snapshot(snapshot, &history, (from, now))?;
        let owners = owners(snapshot, now)?;
        let ordinals: Vec<TestOrdinal> = suspects.verdicts.iter().map(|verdict| verdict.test).collect();
        let names = snapshot.test_names(&ordinals)?;
        check_length("test name", names.len(), ordinals.len())?;
        let named = names.iter().map(TestName::borrowed).zip(&suspects.verdicts);
        let ranked = query.rank(named.collect(), &owners);
        let page = Page::of(query.page, query.per_page, count(ranked.len()));
        let on_page: Vec<NamedVerdict<'_>> = page.part(ranked).collect();
        let mut tests = verdict_entries(snapshot, (&history, &stable, &owners), &on_page)?;
        let mut evidence = match query.explain {
            true => evidence(engine, &history, now, &on_page),
            false => HashMap::new(),
        };
        for ((_, verdict), entry) in on_page.iter().zip(&mut tests) {
            entry.evidence = evidence.remove(&verdict.test);
        }
        Ok(FlakyList {
            project: project.tag(),
            window_days: ENGINE_WINDOW_DAYS,
            stable: stable.state(&history),
            sort: query.sort,
            page,
            tests,
            failing_count: suspects.failing,
            gathering_data_count: suspects.gathering,
        })
    })
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
    /// The filters beside the verdict: text and owner.
    pub filters: TestFilters,
    /// The requested page, from 1.
    pub page: u64,
    /// Tests per page.
    pub per_page: PerPage,
    /// Whether each entry has the numbers behind its verdict.
    pub explain: bool,
}

/// The final attempt's start, and its run.
type FinalResult = (Timestamp, LastRun);

impl FlakyQuery {
    /// The tests that match, in a total order, so that pages never overlap.
    fn rank<'a>(&self, mut tests: Vec<NamedVerdict<'a>>, owners: &Owners) -> Vec<NamedVerdict<'a>> {
        let has_name = self.filters.select_name(owners);
        tests.retain(|(test, verdict)| {
            self.status.is_none_or(|status| verdict.status == status) && has_name(test)
        });
        tests.sort_by(|left, right| compare(self.sort.into(), left, right));
        tests
    }
}

/// The entries of these verdicts, in their order, without evidence.
pub(crate) fn verdict_entries(
    snapshot: &mut dyn Snapshot,
    (history, stable, owners): (&History, &StableBranchState, &Owners),
    tests: &[NamedVerdict<'_>],
) -> Result<Vec<VerdictEntry>, StoreError> {
    let last_runs = last_runs(snapshot, history, tests.iter().map(|(_, verdict)| *verdict))?;
    let ordinals: Vec<TestOrdinal> = tests.iter().map(|(_, verdict)| verdict.test).collect();
    let former_names = snapshot.former_names(&ordinals)?;
    check_length("former names", former_names.len(), tests.len())?;
    let mut owners = owners.lookup();
    let entry = |(((test, verdict), last), former_names): ((&NamedVerdict<'_>, _), _)| {
        let since = stable.failing_since(history, verdict.test);
        let failed_in = |run: &&RunObservations| run.failure(verdict.test).is_some();
        let failed_runs = history.runs.iter().filter(failed_in);
        let first_failed_at = failed_runs.map(|observed| observed.run.started_at).min();
        VerdictEntry {
            ownership: owners.of(test.file_path).clone(),
            former_names,
            ..VerdictEntry::new(
                test.owned(),
                (*verdict).clone(),
                since,
                first_failed_at,
                last,
                None,
            )
        }
    };
    Ok(tests.iter().zip(last_runs).zip(former_names).map(entry).collect())
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
fn last_runs<'v>(
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
fn check_length(what: &'static str, length: usize, expected: usize) -> Result<(), StoreError> {
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
            filters: TestFilters {
                search: Some("ΟΔΟΣ".to_owned()),
                ..TestFilters::default()
            },
            page: 1,
            per_page: PerPage::Ten,
            explain: false,
        };
        let verdicts = [0, 1, 2].map(verdict);
        let names = [
            test("x", Some("ΟΔΟΣΑ.ts")),
            test("οδός", None),
            test("μια οδος", None),
        ];
        let tests = names.iter().map(TestName::borrowed).zip(&verdicts).collect();
        let ranked = query.rank(tests, &Owners::default());
        let ranked: Vec<_> = ranked.iter().map(|(_, verdict)| verdict.test).collect();
        assert_eq!(ranked, [0, 2]);
    }
}
