//! Every test of the engine's window: which ones match, their order, and their figures. The route, the page and the tool
//! for agents have the same list.

use std::{
    cell::RefCell,
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use assay_domain::{
    folding::fold,
    observation::{Bitmap, History},
    outcomes::{self, Outcome},
    owners::OwnerFilter,
    page::{Page, PerPage},
    project::{Project, ProjectTag},
    signature::SignatureHits,
    store::{SharedKey, Snapshot, Store, StoreError, in_snapshot, shared},
    test::TestOrdinal,
    test_names::{TestNameRef, TestNames},
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, TestSort, Verdict, VerdictEntry, VerdictStatus},
};
use serde::Serialize;

mod figures;

pub use self::figures::{Interval, OutcomeCounts, Results};

use self::figures::{usual_durations, wilson};
use crate::{
    flaky::verdict_entries,
    numbers::count,
    owners::{Owners, owners},
    stable_branch::{BranchState, StableBranchState},
};

/// Most owners of an answer.
pub(crate) const OWNERS: usize = 100;

/// The number of newest results on the stable branch of an entry.
const STABLE_RESULTS: usize = 20;

/// The verdicts on the tests of the engine's window.
pub struct JudgedTests {
    /// The runs of the window.
    pub history: Arc<History>,
    /// What fails on the stable branch now.
    pub stable: Arc<StableBranchState>,
    /// The owners of the tests.
    pub owners: Arc<Owners>,
    pub(crate) verdicts: Arc<Vec<Verdict>>,
}

/// The name of a test that has a result.
pub(crate) fn name_of(names: &TestNames, test: TestOrdinal) -> Result<TestNameRef<'_>, StoreError> {
    names.get(test).ok_or_else(|| StoreError::Corrupt {
        what: "result of an unknown test",
        value: test.to_string(),
    })
}

/// A verdict with the name of its test.
pub type NamedVerdict<'a> = (TestNameRef<'a>, &'a Verdict);

impl JudgedTests {
    /// The verdicts as of one state of the project. Requests over the same settled runs share them.
    pub fn in_snapshot(
        snapshot: &mut dyn Snapshot,
        judge: impl Fn(&History) -> Vec<Verdict>,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let window = (now.plus_days(-ENGINE_WINDOW_DAYS), now);
        let history = snapshot.observations(window.0, window.1)?;
        let stable = StableBranchState::in_snapshot(snapshot, &history, window)?;
        let owners = owners(snapshot, now)?;
        let key = SharedKey::of_verdicts("all tests", &history, now);
        let verdicts = shared(snapshot, key, window, |_| {
            let verdicts = judge(&history);
            let bytes = verdicts.iter().map(Verdict::bytes).sum();
            Ok((verdicts, bytes))
        })?;
        Ok(Self {
            history,
            stable,
            owners,
            verdicts,
        })
    }

    /// The number of tests by verdict.
    pub fn counts(&self) -> StatusCounts {
        StatusCounts::of_verdicts(&*self.verdicts)
    }

    /// The verdicts that `is_included` selects, with the names of their tests.
    pub fn entries<'a>(
        &'a self,
        names: &'a TestNames,
        is_included: impl Fn(&NamedVerdict<'a>) -> bool,
    ) -> Result<Vec<NamedVerdict<'a>>, StoreError> {
        let mut entries = Vec::new();
        for verdict in &*self.verdicts {
            let name = name_of(names, verdict.test)?;
            if is_included(&(name, verdict)) {
                entries.push((name, verdict));
            }
        }
        Ok(entries)
    }

    /// The owners of these tests, those with the most tests that need work first. A test with several owners counts for
    /// each.
    pub(crate) fn owner_counts(&self, tests: &[NamedVerdict<'_>]) -> Vec<OwnerCounts> {
        let mut lookup = self.owners.lookup();
        let mut groups: BTreeMap<String, StatusCounts> = BTreeMap::new();
        for (test, verdict) in tests {
            for owner in lookup.of(test.file_path).groups() {
                let of_owner = groups.entry(owner.to_owned()).or_default();
                of_owner.add(verdict.status);
            }
        }
        let mut counts: Vec<OwnerCounts> = groups
            .into_iter()
            .map(|(owner, counts)| OwnerCounts { owner, counts })
            .collect();
        counts
            .sort_by_key(|OwnerCounts { counts, .. }| Reverse([counts.broken, counts.failing, counts.flaky]));
        counts
    }
}

