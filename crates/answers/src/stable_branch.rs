//! The state of the stable branch, or of a release branch: the tests whose newest result there failed. It is a fact of the
//! newest runs, whatever the verdicts on these tests are.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use assay_domain::{
    observation::{History, RunFacts, RunObservations, failing_since},
    page::PerPage,
    period::{Days, Period},
    project::Project,
    run::RunQuery,
    store::{SharedKey, Snapshot, Store, StoreError, shared},
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, FailingSince},
};
use serde::{Deserialize, Serialize};

use crate::numbers::count;

/// Most groups of failing tests in the sentence.
const GROUPS: usize = 3;

/// The state of the stable branch in a history. Runs are indices into [`History::runs`].
///
/// The newest run is the last one in the order of revisions. A suite's state is that of its newest complete run, with what later incomplete runs have reported. So an incomplete
/// run neither hides the failures of shards that are still missing, nor delays a failure that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StableBranchState {
    branch: Arc<str>,
    /// The suites that ran on the branch, by name.
    suites: BTreeMap<Arc<str>, Suite>,
    /// The failing tests, each with the first run since which every result of it failed.
    failing: HashMap<TestOrdinal, usize>,
    /// Whether any run of the history has a branch. Otherwise all count as runs of the stable one.
    has_branches: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Suite {
    newest: usize,
    failing: u64,
}

impl StableBranchState {
    /// The state of the stable branch at the end of this history.
    pub fn of(history: &History) -> Self {
        Self::of_branch(history, &history.stable_branch)
    }

    /// The state of a branch at the end of this history.
    pub fn of_branch(history: &History, branch: &str) -> Self {
        let mut state = Self {
            branch: branch.into(),
            suites: BTreeMap::new(),
            failing: HashMap::new(),
            has_branches: history.stable().any_branch_named,
        };
        for (name, runs) in history.runs_of(branch) {
            let oldest_first: Vec<(usize, &RunObservations)> = runs
                .into_iter()
                .filter_map(|index| Some((index, history.runs.get(index)?)))
                .collect();
            let Some((newest, _)) = oldest_first.last() else {
                continue;
            };
            let observed: Vec<&RunObservations> =
                oldest_first.iter().map(|(_, observed)| *observed).collect();
            let failing = failing_since(&observed);
            let suite = Suite {
                newest: *newest,
                failing: count(failing.len()),
            };
            state.suites.insert(name, suite);
            for (test, place) in failing {
                let Some((since, _)) = oldest_first.get(place).copied() else {
                    continue;
                };
                let oldest = state.failing.entry(test).or_insert(since);
                let started = |index: usize| history.runs.get(index).map(|run| run.run.started_at);
                if started(since) < started(*oldest) {
                    *oldest = since;
                }
            }
        }
        state
    }

    /// The same, computed once for all requests over the same runs of the engine's window.
    ///
    /// # Errors
    /// If the store fails.
    pub fn in_snapshot(
        snapshot: &mut dyn Snapshot,
        history: &History,
        window: (Timestamp, Timestamp),
    ) -> Result<Arc<Self>, StoreError> {
        let key = SharedKey::of_window("stable branch");
        shared(snapshot, key, window, |_| {
            let state = Self::of(history);
            let bytes = size_of_val(&state) + state.failing.len() * 2 * size_of::<(TestOrdinal, usize)>();
            Ok((state, bytes))
        })
    }

