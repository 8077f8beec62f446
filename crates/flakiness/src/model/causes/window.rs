//! The causes of the failures of one run, or of every run of a window.

use std::collections::{BTreeMap, BTreeSet};

use assay_domain::{cause::Knowledge, observation::History, test::TestOrdinal, timestamp::Timestamp};
use rayon::iter::{IntoParallelIterator as _, IntoParallelRefIterator as _, ParallelIterator as _};

use super::{
    crowds,
    facts::{CauseFacts, FailureCounts, TestDiagnosis, WindowContext},
    links::PullRequests,
    parts::{self, BEFORE, CROWD, DRIFT, EARLIER, FLAKE, Parts, THIS},
    sequence::{self, TestResults},
    stable_branch::StableBranch,
    texts::{ErrorTexts, WindowTexts},
};
use crate::{
    engine::Engine,
    model::{PerRate, background::Background},
    port::Diagnose,
    timeline::Timeline,
};

/// The lower bound of the rate at which a branch breaks a test that may be new: a revision with a new test breaks it more
/// probably than others.
const NEW_TESTS_BREAK: f64 = 0.0006;
/// A test that ran in fewer runs of the stable branch, and on fewer branches, may be new.
const KNOWN_AFTER: usize = 6;

/// The probability of each cause. They add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probabilities {
    /// The test is flaky: it failed although the code is good.
    pub flake: f64,
    /// A crowd of failures, or a change outside of the code.
    pub environment: f64,
    /// The code was broken before this branch, or the stable branch broke it.
    pub broken_before: f64,
    /// An earlier revision of this branch broke it.
    pub earlier_on_branch: f64,
    /// This revision broke it.
    pub this_change: f64,
}

impl Probabilities {
    fn of(parts: &Parts) -> Self {
        let part = |part: usize| parts.get(part).copied().unwrap_or(0.0);
        Self {
            flake: part(FLAKE),
            environment: part(CROWD) + part(DRIFT),
            broken_before: part(BEFORE),
            earlier_on_branch: part(EARLIER),
            this_change: part(THIS),
        }
    }

    /// P(this branch broke the code).
    pub fn mine(&self) -> f64 {
        self.earlier_on_branch + self.this_change
    }
}

/// Why a test failed in a run on one variant.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureCause {
    /// The index of the run on this variant in the history.
    pub run_index: usize,
    /// The test.
    pub test: TestOrdinal,
    /// The text of its error, as the caller numbered it.
    pub text: Option<u32>,
    /// Whether it passed on retry.
    pub recovered: bool,
    /// Whether many tests failed together in its run on this variant. Their failures have one cause.
    pub in_mass_failure: bool,
    /// The probability of each cause.
    pub probabilities: Probabilities,
    /// Probability that the test itself is unreliable.
    pub unreliable: f64,
    /// The counts behind the sentence.
    pub facts: CauseFacts,
}

/// From this probability on, what failed a test counts as what failed others, too. Less often is it the one cause of all:
/// of the simulated runs with less, .91 were the branch's where it would change the action.
const OF_THE_RUN: f64 = 0.5;

/// What [`any_mine`] needs to know of a failure, from P(the branch broke the test), whether all failures of its kind have one
/// cause, as in a mass failure, and P(its environment failed it).
pub fn mine_and_shared(mine: f64, is_one: bool, environment: f64) -> (f64, f64) {
    let shared = match is_one {
        true => 1.0 - mine,
        false if environment >= OF_THE_RUN => environment.min(1.0 - mine),
        false => 0.0,
    };
    (mine, shared)
}

/// P(the branch broke any of the failed tests of a run), from P(it broke this test) and P(a cause outside of the branch
/// that may have failed others, too) of each, at most 1 together. What fails several tests of a run is one cause: it failed
/// each test with at least its probability. Without it, the branch broke each test or not apart from the others.
pub fn any_mine(failures: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let mut failures: Vec<(f64, f64)> = failures.into_iter().collect();
    failures.sort_unstable_by(|(_, one), (_, other)| one.total_cmp(other));
    let (mut none, mut until, mut apart) = (0.0, 0.0, 1.0);
    for (mine, shared) in failures {
        none += (shared - until) * apart;
        until = shared;
        apart *= 1.0 - (mine / (1.0 - shared).max(f64::MIN_POSITIVE)).min(1.0);
    }
    1.0 - none - (1.0 - until) * apart
}

