//! Computes a test's counts only from its history and the excluded runs in the evidence.

use std::collections::{BTreeMap, BTreeSet};

use assay_domain::timestamp::{DAY_MS, Timestamp};
use assay_testkit::text;
use serde_json::{Value, json};

/// One run that did not skip the test.
#[derive(Debug, Clone)]
pub(crate) struct CountedRun {
    pub(crate) run: String,
    pub(crate) number: i64,
    pub(crate) started_at: i64,
    pub(crate) status: String,
    pub(crate) any_failed: bool,
    branch: Option<String>,
    /// None for a run without a revision, which shares its code with no other run.
    revision: Option<String>,
    revision_branch: Option<String>,
    revision_seen_at: i64,
    suite: Option<String>,
    lost_ms: Option<u64>,
}

/// The chain of a branch and suite, its runs in the order of their revisions.
type Chain<'a> = Vec<&'a CountedRun>;

/// The counts.
pub(crate) struct Recount {
    /// Oldest first.
    pub(crate) all_runs: Vec<CountedRun>,
    /// The runs that were not excluded.
    pub(crate) considered: Vec<CountedRun>,
    pub(crate) skipped: usize,
    stable_branch: String,
}

impl CountedRun {
    fn of(occurrence: &Value) -> Self {
        let optional = |field: &str| occurrence[field].as_str().map(str::to_owned);
        Self {
            run: text(&occurrence["runId"]),
            number: occurrence["runNumber"].as_i64().unwrap(),
            started_at: time(&occurrence["startedAt"]),
            status: text(&occurrence["status"]),
            any_failed: occurrence["anyFailedAttempt"].as_bool().unwrap(),
            branch: optional("branch"),
            revision: optional("testedRevision").or_else(|| optional("commitSha")),
            revision_branch: optional("revisionBranch"),
            revision_seen_at: time(&occurrence["revisionSeenAt"]),
            suite: optional("suite"),
            lost_ms: occurrence["lostMs"].as_u64(),
        }
    }

    pub(crate) fn failed(&self) -> bool {
        self.status == "failed" || self.status == "timedOut"
    }

    pub(crate) fn recovered(&self) -> bool {
        self.any_failed && !self.failed()
    }

    fn same_code(&self, other: &Self) -> bool {
        self.revision.is_some() && self.revision == other.revision
    }
}

fn time(value: &Value) -> i64 {
    value.as_str().unwrap().parse::<Timestamp>().unwrap().unix_ms()
}

impl Recount {
    /// The counts of the 14 days before the judgement.
    pub(crate) fn of(history: &Value, evidence: &Value) -> Self {
        let now = time(&evidence["now"]);
        let window = now - evidence["windowDays"].as_i64().unwrap() * DAY_MS..=now;
        let occurrences: Vec<&Value> = history["occurrences"]
            .as_array()
            .unwrap()
            .iter()
            .rev()
            .filter(|occurrence| window.contains(&time(&occurrence["startedAt"])))
            .collect();
        let skips =
            |occurrence: &&&Value| occurrence["status"] == "skipped" || occurrence["status"] == "interrupted";
        let all_runs: Vec<CountedRun> = occurrences
            .iter()
            .filter(|occurrence| !skips(occurrence))
            .map(|occurrence| CountedRun::of(occurrence))
            .collect();
        let dropped: BTreeSet<&str> = evidence["dropped"]
            .as_array()
            .unwrap()
            .iter()
            .map(|dropped| dropped["runId"].as_str().unwrap())
            .collect();
        Self {
            skipped: occurrences.len() - all_runs.len(),
            considered: all_runs
                .iter()
                .filter(|entry| !dropped.contains(entry.run.as_str()))
                .cloned()
                .collect(),
            all_runs,
            stable_branch: text(&history["stableBranch"]),
        }
    }