    /// The newest run of the branch, of any suite.
    pub fn newest<'h>(&self, history: &'h History) -> Option<&'h RunFacts> {
        let order = history.revision_order();
        let newest = self.suites.values().map(|suite| suite.newest);
        let newest = newest.max_by_key(|run| order.get(*run))?;
        Some(&history.runs.get(newest)?.run)
    }

    /// The number of failing tests.
    pub fn failing(&self) -> usize {
        self.failing.len()
    }

    /// Whether this test fails.
    pub fn fails(&self, test: TestOrdinal) -> bool {
        self.failing.contains_key(&test)
    }

    /// The first run since which every result of this test failed on the branch; none if its newest result did not fail.
    pub fn failing_since(&self, history: &History, test: TestOrdinal) -> Option<FailingSince> {
        since(history, *self.failing.get(&test)?)
    }

    /// The failing tests by the run with which their failures began, the newest run first.
    fn groups(&self, history: &History) -> Vec<(usize, usize)> {
        let mut groups: BTreeMap<usize, usize> = BTreeMap::new();
        for run in self.failing.values() {
            *groups.entry(*run).or_default() += 1;
        }
        let mut groups: Vec<(usize, usize)> = groups.into_iter().collect();
        groups.sort_unstable_by_key(|(run, _)| {
            let run = history.runs.get(*run).map(|observed| &observed.run);
            std::cmp::Reverse(run.map(|run| (run.started_at, run.number)))
        });
        groups
    }

    /// The run with which the oldest of the failures began; none if no test fails.
    pub fn red_since(&self, history: &History) -> Option<FailingSince> {
        since(history, self.groups(history).last()?.0)
    }

    /// One sentence without a full stop, such as "14 tests fail on main since run 31".
    pub fn sentence(&self, history: &History) -> String {
        let on = match self.has_branches {
            true => format!(" on {}", self.branch),
            false => String::new(),
        };
        let gaps = self.suite_states(history).filter_map(|suite| suite.gap());
        std::iter::once(self.tests_sentence(history, &on))
            .chain(gaps)
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn tests_sentence(&self, history: &History, on: &str) -> String {
        let number = |run: usize| history.runs.get(run).map_or(0, |observed| observed.run.number);
        let groups = self.groups(history);
        match groups.as_slice() {
            [] if self.suites.is_empty() => {
                format!("Nothing ran{on} in the last {ENGINE_WINDOW_DAYS} days")
            }
            [] => match self.suites.values().next() {
                Some(only) if self.suites.len() == 1 => {
                    format!("No test fails{on} as of run {}", number(only.newest))
                }
                _ => format!(
                    "No test fails{on} in the newest runs of its {} suites",
                    self.suites.len()
                ),
            },
            [(run, tests)] => format!("{}{on} since run {}", fail(count(*tests)), number(*run)),
            [newest @ .., (oldest, of_oldest)] if groups.len() <= GROUPS => {
                let newest: Vec<String> = newest
                    .iter()
                    .map(|(run, tests)| format!("{tests} since run {}", number(*run)))
                    .collect();
                format!(
                    "{}{on}: {} and {of_oldest} since run {}",
                    fail(count(self.failing.len())),
                    newest.join(", "),
                    number(*oldest)
                )
            }
            _ => {
                let named = groups.iter().take(GROUPS);
                let rest: usize = groups.iter().skip(GROUPS).map(|(_, tests)| tests).sum();
                let named: Vec<String> = named
                    .map(|(run, tests)| format!("{tests} since run {}", number(*run)))
                    .collect();
                format!(
                    "{}{on}: {} and {rest} since earlier runs",
                    fail(count(self.failing.len())),
                    named.join(", ")
                )
            }
        }
    }

    /// The newest runs of the suites.
    fn suite_states(&self, history: &History) -> impl Iterator<Item = SuiteState> {
        self.suites.iter().filter_map(|(name, suite)| {
            let newest = history.runs.get(suite.newest)?;
            Some(SuiteState {
                suite: (!name.is_empty()).then(|| name.to_string()),
                run_id: newest.run.id.to_string(),
                run_number: newest.run.number,
                started_at: newest.run.started_at,
                revision: newest.run.revision.as_deref().map(str::to_owned),
                complete: newest.ending.complete,
                failed_outside_tests: newest.ending.failed_outside_tests,
                failing: suite.failing,
            })
        })
    }

    /// The state for the API.
    pub fn state(&self, history: &History) -> BranchState {
        BranchState {
            branch: self.branch.to_string(),
            failing: count(self.failing.len()),
            explanation: self.sentence(history),
            failing_since: self
                .groups(history)
                .first()
                .and_then(|(run, _)| since(history, *run)),
            red_since: self.red_since(history),
            suites: self.suite_states(history).collect(),
        }
    }
}

/// The state of a branch, as of the newest runs of its suites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BranchState {
    /// The stable branch, or the requested one.
    pub branch: String,
    /// Tests whose newest result on the branch failed, whatever their verdicts.
    pub failing: u64,
    /// One sentence, such as "14 tests fail on main since run 31".
    pub explanation: String,
    /// The run with which the newest of these failures began; null if no test fails.
    pub failing_since: Option<FailingSince>,
    /// The run with which the oldest of these failures began; null if no test fails.
    pub red_since: Option<FailingSince>,
    /// The newest run of each suite, by the suite's name.
    pub suites: Vec<SuiteState>,
}

