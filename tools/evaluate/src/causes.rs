//! Evaluates causes and gate on simulated histories with known causes.
//!
//! The simulation differs from the model. A breakage hits 1 to 60 tests, some of which fail only sometimes. It is fixed
//! by the next push, or merged. Some branches break the tests that another one broke in the three days before, and some
//! run again under another name: stacked, rebased or in a merge queue. The environment drifts, runs have outages, and
//! error texts come from finite mixtures.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use assay_answers::failures::{action, gate};
use assay_flakiness::{
    Engine, ErrorTexts,
    domain::{
        cause::{Action, Cause},
        observation::{Bitmap, Failure, History, RunFacts, RunObservations},
        verdict::{Judge as _, VerdictStatus},
    },
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    breakage::{Breakage, Texts},
    gate_counts::{Actions, Bands, causes_for_gate, is_mine},
    runs::{DAYS, time},
};

/// Tests of a simulated project.
const TESTS: u32 = 400;
/// The share of flaky tests.
const FLAKY: f64 = 0.08;
/// Failures before this day are not counted, since their window is not full.
pub(crate) const COUNTED_FROM: f64 = 14.0;
/// Texts up to this number belong to changes and to the environment.
const OWN_TEXTS: u32 = 1 << 20;

/// A flaky test's rate, and its error texts with cumulative weights.
#[derive(Debug, Clone)]
struct Flake {
    rate: f64,
    texts: Vec<(f64, u32)>,
}

/// A period in which the environment is bad for some tests.
#[derive(Debug, Clone)]
struct Drift {
    from: f64,
    to: f64,
    tests: BTreeSet<u32>,
    text: u32,
}

/// A run without its results.
#[derive(Debug, Clone)]
pub(crate) struct BranchRun {
    pub(crate) at: f64,
    /// 0 is the stable branch.
    pub(crate) branch: u32,
    pub(crate) revision: u32,
    /// The breakages in its code: by the branch, and before it.
    pub(crate) own: Vec<Breakage>,
    pub(crate) before: Vec<Breakage>,
    /// The share of tests that an outage fails, and its text.
    pub(crate) outage: Option<(f64, u32)>,
}

impl BranchRun {
    /// A run without breakages.
    pub(crate) const fn new(at: f64, branch: u32, revision: u32) -> Self {
        Self {
            at,
            branch,
            revision,
            own: Vec::new(),
            before: Vec::new(),
            outage: None,
        }
    }

    /// The failure of a test by a breakage in the run's code: its cause and its text.
    pub(crate) fn broken(&self, test: u32, random: &mut StdRng) -> Option<(Cause, u32)> {
        let own = self.own.iter().map(|broken| (self.cause_by(broken), broken));
        let before = self.before.iter().map(|broken| (Cause::BrokenBefore, broken));
        let mut fails = own.chain(before).filter_map(|(cause, broken)| {
            let (rate, text) = broken.tests.get(&test)?;
            random.random_bool(*rate).then_some((cause, *text))
        });
        fails.next()
    }

    /// The text of a test's failure by the run's outage.
    pub(crate) fn outage_text(&self, random: &mut StdRng) -> Option<u32> {
        let (share, text) = self.outage?;
        random.random_bool(share).then_some(text)
    }

    /// The facts of the run at this index of its history.
    pub(crate) fn facts(&self, place: usize) -> RunFacts {
        let branch = match self.branch {
            0 => "main".to_owned(),
            number => format!("branch-{number}"),
        };
        RunFacts {
            id: format!("run-{place}").into(),
            number: i32::try_from(place).unwrap_or(i32::MAX).saturating_add(1),
            started_at: time(self.at),
            revision: Some(format!("{branch}-{}", self.revision).into()),
            branch: Some(branch.into()),
            ..RunFacts::default()
        }
    }

    /// The cause of a failure by one of the run's own breakages.
    pub(crate) const fn cause_by(&self, own: &Breakage) -> Cause {
        match (self.branch, own.revision == self.revision) {
            (0, _) => Cause::BrokenBefore,
            (_, true) => Cause::ThisChange,
            (_, false) => Cause::EarlierOnBranch,
        }
    }
}