impl Diagnose for Engine {
    fn causes_window(
        &self,
        started: Timestamp,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> (Timestamp, Timestamp) {
        let days = self.window_days();
        let until = match knowledge {
            Knowledge::AtTheTime => started,
            Knowledge::Hindsight => started.plus_days(days).min(now).max(started),
        };
        (started.plus_days(-days), until)
    }

    fn causes_of_run(
        &self,
        history: &History,
        texts: &ErrorTexts,
        run: i32,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> Vec<FailureCause> {
        let variant_runs = history.runs.iter().filter(|observed| observed.run.number == run);
        let Some(started) = variant_runs.map(|observed| observed.run.started_at).max() else {
            return Vec::new();
        };
        let (from, until) = self.causes_window(started, knowledge, now);
        let model = WindowModel::new(history, texts, from, until);
        model.causes(|number| number == run)
    }
}

impl Engine {
    /// The causes of every failure of the window that ends at `now`: ascending by run, test, then variant run.
    ///
    /// At the time, each run with failures is judged with the window before it, which costs one judgement of that
    /// window. With hindsight the window is judged once.
    pub fn causes(
        &self,
        history: &History,
        texts: &ErrorTexts,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> Vec<FailureCause> {
        let from = now.plus_days(-self.window_days());
        match knowledge {
            Knowledge::Hindsight => WindowModel::new(history, texts, from, now).causes(|_| true),
            Knowledge::AtTheTime => {
                let window = history
                    .runs
                    .iter()
                    .filter(|observed| (from..=now).contains(&observed.run.started_at));
                let failing = window.filter(|observed| !observed.failures.is_empty());
                let runs: BTreeSet<(Timestamp, i32)> = failing
                    .map(|observed| (observed.run.started_at, observed.run.number))
                    .collect();
                let mut seen_numbers = BTreeSet::new();
                let numbers: Vec<i32> = runs
                    .into_iter()
                    .map(|(_, number)| number)
                    .filter(|number| seen_numbers.insert(*number))
                    .collect();
                numbers
                    .into_par_iter()
                    .flat_map_iter(|number| self.causes_of_run(history, texts, number, knowledge, now))
                    .collect()
            }
        }
    }
}

/// The least probability of a breakage by the branch, if nothing but failures on other branches speaks against it. So
/// such a failure is run again and not excused: the other branches may have broken the test themselves.
const ONLY_WITNESSES: f64 = 0.1;

/// Raises the probability of a breakage by the branch to [`ONLY_WITNESSES`], at the cost of the other parts.
fn doubt_witnesses(parts: &mut Parts) {
    let mine = parts[THIS] + parts[EARLIER];
    if mine >= ONLY_WITNESSES {
        return;
    }
    let others = (1.0 - ONLY_WITNESSES) / (1.0 - mine);
    for part in &mut *parts {
        *part *= others;
    }
    parts[THIS] = ONLY_WITNESSES - parts[EARLIER];
}

/// Weighs the parts of a failure without company on a branch: of the tests that branches broke, this share failed without
/// another one.
fn weigh_alone(parts: &mut Parts, broken_alone: f64) {
    parts[THIS] *= broken_alone;
    parts[EARLIER] *= broken_alone;
    let all: f64 = parts.iter().sum();
    for part in parts {
        *part /= all;
    }
}

/// A window with the data that all its failures share.
struct WindowModel<'h> {
    timeline: Timeline<'h>,
    /// All positions by revision, then time.
    order: Vec<usize>,
    background: Background,
    odds: Vec<f64>,
    /// By position.
    bases: Vec<Option<usize>>,
    /// By chain.
    pull_requests: Vec<PullRequests>,
    texts: &'h ErrorTexts,
    window_texts: WindowTexts,
}

impl<'h> WindowModel<'h> {
    fn new(history: &'h History, texts: &'h ErrorTexts, from: Timestamp, to: Timestamp) -> Self {
        let timeline = Timeline::new(history, (from, to), |_| true);
        let background = Background::new(&timeline);
        let odds = crowds::odds(&timeline, &background);
        let is_in_window = |run_index: usize| {
            let observed = history.runs.get(run_index);
            observed.is_some_and(|observed| (from..=to).contains(&observed.run.started_at))
        };
        let order = sequence::order(&timeline);
        Self {
            window_texts: texts.counts(is_in_window),
            pull_requests: sequence::pull_requests(&timeline, &order),
            order,
            bases: sequence::bases(&timeline),
            timeline,
            background,
            odds,
            texts,
        }
    }

    /// The causes of the failures of the runs for whose numbers `is_requested` holds.
    fn causes(&self, is_requested: impl Fn(i32) -> bool) -> Vec<FailureCause> {
        // Of the stable branch and of others: the window teaches other figures for the stable one.
        let mut by_test: BTreeMap<(TestOrdinal, bool), Vec<usize>> = BTreeMap::new();
        let mut runs: BTreeMap<usize, FailureCounts> = BTreeMap::new();
        for ((position, entry), run) in self
            .timeline
            .entries
            .iter()
            .enumerate()
            .zip(&self.timeline.run_of)
        {
            if is_requested(entry.observed.run.number) {
                runs.entry(*run)
                    .or_insert_with(|| FailureCounts::of(&self.timeline, self.texts, *run));
                let chain = self.timeline.chains.get(entry.chain);
                let stable = chain.is_some_and(|chain| chain.stable);
                for failure in entry.failures.iter() {
                    by_test.entry((failure.test, stable)).or_default().push(position);
                }
            }
        }
        let learned = StableBranch::learn(&self.timeline, &self.background);
        let by_test: Vec<_> = by_test.into_iter().collect();
        let mut causes: Vec<(usize, FailureCause)> = by_test
            .par_iter()
            .flat_map_iter(|((test, stable), positions)| {
                let of_stable = Some(&learned).filter(|_| *stable);
                self.causes_of_test(*test, positions, (of_stable, &learned.rates), &runs)
            })
            .collect();
        causes.sort_by_key(|(run, cause)| (*run, cause.test, cause.run_index));
        causes.into_iter().map(|(_, cause)| cause).collect()
    }

    /// The causes of a test's failures at these positions, each with its run. `learned` is given for those of the stable
    /// branch, and `prior` has the probability of each flake rate.
    fn causes_of_test(
        &self,
        test: TestOrdinal,
        positions: &[usize],
        (learned, prior): (Option<&StableBranch>, &PerRate),
        runs: &BTreeMap<usize, FailureCounts>,
    ) -> Vec<(usize, FailureCause)> {
        let mut results = TestResults::of(
            &self.timeline,
            &self.order,
            &self.background,
            (&self.odds, &self.bases, &self.pull_requests),
            self.texts,
            test,
        );
        let rates = &self.background.rates;
        let may_be_new = results.sequence.runs_and_branches() < KNOWN_AFTER;
        let on_branches = if may_be_new {
            rates.branches_break.max(NEW_TESTS_BREAK)
        } else {
            rates.branches_break
        };
        if let Some(learned) = learned {
            learned.apply(&mut results.sequence);
        }
        let smoothed = parts::smooth(&results.sequence, on_branches, prior);
        let shared = WindowContext {
            timeline: &self.timeline,
            texts: self.texts,
            window_texts: &self.window_texts,
            runs,
        };
        let diagnosis = TestDiagnosis::new(shared, test, &results, &smoothed.parts);
        let cause = |position: &usize| {
            let index = results.positions.iter().position(|other| other == position)?;
            let parts = smoothed.parts.get(index)?.as_ref()?;
            let mut parts = diagnosis
                .text_counts(index)
                .map_or(*parts, |counts| counts.weigh(parts));
            let entry = self.timeline.entries.get(*position)?;
            // A branch that adds a test breaks this one alone.
            if learned.is_none() && !may_be_new && entry.failures.len() == 1 {
                weigh_alone(&mut parts, rates.broken_alone);
            }
            let witnesses = results.witnesses.get(index)?;
            if witnesses.branches > 0 && !witnesses.is_known {
                doubt_witnesses(&mut parts);
            }
            let result = results.sequence.results.get(index)?;
            let run = *self.timeline.run_of.get(*position)?;
            let variant = results.sequence.chains.get(result.chain)?.variant;
            let mut facts = diagnosis.facts(index)?;
            facts.in_lasting_crowd = self.background.lasts(*position, test);
            if let Some(learned) = learned {
                facts.stable_streaks = learned.streaks;
                facts.shared_streaks = learned.shared_streaks(result.failed_before);
            }
            Some((
                run,
                FailureCause {
                    run_index: entry.source,
                    test,
                    text: self.texts.of(entry.source, test),
                    recovered: !result.outcome.failed(),
                    in_mass_failure: self.background.is_mass_failure(*position),
                    probabilities: Probabilities::of(&parts),
                    unreliable: smoothed.unreliable.get(variant).copied().unwrap_or(0.0),
                    facts,
                },
            ))
        };
        positions.iter().filter_map(cause).collect()
    }
}