/// The newest run of a suite on a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SuiteState {
    /// The suite; null for the default one.
    pub suite: Option<String>,
    /// The run.
    pub run_id: String,
    /// Its number.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// Its start.
    pub started_at: Timestamp,
    /// The revision that it tested, if known.
    pub revision: Option<String>,
    /// Whether every expected shard has reported and no report was cut short. The tests that an incomplete run has not
    /// reported count as in the suite's newest complete run.
    pub complete: bool,
    /// Whether it failed with an error that belongs to no test, and no test of it failed.
    pub failed_outside_tests: bool,
    /// Tests of the suite whose newest result failed.
    pub failing: u64,
}

/// A suite after a word, such as " of unit"; empty for the default one.
pub(crate) fn of_suite(suite: Option<&str>) -> String {
    suite.map_or_else(String::new, |name| format!(" of {name}"))
}

impl SuiteState {
    /// Why the run says too little, without a full stop; none if it is complete.
    pub(crate) fn gap(&self) -> Option<String> {
        let what = match (self.failed_outside_tests, self.complete) {
            (true, _) => "failed with an error outside of its tests",
            (false, false) => "is not complete",
            (false, true) => return None,
        };
        Some(format!(
            "run {}{} {what}",
            self.run_number,
            of_suite(self.suite.as_deref())
        ))
    }
}

/// The authors of the newest runs of a branch, by the numbers of the runs.
///
/// # Errors
/// If the store fails.
pub fn authors(
    store: &dyn Store,
    project: &Project,
    branch: &str,
    now: Timestamp,
) -> Result<HashMap<i32, String>, StoreError> {
    let of_branch = RunQuery {
        branch: Some(branch.to_owned()),
        trusted: Some(true),
        ..RunQuery::newest(Period::ending(now, Days::Thirty), PerPage::Fifty)
    };
    let newest = store.runs(project, &of_branch)?.runs.into_iter();
    Ok(newest
        .filter_map(|run| Some((run.run_number, run.author_name?)))
        .collect())
}

/// A run of a history by its index.
pub(crate) fn since(history: &History, run: usize) -> Option<FailingSince> {
    let run = &history.runs.get(run)?.run;
    Some(FailingSince {
        run_id: run.id.to_string(),
        run_number: run.number,
        started_at: run.started_at,
        revision: run.revision.as_deref().map(str::to_owned),
    })
}

/// Such as "14 tests fail".
pub(crate) fn fail(tests: u64) -> String {
    match tests {
        0 => "no test fails".to_owned(),
        1 => "1 test fails".to_owned(),
        _ => format!("{tests} tests fail"),
    }
}

#[cfg(test)]
mod tests {
    use assay_domain::{
        attempt::AttemptStatus::{Failed, Passed, Skipped},
        execution::TestOutcome,
        observation::RunEnding,
    };

    use super::*;

    /// A run in the order of its number. `results` has a letter for each test: P, F, S, or - where it did not run.
    fn run(number: i32, branch: &str, suite: &str, results: &str) -> RunObservations {
        let mut observed = RunObservations::of(RunFacts {
            id: format!("r{number}").into(),
            number,
            started_at: Timestamp::from_unix_ms(i64::from(number) * 60_000),
            branch: (!branch.is_empty()).then(|| branch.into()),
            revision: Some(format!("c{number}").into()),
            variant: suite.into(),
            ..RunFacts::default()
        });
        for (test, letter) in (0..).zip(results.chars()) {
            let attempts: &[_] = match letter {
                'P' => &[Passed],
                'F' => &[Failed],
                'R' => &[Failed, Passed],
                'S' => &[Skipped],
                _ => continue,
            };
            let outcome = TestOutcome::of([attempts.iter().map(|status| (*status, None))]).unwrap();
            observed.add(test, &outcome);
        }
        observed
    }

    fn incomplete(run: RunObservations) -> RunObservations {
        RunObservations {
            ending: RunEnding {
                complete: false,
                ..run.ending
            },
            ..run
        }
    }

    /// The sentence, and the number of the run since which each test fails.
    fn state(runs: Vec<RunObservations>) -> (String, Vec<(TestOrdinal, i32)>) {
        let history = History {
            stable_branch: "main".into(),
            tests: 8,
            runs,
        };
        let state = StableBranchState::of(&history);
        let mut failing: Vec<_> = (0..8)
            .filter_map(|test| Some((test, state.failing_since(&history, test)?.run_number)))
            .collect();
        failing.sort_unstable();
        assert_eq!(failing.len(), state.failing());
        let shown = state.state(&history);
        let numbers =
            [&shown.red_since, &shown.failing_since].map(|since| since.as_ref().map(|run| run.run_number));
        let begun = || failing.iter().map(|(_, run)| *run);
        assert_eq!(numbers, [begun().min(), begun().max()]);
        (state.sentence(&history), failing)
    }

