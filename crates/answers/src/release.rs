//! Whether a release may be cut from a branch: what fails there and not on the stable branch, by the newest runs of both.

use std::{cmp::Reverse, sync::Arc};

use assay_domain::{
    observation::{History, RunObservations},
    owners::Ownership,
    page::{Page, PerPage},
    period::{Days, Period},
    project::{Project, ProjectTag},
    release_branch::ReleaseAnswer,
    run::RunQuery,
    store::{Store, StoreError, in_snapshot},
    test::{TestName, TestOrdinal},
    timestamp::{DAY_MS, Timestamp},
    verdict::{ENGINE_WINDOW_DAYS, FailingSince, Verdict, VerdictStatus},
};
use serde::{Deserialize, Serialize};

use crate::{
    numbers::count,
    stable_branch::{BranchState, StableBranchState, SuiteState, authors, fail, of_suite},
    test_list::{JudgedTests, name_of},
};

/// Whether a release may be cut from a branch, by the runs of the last 14 days.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReleaseState {
    /// The project.
    pub project: ProjectTag,
    /// Whether a release may be cut.
    pub answer: ReleaseAnswer,
    /// The answer with its reasons as one sentence, with what the branch lacks.
    pub explanation: String,
    /// The state of the branch.
    pub state: BranchState,
    /// The state of the stable branch.
    pub stable: BranchState,
    /// Tests that fail on the branch and not on the stable branch. For the stable branch itself, all that fail.
    pub failing_there_only: u64,
    /// Those of them that the project's verdict calls flaky.
    pub flaky_there_only: u64,
    /// Suites with a run of the stable branch and none of the branch; the default one is empty.
    pub missing_suites: Vec<String>,
    /// The position of this page in the list.
    pub page: Page,
    /// The failing tests of this page: those that fail there only come first, then those since the newest run.
    pub tests: Vec<ReleaseFailure>,
}

/// A test that fails on a branch from which releases are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReleaseFailure {
    /// The full stored name.
    pub test_name: String,
    /// The stored file of the test.
    pub file_path: Option<String>,
    /// Whether it fails on the stable branch, too.
    pub fails_on_stable: bool,
    /// The first run since which every result of it on the branch failed.
    pub failing_since: FailingSince,
    /// The author of that run's commit, if it is one of the 50 newest runs of the branch.
    pub author_name: Option<String>,
    /// The project's verdict on the test, by the runs of all branches.
    pub status: VerdictStatus,
    /// Score from 0 to 1 for an unreliable test.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub flake_score: f64,
    /// The owners of the test.
    #[serde(flatten)]
    pub ownership: Ownership,
}

/// Whether a release may be cut from a branch, as of one state of the project; none if no visible run is of the branch.
/// `judge` calls the engine.
///
/// # Errors
/// If the store fails.
pub fn release(
    store: &dyn Store,
    judge: impl Fn(&History) -> Vec<Verdict>,
    project: &Project,
    branch: &str,
    (page, per_page): (u64, PerPage),
    now: Timestamp,
) -> Result<Option<ReleaseState>, StoreError> {
    let mut state = in_snapshot(store, project, |snapshot| {
        let judged = JudgedTests::in_snapshot(snapshot, &judge, now)?;
        let history = &judged.history;
        let own = StableBranchState::of_branch(history, branch);
        let names = snapshot.all_test_names()?;
        let mut owners = judged.owners.lookup();
        let mut failures = Vec::new();
        for verdict in judged.verdicts.iter() {
            let Some(failing_since) = own.failing_since(history, verdict.test) else {
                continue;
            };
            let TestName { name, file_path } = name_of(&names, verdict.test)?.owned();
            failures.push(ReleaseFailure {
                fails_on_stable: judged.stable.fails(verdict.test),
                author_name: None,
                status: verdict.status,
                flake_score: verdict.figures.flake_score,
                ownership: owners.of(file_path.as_deref()).clone(),
                failing_since,
                test_name: name,
                file_path,
            });
        }
        let is_stable = branch == &*history.stable_branch;
        let there_only = |failure: &ReleaseFailure| is_stable || !failure.fails_on_stable;
        failures.sort_by_cached_key(|failure| {
            let since = &failure.failing_since;
            let newest = Reverse((since.started_at, since.run_number));
            let name = (failure.test_name.clone(), failure.file_path.clone());
            (!there_only(failure), newest, name)
        });
        let failing = failures.partition_point(there_only);
        let of_there_only = failures.iter().take(failing);
        let flaky = of_there_only.filter(|failure| failure.status == VerdictStatus::Flaky);
        let (of_branch, stable) = (own.state(history), judged.stable.state(history));
        let is_missing = |suite: &&SuiteState| !of_branch.suites.iter().any(|own| own.suite == suite.suite);
        let missing = stable.suites.iter().filter(is_missing);
        let missing = missing.map(|suite| suite.suite.clone().unwrap_or_default());
        let page = Page::of(page, per_page, count(failures.len()));
        let mut state = ReleaseState {
            project: project.tag(),
            answer: ReleaseAnswer::Unknown,
            explanation: String::new(),
            failing_there_only: count(failing),
            flaky_there_only: count(flaky.count()),
            missing_suites: missing.collect(),
            state: of_branch,
            stable,
            tests: page.part(failures).collect(),
            page,
        };
        state.decide(partial_runs(history, branch), now);
        Ok(state)
    })?;
    if state.state.suites.is_empty() {
        let of_branch = RunQuery {
            branch: Some(branch.to_owned()),
            ..RunQuery::newest(Period::ending(now, Days::Ninety), PerPage::Ten)
        };
        if store.runs(project, &of_branch)?.runs.is_empty() {
            return Ok(None);
        }
    }
    if !state.tests.is_empty() {
        let authors = authors(store, project, branch, now)?;
        for test in &mut state.tests {
            test.author_name = authors.get(&test.failing_since.run_number).cloned();
        }
    }
    Ok(Some(state))
}