/// A project with known causes.
pub(crate) struct CausesWorld {
    pub(crate) history: History,
    pub(crate) texts: ErrorTexts,
    /// The cause of every failure, by the run's index and the test.
    pub(crate) truth: BTreeMap<(usize, u32), Cause>,
    pub(crate) runs: Vec<BranchRun>,
}

/// Plans the runs of the stable branch and of pull requests.
fn plan(texts: &mut Texts, random: &mut StdRng) -> Vec<BranchRun> {
    let mut runs = Vec::new();
    // The breakages of the stable branch, each with its period.
    let mut broken: Vec<(f64, f64, Breakage)> = Vec::new();
    let mut branches: Vec<Vec<BranchRun>> = Vec::new();
    let (mut begins, mut branch) = (0.0, 0);
    // The latest breakages of branches, each with its time.
    let mut former: Vec<(f64, Breakage)> = Vec::new();
    while begins < DAYS {
        begins += random.random_range(0.05..0.35);
        branch += 1;
        let (mut at, mut pushes, mut own) = (begins, Vec::new(), Vec::<Breakage>::new());
        for revision in 0..random.random_range(1..=4_u32) {
            if own.is_empty() && random.random_bool(0.12) {
                former.retain(|(broke, _)| at - broke <= 3.0);
                // Some branches break the tests that another one broke in the days before.
                let again = random
                    .random_bool(0.2)
                    .then(|| random.random_range(0..former.len().max(1)));
                let again = again.and_then(|place| former.get(place));
                let broken = match again {
                    Some((_, former)) => former.again(revision, texts),
                    None => Breakage::new(revision, TESTS, texts, random),
                };
                former.push((at, broken.clone()));
                own.push(broken);
            } else if random.random_bool(0.75) {
                own.clear();
            }
            pushes.push(BranchRun {
                own: own.clone(),
                ..BranchRun::new(at, branch, revision)
            });
            if !own.is_empty() && random.random_bool(0.35) {
                let again = at + random.random_range(0.02..0.1);
                pushes.extend(pushes.last().cloned().map(|push| BranchRun { at: again, ..push }));
            }
            at += random.random_range(0.1..0.6);
        }
        let is_merged = random.random_bool(0.1);
        if is_merged {
            // Later runs have these failures from the stable branch.
            former.pop();
            let fixed_at = at + random.random_range(0.2..2.0);
            broken.extend(own.iter().cloned().map(|breakage| (at, fixed_at, breakage)));
        }
        // The changes of a branch under another name: a stacked branch, a rebased one, or a merge queue.
        if !is_merged && !own.is_empty() && random.random_bool(0.4) {
            branch += 1;
            let mut again = at + random.random_range(0.02..1.5);
            let copied = own.iter().map(|broken| Breakage {
                revision: 0,
                ..broken.clone()
            });
            let copied: Vec<Breakage> = copied.collect();
            let mut stacked = Vec::new();
            for _ in 0..random.random_range(1..=2_u32) {
                stacked.push(BranchRun {
                    own: copied.clone(),
                    ..BranchRun::new(again, branch, 0)
                });
                again += random.random_range(0.02..0.1);
            }
            branches.push(stacked);
        }
        branches.push(pushes);
    }
    let (mut at, mut revision) = (0.0, 0);
    while at < DAYS {
        at += random.random_range(0.1..0.35);
        let is_new = random.random_bool(0.8);
        revision += u32::from(is_new);
        if is_new && random.random_bool(0.015) {
            broken.push((
                at,
                at + random.random_range(0.2..2.0),
                Breakage::new(revision, TESTS, texts, random),
            ));
        }
        runs.push(BranchRun::new(at, 0, revision));
    }
    for run in &mut runs {
        let now = broken
            .iter()
            .filter(|(from, to, _)| (*from..*to).contains(&run.at));
        run.own = now.map(|(_, _, breakage)| breakage.clone()).collect();
    }
    for pushes in branches {
        let Some(base) = pushes.first().map(|push| push.at) else {
            continue;
        };
        let now = broken.iter().filter(|(from, to, _)| (*from..*to).contains(&base));
        let before: Vec<Breakage> = now.map(|(_, _, breakage)| breakage.clone()).collect();
        runs.extend(pushes.into_iter().map(|push| BranchRun {
            before: before.clone(),
            ..push
        }));
    }
    runs.retain(|run| run.at < DAYS);
    runs.sort_by(|a, b| a.at.total_cmp(&b.at));
    for _ in 0..6 {
        let index = random.random_range(0..runs.len());
        let outage = (random.random_range(0.05..0.7), texts.next());
        if let Some(run) = runs.get_mut(index) {
            run.outage = Some(outage);
        }
    }
    runs
}