    /// The considered runs of this kind, newest first.
    pub(crate) fn runs(&self, wanted: impl Fn(&CountedRun) -> bool) -> Vec<String> {
        let wanted = self.considered.iter().rev().filter(|entry| wanted(entry));
        wanted.map(|entry| entry.run.clone()).collect()
    }

    /// These runs, each once.
    pub(crate) fn newest_first(&self, runs: Vec<String>) -> Vec<String> {
        self.runs(|entry| runs.contains(&entry.run))
    }

    pub(crate) fn mass_failures(&self) -> Vec<String> {
        let considered: BTreeSet<i64> = self.considered.iter().map(|entry| entry.number).collect();
        let dropped = self
            .all_runs
            .iter()
            .rev()
            .filter(|entry| entry.any_failed && !considered.contains(&entry.number));
        dropped.map(|entry| entry.run.clone()).collect()
    }

    /// The chains by suite and branch.
    fn chains(&self) -> BTreeMap<(Option<&str>, Option<&str>), Chain<'_>> {
        let mut chains: BTreeMap<_, Chain<'_>> = BTreeMap::new();
        for entry in &self.considered {
            let key = (entry.suite.as_deref(), entry.revision_branch.as_deref());
            chains.entry(key).or_default().push(entry);
        }
        for chain in chains.values_mut() {
            chain.sort_by_key(|entry| (entry.revision_seen_at, entry.started_at, entry.number));
        }
        chains
    }

    /// The runs of each revision of a chain on which the test both failed and did not.
    pub(crate) fn contradictions(&self) -> Vec<Vec<String>> {
        let chains = self.chains();
        let revisions = chains
            .values()
            .flat_map(|chain| chain.chunk_by(|left, right| left.same_code(right)));
        revisions
            .filter(|runs| {
                runs.iter().any(|entry| entry.failed()) && runs.iter().any(|entry| !entry.failed())
            })
            .map(|runs| runs.iter().map(|entry| entry.run.clone()).collect())
            .collect()
    }

    pub(crate) fn episodes(&self) -> usize {
        let chains = self.chains();
        let episode_starts = chains.values().flat_map(|chain| {
            let groups = chain.chunk_by(|left, right| left.failed() == right.failed());
            groups.map(|group| group[0]).filter(|first| first.failed())
        });
        episode_starts.filter(|first| self.is_own_episode(first)).count()
    }

    /// Whether no earlier suite failed on the revision of a failure. Failures of several suites on one revision are one
    /// episode.
    fn is_own_episode(&self, failure: &CountedRun) -> bool {
        let mut others = self
            .considered
            .iter()
            .filter(|other| other.suite < failure.suite && other.failed());
        !others.any(|other| {
            other.same_code(failure)
                || other.revision.is_none() && failure.revision.is_none() && other.run == failure.run
        })
    }

    /// By chain, the runs whose result differs from the run before.
    pub(crate) fn flips(&self) -> Vec<Vec<String>> {
        let chains = self.chains();
        let flips = |chain: &Chain<'_>| -> Vec<String> {
            let pairs = chain
                .windows(2)
                .filter(|pair| pair[0].any_failed != pair[1].any_failed);
            pairs.map(|pair| pair[1].run.clone()).collect()
        };
        chains.values().map(flips).collect()
    }

    /// The number of neighbouring runs in all chains.
    pub(crate) fn pairs(&self) -> usize {
        self.chains().values().map(|chain| chain.len() - 1).sum()
    }

    /// The failed runs at the end of the chain.
    fn streak(chain: &Chain<'_>) -> Vec<String> {
        let failed = chain.iter().rev().take_while(|entry| entry.failed());
        failed.map(|entry| entry.run.clone()).collect()
    }

    /// The test's last run on a chain, including excluded runs.
    fn newest(&self, suite: Option<&str>, branch: Option<&str>) -> i64 {
        let chain = self
            .all_runs
            .iter()
            .filter(|entry| entry.suite.as_deref() == suite && entry.revision_branch.as_deref() == branch);
        chain.map(|entry| entry.started_at).max().unwrap_or(i64::MIN)
    }

    /// The streaks at the ends of the live stable chains.
    fn stable_ends(&self) -> Vec<Vec<String>> {
        let chains = self.live_stable_chains();
        let streaks = chains.iter().map(|chain| self.newest_first(Self::streak(chain)));
        streaks.filter(|streak| !streak.is_empty()).collect()
    }

    /// The stable chains whose newest run is at most three days older than the newest run on the stable branch.
    fn live_stable_chains(&self) -> Vec<Chain<'_>> {
        let stable = Some(self.stable_branch.as_str());
        let chains = self.chains();
        let on_stable = self
            .all_runs
            .iter()
            .filter(|entry| entry.revision_branch.as_deref() == stable);
        let newest = on_stable.map(|entry| entry.started_at).max().unwrap_or(i64::MIN);
        chains
            .into_iter()
            .filter(|((suite, branch), _)| {
                *branch == stable && newest - self.newest(*suite, *branch) <= 3 * DAY_MS
            })
            .map(|(_, chain)| chain)
            .collect()
    }

    /// Whether a chain ends in a failure that counts for the test's current state.
    pub(crate) fn fails_now(&self) -> bool {
        !self.failing_now().is_empty()
    }

    /// The number of episodes that have not ended.
    pub(crate) fn open_episodes(&self) -> usize {
        let first_failures = self.failing_now();
        first_failures
            .iter()
            .filter(|first| self.is_own_episode(first))
            .count()
    }

    /// The first failure of the streak of each live stable chain. A test that never ran on a stable chain has its
    /// newest chain instead.
    fn failing_now(&self) -> Vec<&CountedRun> {
        let stable = Some(self.stable_branch.as_str());
        if self
            .all_runs
            .iter()
            .any(|entry| entry.revision_branch.as_deref() == stable)
        {
            return Self::first_failures(self.live_stable_chains());
        }
        let newest = self.all_runs.iter().map(|seen| seen.started_at).max();
        let chains = self.chains().into_iter();
        let newest = chains.filter(|((suite, branch), _)| Some(self.newest(*suite, *branch)) == newest);
        Self::first_failures(newest.map(|(_, chain)| chain).collect())
    }

    /// The first failure of the streak at the end of each chain.
    fn first_failures<'s>(chains: Vec<Chain<'s>>) -> Vec<&'s CountedRun> {
        let first = |chain: &Chain<'s>| {
            let failed = chain.iter().rev().take_while(|seen| seen.failed());
            failed.last().copied()
        };
        chains.iter().filter_map(first).collect()
    }

    /// The branches other than the stable one that end with failures: branch, streak and the number of its first run.
    pub(crate) fn failing_on(&self) -> Vec<(Option<String>, usize, i64)> {
        let newest = self.all_runs.iter().map(|entry| entry.started_at).max();
        let mut named: BTreeMap<Option<String>, (usize, i64)> = BTreeMap::new();
        for ((suite, branch), chain) in self.chains() {
            let failed = chain.iter().rev().take_while(|entry| entry.failed());
            let streak: Vec<i64> = failed.map(|entry| entry.number).collect();
            let is_live = newest.is_some_and(|newest| newest - self.newest(suite, branch) <= 3 * DAY_MS);
            let (Some(since), true) = (streak.last(), is_live) else {
                continue;
            };
            if branch == Some(self.stable_branch.as_str()) {
                continue;
            }
            let known = named.entry(branch.map(str::to_owned)).or_default();
            if streak.len() > known.0 {
                *known = (streak.len(), *since);
            }
        }
        let mut named: Vec<_> = named
            .into_iter()
            .map(|(branch, (streak, since))| (branch, streak, since))
            .collect();
        named.sort_by_key(|(_, streak, _)| std::cmp::Reverse(*streak));
        named.truncate(20);
        named
    }

    /// The streak of two or more failures at the end of a stable chain. If several suites end with one, the model
    /// selects the worst, and `evidence_runs` are the runs that it selected.
    pub(crate) fn breakage(&self, evidence_runs: &Value) -> Option<Vec<String>> {
        let ends = self.stable_ends().into_iter();
        let mut ends: Vec<Vec<String>> = ends.filter(|streak| streak.len() >= 2).collect();
        let selected = ends
            .iter()
            .position(|end| evidence_runs == &json!(end[..end.len().min(20)]));
        (!ends.is_empty()).then(|| ends.swap_remove(selected.unwrap_or(0)))
    }

    /// The longest streak of two or more at the end of a chain of another branch, if the stable chains pass.
    pub(crate) fn off_stable(&self) -> Option<Vec<String>> {
        if !self.stable_ends().is_empty() {
            return None;
        }
        let newest = self.all_runs.last()?.started_at;
        let chains = self.chains();
        let streaks = chains
            .iter()
            .filter(|((_, branch), _)| *branch != Some(self.stable_branch.as_str()))
            .filter(|((suite, branch), _)| newest - self.newest(*suite, *branch) <= 3 * DAY_MS)
            .map(|(_, chain)| self.newest_first(Self::streak(chain)))
            .filter(|streak| streak.len() >= 2);
        streaks.rev().max_by_key(Vec::len)
    }

    /// The first failed run of each branch other than the stable one, newest first. A branch counts only if the test
    /// passed after the failure that was counted before.
    pub(crate) fn unrelated_branches(&self) -> Vec<String> {
        let mut known = BTreeSet::new();
        let mut first_failures = Vec::new();
        let mut passed = true;
        for seen in &self.considered {
            passed |= !seen.failed();
            let Some(branch) = &seen.revision_branch else {
                continue;
            };
            if seen.failed() && *branch != self.stable_branch && known.insert(branch) && passed {
                first_failures.push(seen.run.clone());
                passed = false;
            }
        }
        first_failures.reverse();
        first_failures
    }

    pub(crate) fn failing_variants(&self) -> usize {
        let failing = self.considered.iter().filter(|entry| entry.any_failed);
        failing.map(|entry| &entry.suite).collect::<BTreeSet<_>>().len()
    }

    pub(crate) fn variants(&self) -> usize {
        let suites = self.considered.iter().map(|entry| &entry.suite);
        suites.collect::<BTreeSet<_>>().len()
    }

    /// The runs since the last failure, and the number of runs until the test counts as resolved.
    pub(crate) fn passes_since(&self) -> (Vec<String>, usize) {
        let last = self.considered.iter().rposition(|entry| entry.any_failed);
        let until = last.map_or(0, |last| last + 1);
        let failing = self.considered.iter().filter(|entry| entry.any_failed).count() as f64;
        let rate = (failing - 0.5).max(0.0) / (until as f64 + 1.0);
        let explained = |passes: &usize| (1.0 - rate).powi(*passes as i32) >= 0.0001;
        let needed = (30..10_000)
            .find(|passes| !explained(passes))
            .unwrap_or(usize::MAX);
        let passes = self.considered[until..].iter().rev();
        (passes.map(|entry| entry.run.clone()).collect(), needed)
    }

    /// Failed runs at the end of the stable branch's history, or of all branches' if the test never ran there.
    pub(crate) fn failure_streak(&self) -> usize {
        let stable = Some(self.stable_branch.as_str());
        let ever = self
            .all_runs
            .iter()
            .any(|entry| entry.branch.as_deref() == stable);
        let runs = self
            .all_runs
            .iter()
            .rev()
            .filter(|entry| !ever || entry.branch.as_deref() == stable);
        runs.take_while(|entry| entry.failed()).count()
    }

    pub(crate) fn time_lost(&self) -> Option<u64> {
        let timed = self.all_runs.iter().filter_map(|entry| entry.lost_ms);
        timed.reduce(|sum, lost| sum + lost)
    }
}