/// Which newest runs of a branch say too little. They ran fewer than half as many tests as another run of the branch or the
/// newest one of the stable branch; or they lack or skipped a test that failed when it last ran, and that the stable branch
/// still runs.
fn partial_runs(history: &History, branch: &str) -> Vec<String> {
    let is_complete = |run: &RunObservations| run.ending.complete;
    let stable = history.counted_runs_of(&history.stable_branch, is_complete);
    let sentence = |(suite, runs): (Arc<str>, Vec<&RunObservations>)| {
        let (newest, earlier) = runs.split_last()?;
        let of_suite = of_suite((!suite.is_empty()).then_some(&*suite));
        let run = format!("run {}{of_suite}", newest.run.number);
        let on_stable = stable.get(&suite).and_then(|runs| runs.last());
        let others = earlier.iter().chain(on_stable).map(|run| run.executed());
        let (usual, ran) = (others.max()?, newest.executed());
        if ran.saturating_mul(2) < usual {
            return Some(format!("{run} ran {ran} of the usual {usual} tests"));
        }
        let is_unresolved = |test: &TestOrdinal| {
            let last = earlier.iter().rfind(|run| run.ran(*test));
            !newest.ran(*test) && last.is_some_and(|run| run.failed(*test))
        };
        let on_stable = on_stable?;
        let ran_there = on_stable.present.iter().filter(|test| on_stable.ran(*test));
        let tests = match ran_there.filter(is_unresolved).count() {
            0 => return None,
            1 => "1 test that failed when it last ran".to_owned(),
            tests => format!("{tests} tests that failed when they last ran"),
        };
        Some(format!("{run} did not run {tests}"))
    };
    let own = history.counted_runs_of(branch, is_complete);
    own.into_iter().filter_map(sentence).collect()
}

impl ReleaseState {
    /// Writes the answer and its sentence.
    fn decide(&mut self, partial_runs: Vec<String>, now: Timestamp) {
        let gaps = [self.gaps(), partial_runs].concat();
        self.answer = match (self.failing_there_only, gaps.is_empty()) {
            (1.., _) => ReleaseAnswer::No,
            (0, false) => ReleaseAnswer::Unknown,
            (0, true) => ReleaseAnswer::Yes,
        };
        let failing = (self.answer != ReleaseAnswer::Unknown).then(|| self.failing_sentence());
        let parts = failing.into_iter().chain(gaps).chain(self.other_facts(now));
        self.explanation = format!("{}: {}", self.answer, parts.collect::<Vec<_>>().join("; "));
    }

    /// Why passing tests would not be enough.
    fn gaps(&self) -> Vec<String> {
        let (branch, stable) = (&self.state.branch, &self.stable.branch);
        if self.state.suites.is_empty() {
            return vec![nothing_ran(branch)];
        }
        let missing = self.missing_suites.iter().map(|suite| {
            let name = Some(suite.as_str()).filter(|name| !name.is_empty());
            let name = name.unwrap_or("the default suite");
            format!("{name} ran on {stable} and not on {branch} in the last {ENGINE_WINDOW_DAYS} days")
        });
        let of_suites = self.state.suites.iter().filter_map(SuiteState::gap);
        of_suites.chain(missing).collect()
    }

    fn failing_sentence(&self) -> String {
        let (branch, stable) = (&self.state.branch, &self.stable.branch);
        let failing = fail(self.failing_there_only);
        let of_them = match (self.flaky_there_only, self.failing_there_only) {
            (0, _) => String::new(),
            (1, 1) => ", and it is flaky".to_owned(),
            (flaky, _) => format!(", {flaky} of them flaky"),
        };
        match branch == stable {
            true => format!("{failing} on {branch}{of_them}"),
            false => format!("{failing} on {branch} and not on {stable}{of_them}"),
        }
    }

    /// What the branches lack or share.
    fn other_facts(&self, now: Timestamp) -> impl Iterator<Item = String> {
        let both = self.state.failing.saturating_sub(self.failing_there_only);
        let lacks_stable = self.stable.suites.is_empty() && self.state.branch != self.stable.branch;
        let oldest = self.state.suites.iter().map(|suite| suite.started_at).min();
        let days = oldest.map_or(0, |oldest| now.since_ms(oldest).div_euclid(DAY_MS));
        let facts = [
            (both > 0).then(|| format!("{} on both", fail(both))),
            lacks_stable.then(|| nothing_ran(&self.stable.branch)),
            (days > 0).then(|| format!("by runs up to {days} d old")),
        ];
        facts.into_iter().flatten()
    }
}

fn nothing_ran(branch: &str) -> String {
    format!("nothing ran on {branch} in the last {ENGINE_WINDOW_DAYS} days")
}