impl CausesWorld {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut texts = Texts::after(0);
        let runs = plan(&mut texts, &mut random);
        let mut flakes: BTreeMap<u32, Flake> = BTreeMap::new();
        for test in 0..TESTS {
            if !random.random_bool(FLAKY) {
                continue;
            }
            let mut weight = 0.0;
            let mut mixture = Vec::new();
            for place in 1..=random.random_range(1..=4_u32) {
                weight += 1.0 / f64::from(place);
                mixture.push((weight, texts.next()));
            }
            let flake = Flake {
                rate: 10.0_f64.powf(random.random_range(-2.3..-0.5)),
                texts: mixture,
            };
            flakes.insert(test, flake);
        }
        let drifts: Vec<Drift> = (0..3)
            .map(|_| {
                let from = random.random_range(0.0..DAYS);
                Drift {
                    from,
                    to: from + random.random_range(0.3..2.0),
                    tests: (0..random.random_range(1..=6))
                        .map(|_| random.random_range(0..TESTS))
                        .collect(),
                    text: texts.next(),
                }
            })
            .collect();
        let mut world = Self::empty(TESTS);
        let mut unique = Texts::after(OWN_TEXTS);
        for run in runs {
            world.execute(run, |run, test| {
                let (cause, text) = outcome_of(run, test, &flakes, &drifts, &mut random)?;
                // One text in ten is new.
                let is_new = random.random_bool(0.1);
                Some((cause, if is_new { unique.next() } else { text }))
            });
        }
        world
    }

    /// A project of this many tests without runs.
    pub(crate) fn empty(tests: u32) -> Self {
        Self {
            history: History {
                stable_branch: "main".into(),
                tests,
                runs: Vec::new(),
            },
            texts: ErrorTexts::new(),
            truth: BTreeMap::new(),
            runs: Vec::new(),
        }
    }

    /// Adds a run. `outcome` returns the cause and the text of a test's failure; none if it passes.
    pub(crate) fn execute(
        &mut self,
        run: BranchRun,
        mut outcome: impl FnMut(&BranchRun, u32) -> Option<(Cause, u32)>,
    ) {
        let outcomes = (0..self.history.tests).filter_map(|test| {
            let (cause, text) = outcome(&run, test)?;
            Some((test, cause, Some(text)))
        });
        let failures = outcomes.collect::<Vec<_>>();
        let facts = run.facts(self.runs.len());
        self.add(run, facts, failures);
    }

    /// Adds a run with these failures: the tests in ascending order, each with its cause and its text.
    pub(crate) fn add(
        &mut self,
        run: BranchRun,
        facts: RunFacts,
        failures: impl IntoIterator<Item = (u32, Cause, Option<u32>)>,
    ) {
        let place = self.runs.len();
        let mut observed = RunObservations::of(facts);
        observed.present = (0..self.history.tests).collect::<Bitmap>();
        for (test, cause, text) in failures {
            if let Some(text) = text {
                self.texts.insert(place, test, text);
            }
            self.truth.insert((place, test), cause);
            observed.failures.push(Failure {
                test,
                recovered: false,
                failed_attempts: 1,
                lost_ms: Some(1_000),
            });
        }
        self.history.runs.push(observed);
        self.runs.push(run);
    }
}

/// The cause and the text of a test's failure in a run; none if it passes.
fn outcome_of(
    run: &BranchRun,
    test: u32,
    flakes: &BTreeMap<u32, Flake>,
    drifts: &[Drift],
    random: &mut StdRng,
) -> Option<(Cause, u32)> {
    if let Some(failure) = run.broken(test, random) {
        return Some(failure);
    }
    let drift = drifts
        .iter()
        .find(|drift| (drift.from..drift.to).contains(&run.at) && drift.tests.contains(&test));
    if let Some(drift) = drift {
        return Some((Cause::Environment, drift.text));
    }
    if let Some(text) = run.outage_text(random) {
        return Some((Cause::Environment, text));
    }
    let flake = flakes.get(&test).filter(|flake| random.random_bool(flake.rate))?;
    let all = flake.texts.last()?.0;
    let drawn = random.random_range(0.0..all);
    let (_, text) = flake.texts.iter().find(|(weight, _)| drawn < *weight)?;
    Some((Cause::Flake, *text))
}