    #[test]
    fn a_commit_that_breaks_everything_is_shown_after_its_first_run() {
        let (sentence, failing) = state(vec![run(1, "main", "", "PPPPPP"), run(2, "main", "", "FFFFFF")]);
        assert_eq!(sentence, "6 tests fail on main since run 2");
        assert_eq!(failing, (0..6).map(|test| (test, 2)).collect::<Vec<_>>());
    }

    #[test]
    fn a_streak_begins_with_its_first_failure_and_skips_runs_without_a_result() {
        let runs = vec![
            run(1, "main", "", "FP"),
            run(2, "main", "", "PF"),
            run(3, "main", "", "FS"),
            run(4, "main", "", "R-"),
            run(5, "main", "", "FF"),
        ];
        let (sentence, failing) = state(runs);
        assert_eq!(failing, [(0, 5), (1, 2)]);
        assert_eq!(sentence, "2 tests fail on main: 1 since run 5 and 1 since run 2");
    }

    #[test]
    fn each_suite_counts_with_its_own_newest_run_and_other_branches_do_not_count() {
        let runs = vec![
            run(1, "main", "unit", "FP--"),
            run(2, "main", "e2e", "--PP"),
            run(3, "feature", "unit", "PF--"),
        ];
        let (sentence, failing) = state(runs);
        assert_eq!(failing, [(0, 1)]);
        assert_eq!(sentence, "1 test fails on main since run 1");
    }

    #[test]
    fn a_test_that_the_newest_complete_run_does_not_contain_does_not_fail() {
        let (sentence, failing) = state(vec![run(1, "main", "", "FP"), run(2, "main", "", "-P")]);
        assert_eq!(
            (sentence.as_str(), failing.len()),
            ("No test fails on main as of run 2", 0)
        );
    }

    #[test]
    fn a_run_in_which_no_test_ran_shows_no_state() {
        let (sentence, failing) = state(vec![run(1, "main", "", "FP"), run(2, "main", "", "SS")]);
        assert_eq!(
            (sentence.as_str(), failing),
            ("1 test fails on main since run 1", vec![(0, 1)])
        );
    }

    #[test]
    fn an_incomplete_run_adds_what_it_reports_and_hides_nothing() {
        let runs = vec![run(1, "main", "", "FFP"), incomplete(run(2, "main", "", "P-F"))];
        let (sentence, failing) = state(runs);
        assert_eq!(failing, [(1, 1), (2, 2)]);
        assert_eq!(
            sentence,
            "2 tests fail on main: 1 since run 2 and 1 since run 1; run 2 is not complete"
        );
    }

    #[test]
    fn a_pass_in_the_newest_complete_run_ends_the_failures_before_it() {
        let runs = vec![
            run(1, "main", "", "F"),
            run(2, "main", "", "P"),
            incomplete(run(3, "main", "", "F")),
        ];
        assert_eq!(state(runs).1, [(0, 3)]);
    }

    #[test]
    fn a_run_that_failed_outside_of_its_tests_is_named() {
        let mut failed = run(2, "main", "unit", "PP");
        failed.ending.failed_outside_tests = true;
        let (sentence, _) = state(vec![run(1, "main", "e2e", "PP"), failed]);
        assert_eq!(
            sentence,
            "No test fails on main in the newest runs of its 2 suites; \
             run 2 of unit failed with an error outside of its tests"
        );
    }

    #[test]
    fn many_beginnings_are_summed_up() {
        let runs = vec![
            run(1, "main", "", "FPPPP"),
            run(2, "main", "", "FFPPP"),
            run(3, "main", "", "FFFPP"),
            run(4, "main", "", "FFFFF"),
        ];
        assert_eq!(
            state(runs).0,
            "5 tests fail on main: 2 since run 4, 1 since run 3, 1 since run 2 and 1 since earlier runs"
        );
    }

    #[test]
    fn histories_without_branches_and_without_stable_runs_have_a_sentence() {
        assert_eq!(state(vec![run(1, "", "", "F")]).0, "1 test fails since run 1");
        assert_eq!(
            state(vec![run(1, "x", "", "F")]).0,
            "Nothing ran on main in the last 14 days"
        );
    }
}