/// Filters of the list beside the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TestFilters {
    /// Only tests whose name or file contains this, ignoring case.
    pub search: Option<String>,
    /// Only tests whose file contains this, ignoring case.
    pub file: Option<String>,
    /// Only tests that failed or recovered on this branch.
    pub branch: Option<String>,
    /// Only tests that failed or recovered in this variant.
    pub variant: Option<String>,
    /// Only tests with an occurrence of the error with this fingerprint.
    pub error: Option<String>,
    /// Only tests whose newest result on the stable branch failed.
    pub is_red: bool,
    /// Only tests that first failed this week.
    pub is_new: bool,
    /// Only tests with this owner.
    pub owner: Option<OwnerFilter>,
}

impl TestFilters {
    /// The tests of an owner; all without one.
    pub fn of_owner(owner: Option<String>) -> Self {
        Self {
            owner: owner.as_deref().map(OwnerFilter::of),
            ..Self::default()
        }
    }

    /// The tests with the error, if the filters name one.
    fn hits(&self, snapshot: &mut dyn Snapshot, now: Timestamp) -> Result<Option<SignatureHits>, StoreError> {
        match &self.error {
            Some(error) => snapshot.tests_with_signature(error, now.plus_days(-ENGINE_WINDOW_DAYS), now),
            None => Ok(None),
        }
    }

    /// Whether the name, the file and the owners of a test match.
    pub(crate) fn select_name(&self, owners: &Owners) -> impl Fn(&TestNameRef<'_>) -> bool {
        let (search, file) = (self.search.as_deref().map(fold), self.file.as_deref().map(fold));
        let lookup = RefCell::new(owners.lookup());
        move |test| {
            let contains = |search: &str| test.contains_folded(search);
            let is_in = |file: &str| test.file_contains_folded(file);
            let is_of = |owner: &OwnerFilter| owner.selects(lookup.borrow_mut().of(test.file_path));
            file.as_deref().is_none_or(is_in)
                && search.as_deref().is_none_or(contains)
                && self.owner.as_ref().is_none_or(is_of)
        }
    }

    /// The tests that match. `hits` are the tests with the error.
    fn matching<'a>(
        &self,
        judged: &'a JudgedTests,
        names: &'a TestNames,
        hits: Option<&SignatureHits>,
        now: Timestamp,
    ) -> Result<Vec<NamedVerdict<'a>>, StoreError> {
        let history = &judged.history;
        let on_branch = self
            .branch
            .as_deref()
            .map(|branch| outcomes::failing(history, |run| run.run.branch.as_deref() == Some(branch)));
        let in_variant = self.variant.as_deref().map(|variant| {
            outcomes::failing(history, |run| outcomes::variant_name(&run.run.variant) == variant)
        });
        let with_error = self
            .error
            .is_some()
            .then(|| hits.iter().flat_map(|hits| &hits.tests).copied().collect());
        let new = self
            .is_new
            .then(|| outcomes::newly_failing(history, now.plus_days(-outcomes::NEW_DAYS)));
        let filter_bitmaps: Vec<Bitmap> = [on_branch, in_variant, with_error, new]
            .into_iter()
            .flatten()
            .collect();
        let has_name = self.select_name(&judged.owners);
        judged.entries(names, |(test, verdict)| {
            filter_bitmaps.iter().all(|tests| tests.contains(verdict.test))
                && (!self.is_red || judged.stable.fails(verdict.test))
                && has_name(test)
        })
    }
}

/// Filters, order and page of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestQuery {
    /// The filters beside the verdict.
    pub filters: TestFilters,
    /// Only tests with this verdict.
    pub status: Option<VerdictStatus>,
    /// The order of the list.
    pub sort: TestSort,
    /// Whether the tests are counted by owner.
    pub by_owner: bool,
    /// The requested page, from 1.
    pub page: u64,
    /// Tests per page.
    pub per_page: PerPage,
}

/// At most `most` items from index `first` on, in the order of `compare`. Only these are sorted.
fn sorted_part<T>(
    mut items: Vec<T>,
    (first, most): (usize, usize),
    compare: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let end = first.saturating_add(most);
    if end < items.len() {
        items.select_nth_unstable_by(end, &compare);
        items.truncate(end);
    }
    if first >= items.len() {
        return Vec::new();
    }
    items.select_nth_unstable_by(first, &compare);
    let mut part = items.split_off(first);
    part.sort_unstable_by(compare);
    part
}