/// The counted figures.
#[derive(Debug, Default)]
struct Score {
    bands: Bands,
    /// Runs with a breakage by their branch, and others: the gate, and its rivals.
    gates: BTreeMap<&'static str, [Actions; 2]>,
}

impl Score {
    fn gate(&mut self, name: &'static str, has_own: bool, action: Action) {
        let [own, others] = self.gates.entry(name).or_default();
        if has_own { own } else { others }.add(action);
    }

    fn table(&self) -> String {
        let mut text =
            self.bands.table() + "\n| Rule | Runs | Pass | Rerun | Block |\n|---|--:|--:|--:|--:|\n";
        for (name, [own, others]) in &self.gates {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {name}, own breakage | {} |{}", own.all(), own.shares());
            let _ = writeln!(text, "| {name}, none | {} |{}", others.all(), others.shares());
        }
        text
    }
}

/// The table over these seeds.
pub(crate) fn table(seeds: &[u64]) -> String {
    let mut score = Score::default();
    for seed in seeds {
        judge(&CausesWorld::new(*seed), &mut score);
    }
    score.table()
}

/// Judges every failed run of a branch at the time when it was the newest.
fn judge(world: &CausesWorld, score: &mut Score) {
    let engine = Engine::default();
    let (mut listed_at, mut flaky_list) = (0.0, BTreeSet::<u32>::new());
    let mut stable_failed: BTreeSet<u32> = BTreeSet::new();
    for (place, run) in world.runs.iter().enumerate() {
        let Some(observed) = world.history.runs.get(place) else {
            continue;
        };
        if run.branch == 0 {
            stable_failed = observed.failures.iter().map(|failure| failure.test).collect();
            continue;
        }
        if run.at < COUNTED_FROM || observed.failures.is_empty() {
            continue;
        }
        // The list of flaky tests is at most a day old.
        if run.at >= listed_at + 1.0 {
            let flaky = engine.judge(&world.history, observed.run.started_at).into_iter();
            let flaky = flaky.filter(|judgement| judgement.verdict.status == VerdictStatus::Flaky);
            listed_at = run.at;
            flaky_list = flaky.map(|judgement| judgement.verdict.test).collect();
        }
        let at = (observed.run.number, observed.run.started_at);
        let causes = causes_for_gate(&world.history, &world.texts, at);
        let mut has_own = false;
        for failure in &causes {
            let Some(truth) = world.truth.get(&(place, failure.test)) else {
                continue;
            };
            has_own |= is_mine(*truth);
            score.bands.add(failure.probabilities.mine(), is_mine(*truth));
        }
        score.gate("gate", has_own, action(gate(&causes).mine));
        let excuse = |excused: &dyn Fn(u32) -> bool| match causes.iter().all(|failure| excused(failure.test))
        {
            true => Action::Pass,
            false => Action::Block,
        };
        let on_list = excuse(&|test| flaky_list.contains(&test));
        let on_either = excuse(&|test| flaky_list.contains(&test) || stable_failed.contains(&test));
        score.gate("on the flaky list", has_own, on_list);
        score.gate("on the flaky list or failed on stable", has_own, on_either);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_project_with_every_cause() {
        let (one, same) = (CausesWorld::new(7), CausesWorld::new(7));
        assert_eq!((one.history, one.truth.clone()), (same.history, same.truth));
        for cause in [
            Cause::Flake,
            Cause::Environment,
            Cause::BrokenBefore,
            Cause::EarlierOnBranch,
            Cause::ThisChange,
        ] {
            assert!(one.truth.values().any(|truth| *truth == cause), "{cause}");
        }
    }

    #[test]
    fn the_gate_misses_fewer_breakages_than_a_list() {
        let mut score = Score::default();
        judge(&CausesWorld::new(5), &mut score);
        let passed = |name: &str| score.gates[name][0].0[0];
        assert!(score.gates["gate"][0].all() > 10, "{:?}", score.gates);
        assert!(
            passed("gate") <= passed("on the flaky list or failed on stable"),
            "{:?}",
            score.gates
        );
    }
}