/// Compares by the chosen figure, the largest first and unknown last, or by verdict, the worst first, then by lost time.
/// The order is total, so that pages do not overlap.
pub(crate) fn compare(
    sort: TestSort,
    (left_name, left): &NamedVerdict<'_>,
    (right_name, right): &NamedVerdict<'_>,
) -> Ordering {
    let rank = |verdict: &Verdict| {
        VerdictStatus::LISTED
            .iter()
            .position(|status| *status == verdict.status)
    };
    let (left_figures, right_figures) = (&left.figures, &right.figures);
    let by_figure = match sort {
        TestSort::TimeLost => right_figures.time_lost_ms.cmp(&left_figures.time_lost_ms),
        TestSort::Score => right_figures.flake_score.total_cmp(&left_figures.flake_score),
        TestSort::Rate => right_figures
            .failure_rate
            .unwrap_or(-1.0)
            .total_cmp(&left_figures.failure_rate.unwrap_or(-1.0)),
        TestSort::Impact => right_figures.impact.total_cmp(&left_figures.impact),
        TestSort::Name => return left_name.cmp(right_name),
        TestSort::Verdict => rank(left)
            .cmp(&rank(right))
            .then_with(|| right_figures.time_lost_ms.cmp(&left_figures.time_lost_ms)),
    };
    // Tests with equal figures have the order of the flaky list.
    by_figure
        .then_with(|| right_figures.flake_score.total_cmp(&left_figures.flake_score))
        .then_with(|| left_name.cmp(right_name))
}

/// One page of the tests of the last 14 days as of one state of the project. `judge` calls the engine.
pub fn test_list(
    store: &dyn Store,
    judge: impl Fn(&History) -> Vec<Verdict>,
    project: &Project,
    query: &TestQuery,
    now: Timestamp,
) -> Result<TestList, StoreError> {
    in_snapshot(store, project, |snapshot| {
        let judged = JudgedTests::in_snapshot(snapshot, &judge, now)?;
        TestList::in_snapshot(snapshot, project, &judged, query, now)
    })
}

/// One page of the tests of the window.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TestList {
    /// The project.
    pub project: ProjectTag,
    /// The engine's fixed window in days.
    pub window_days: i64,
    /// What fails on the stable branch now, whatever the verdicts.
    pub stable: BranchState,
    /// The tests that match the other filters, by verdict.
    pub counts: StatusCounts,
    /// The order of the list.
    pub sort: TestSort,
    /// The position of this page in the list.
    pub page: Page,
    /// The same counts by owner, with `group=owner`: the owners with the most broken, then failing, then flaky tests first.
    /// A test with several owners counts for each; `unowned` has those without one. Null without `group`.
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    pub owners: Option<Vec<OwnerCounts>>,
    /// The number of further owners; null without `group`.
    pub other_owners: Option<u64>,
    /// The tests of this page.
    pub tests: Vec<TestListEntry>,
    /// The title of the filters' error, if the window has it.
    #[serde(skip)]
    pub error_title: Option<String>,
}

impl TestList {
    /// A page of these tests.
    pub fn in_snapshot(
        snapshot: &mut dyn Snapshot,
        project: &Project,
        judged: &JudgedTests,
        query: &TestQuery,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let names = snapshot.all_test_names()?;
        let hits = query.filters.hits(snapshot, now)?;
        let mut matching = query.filters.matching(judged, &names, hits.as_ref(), now)?;
        let counts = StatusCounts::of_verdicts(matching.iter().map(|(_, verdict)| *verdict));
        let mut owners = query.by_owner.then(|| judged.owner_counts(&matching));
        let other_owners = owners.as_mut().map(|owners| {
            let others = owners.len().saturating_sub(OWNERS);
            owners.truncate(OWNERS);
            count(others)
        });
        matching.retain(|(_, verdict)| query.status.is_none_or(|status| verdict.status == status));
        let page = Page::of(query.page, query.per_page, count(matching.len()));
        let tests = sorted_part(matching, page.bounds(), |left, right| {
            compare(query.sort, left, right)
        });
        Ok(Self {
            project: project.tag(),
            window_days: ENGINE_WINDOW_DAYS,
            stable: judged.stable.state(&judged.history),
            counts,
            sort: query.sort,
            page,
            owners,
            other_owners,
            tests: TestListEntry::of_tests(snapshot, judged, &tests, now)?,
            error_title: hits.map(|hits| hits.title),
        })
    }
}

/// The number of tests by verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusCounts {
    /// Tests.
    pub total: usize,
    /// Broken ones.
    pub broken: usize,
    /// Those whose newest runs failed, with an open cause.
    pub failing: usize,
    /// Flaky ones.
    pub flaky: usize,
    /// Healthy ones.
    pub healthy: usize,
    /// Those with too few runs for a verdict.
    pub insufficient_data: usize,
}

impl StatusCounts {
    /// The counts of these verdicts.
    pub(crate) fn of_verdicts<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        let mut counts = Self::default();
        for verdict in verdicts {
            counts.add(verdict.status);
        }
        counts
    }

    const fn add(&mut self, status: VerdictStatus) {
        self.total += 1;
        *self.with(status) += 1;
    }

    /// The number of tests with this verdict.
    pub const fn of(mut self, status: VerdictStatus) -> usize {
        *self.with(status)
    }

    const fn with(&mut self, status: VerdictStatus) -> &mut usize {
        match status {
            VerdictStatus::Broken => &mut self.broken,
            VerdictStatus::Failing => &mut self.failing,
            VerdictStatus::Flaky => &mut self.flaky,
            VerdictStatus::Healthy => &mut self.healthy,
            VerdictStatus::InsufficientData => &mut self.insufficient_data,
        }
    }
}

/// The tests of an owner by verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OwnerCounts {
    /// The owner, or `unowned`.
    pub owner: String,
    /// The tests.
    #[serde(flatten)]
    pub counts: StatusCounts,
}

/// A test of the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TestListEntry {
    /// The verdict.
    #[serde(flatten)]
    pub verdict: VerdictEntry,
    /// The runs of the window with a result of the test, by the worst outcome of the test.
    pub runs: OutcomeCounts,
    /// The 95 % interval of `failureRate` by Wilson's score; null if it is null.
    pub failure_rate_interval: Option<Interval>,
    /// The median duration in milliseconds of its passes at the first attempt in the newest complete runs of each suite on
    /// the stable branch: of an even number the lower middle one. Null without such a pass.
    pub p50_ms: Option<u64>,
    /// The 95th percentile of the same durations: the smallest that 95 % of them do not exceed.
    pub p95_ms: Option<u64>,
    /// The newest 24 results on all branches, the newest last: `P` passed, `R` passed on retry, `F` failed, `S` skipped.
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[PRFS]{0,24}$"))]
    pub newest_results: Results,
    /// The newest 20 results on the stable branch, the newest last.
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[PRFS]{0,20}$"))]
    pub stable_results: Results,
    /// The variants with a result, by name.
    pub variants: Vec<String>,
    /// The start of the window's first run with a result.
    pub first_seen_at: Option<Timestamp>,
    /// The start of the newest run of the window in which an attempt failed.
    pub last_failed_at: Option<Timestamp>,
}

impl TestListEntry {
    /// The entries of these tests, in their order.
    fn of_tests(
        snapshot: &mut dyn Snapshot,
        judged: &JudgedTests,
        tests: &[NamedVerdict<'_>],
        now: Timestamp,
    ) -> Result<Vec<Self>, StoreError> {
        let history = &judged.history;
        let durations = usual_durations(snapshot, history, now)?;
        let verdicts = verdict_entries(snapshot, (history, &judged.stable, &judged.owners), tests)?;
        let indexes = outcomes::run_indexes(history);
        let (runs, stable) = (outcomes::indexed_runs(history, &indexes), history.stable());
        let start = |(index, _): &(usize, Outcome)| runs.get(*index).map(|run| run.started_at);
        let is_stable = |(index, _): &(usize, Outcome)| {
            let run = runs.get(*index);
            run.is_some_and(|run| stable.is(run.branch.as_deref()))
        };
        let entry = |((_, Verdict { test, figures, .. }), verdict): (&NamedVerdict<'_>, _)| {
            let results = outcomes::worst(history, &indexes, *test);
            let on_stable: Vec<_> = results.iter().copied().filter(is_stable).collect();
            let failed = |(_, outcome): &&(usize, Outcome)| *outcome > Outcome::Passed;
            let (p50_ms, p95_ms) = durations.get(test).copied().unzip();
            Self {
                verdict,
                runs: OutcomeCounts::of(&results),
                failure_rate_interval: figures
                    .failure_rate
                    .map(|rate| wilson(rate, figures.runs_considered)),
                p50_ms,
                p95_ms,
                newest_results: Results::newest(&results, outcomes::NEWEST),
                stable_results: Results::newest(&on_stable, STABLE_RESULTS),
                variants: outcomes::variants(history, *test),
                first_seen_at: results.first().and_then(start),
                last_failed_at: results.iter().rev().find(failed).and_then(start),
            }
        };
        Ok(tests.iter().zip(verdicts).map(entry).collect())
    }
}

/// The names of variants that a history has.
pub fn variants(history: &History) -> BTreeSet<&str> {
    let runs = history.runs.iter();
    runs.map(|run| outcomes::variant_name(&run.run.variant)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sorted_part_is_that_part_of_the_sorted_whole() {
        let items: Vec<u32> = (0..100).map(|item| item * 37 % 100).collect();
        for (first, most) in [
            (0, 10),
            (95, 10),
            (40, 50),
            (0, 1_000),
            (100, 5),
            (usize::MAX, 2),
            (7, 0),
        ] {
            let expected: Vec<u32> = (0..100).skip(first).take(most).collect();
            assert_eq!(
                sorted_part(items.clone(), (first, most), u32::cmp),
                expected,
                "{first} {most}"
            );
        }
        assert_eq!(sorted_part(Vec::<u32>::new(), (0, 5), u32::cmp), [0_u32; 0]);
    }
}
