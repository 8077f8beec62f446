//! Evaluates whose failure an ejection from a merge queue is called, on simulated months of a queue.
//!
//! Each change passes its own run, apart from flaky tests. The queue tests each of a batch with those ahead of it. Some
//! changes conflict with what they are merged with, and the base is broken now and then. The changes behind an ejected
//! one run again without it.

use std::{collections::BTreeMap, fmt::Write as _};

use assay_answers::{
    ejection::{Blame, OtherRuns},
    failures::cause,
};
use assay_flakiness::{
    Diagnose as _, Engine, FailureCause,
    domain::{
        cause::{Cause, Knowledge},
        merge_queue::{MergeQueue, tested_pull_requests},
        observation::RunFacts,
    },
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    breakage::{Breakage, Flakes, Texts},
    causes::{BranchRun, COUNTED_FROM, CausesWorld},
    runs::DAYS,
};

/// Tests of a simulated project.
const TESTS: u32 = 300;
/// The share of flaky tests.
const FLAKY: f64 = 0.06;
/// The share of changes that broke something before they passed alone.
const BREAKS: f64 = 0.12;
/// The share of changes that passed alone and break together with others.
const CONFLICTS: f64 = 0.04;
/// The largest batch.
const LARGEST: usize = 8;

/// Whose a simulated failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    Own,
    Ahead,
    Base,
    Chance,
}

/// A run of the queue.
struct Queued {
    /// The index of its run.
    place: usize,
    /// The size of its batch.
    batch: usize,
    branch: String,
    /// The number of the run of the change itself.
    own: i32,
    truth: BTreeMap<u32, Truth>,
}

/// A month of a merge queue.
struct Month {
    world: CausesWorld,
    queued: Vec<Queued>,
    flakes: Flakes,
    random: StdRng,
}

impl Month {
    /// `is_kind` names the branches as GitHub does; otherwise they are names that no queue has.
    fn new(seed: u64, is_kind: bool) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let flakes = Flakes::draw(TESTS, FLAKY, (-2.5, -0.8), &mut random);
        let mut month = Self {
            world: CausesWorld::empty(TESTS),
            queued: Vec::new(),
            flakes,
            random,
        };
        month.fill(is_kind);
        month
    }

    fn fill(&mut self, is_kind: bool) {
        let mut texts = Texts::after(0);
        let (mut at, mut number) = (0.0, 0_u32);
        let mut tip = "base".to_owned();
        // A breakage of the base, until a time.
        let mut base: Option<(f64, Breakage)> = None;
        while at < DAYS {
            at += self.random.random_range(0.1..0.4);
            if base.as_ref().is_some_and(|(until, _)| *until < at) {
                base = None;
            }
            if base.is_none() && self.random.random_bool(0.02) {
                let until = at + self.random.random_range(0.3..1.5);
                base = Some((until, Breakage::new(0, TESTS, &mut texts, &mut self.random)));
            }
            let size = self.random.random_range(1..=LARGEST);
            let mut batch = Vec::new();
            for _ in 0..size {
                number += 1;
                let topic = format!("topic-{number}");
                if self.random.random_bool(BREAKS) {
                    // The push before the last one broke something.
                    let broken = Breakage::new(0, TESTS, &mut texts, &mut self.random);
                    let first = format!("first-{number}");
                    self.run(at - 0.08, (&topic, &first), &[(Truth::Own, broken)]);
                }
                let own = self.run(at - 0.05, (&topic, &format!("head-{number}")), &[]);
                let conflict = self.random.random_bool(CONFLICTS);
                let conflict = conflict.then(|| Breakage::new(0, TESTS, &mut texts, &mut self.random));
                batch.push((number, own, conflict));
            }
            // The rounds of the batch: what fails leaves, and what was behind it runs again.
            let mut round = 0;
            while !batch.is_empty() {
                round += 1;
                let mut ahead: Vec<Breakage> = Vec::new();
                let (mut parent, mut kept) = (tip.clone(), 0);
                let mut failed = None;
                for (place, (change, own, conflict)) in batch.iter().enumerate() {
                    let revision = format!("{change:08x}{round:02x}");
                    let branch = match is_kind {
                        true => format!("gh-readonly-queue/main/pr-{change}-{parent}"),
                        false => format!("candidate-{change}-{round}"),
                    };
                    let mut parts: Vec<(Truth, Breakage)> = Vec::new();
                    parts.extend(conflict.iter().map(|broken| (Truth::Own, broken.clone())));
                    parts.extend(ahead.iter().map(|broken| (Truth::Ahead, broken.clone())));
                    parts.extend(base.iter().map(|(_, broken)| (Truth::Base, broken.clone())));
                    let truth = self.run_with(at + 0.001, (&branch, &revision), &parts);
                    ahead.extend(conflict.clone());
                    if truth.is_empty() && failed.is_none() {
                        (kept, tip) = (place + 1, revision.clone());
                    } else {
                        failed.get_or_insert(place);
                    }
                    parent = revision;
                    let run = self.world.runs.len();
                    self.queued.push(Queued {
                        place: run.saturating_sub(1),
                        batch: size,
                        branch,
                        own: *own,
                        truth,
                    });
                }
                at += 0.01;
                // The base is at the last revision that passed.
                let broken: Vec<(Truth, Breakage)> = base
                    .iter()
                    .map(|(_, broken)| (Truth::Base, broken.clone()))
                    .collect();
                self.run_with(at, ("main", &tip.clone()), &broken);
                match failed {
                    Some(place) => drop(batch.drain(..=place)),
                    None => drop(batch.drain(..kept)),
                }
            }
        }
    }

    /// Adds a run without a breakage, and returns its number.
    fn run(&mut self, at: f64, named: (&str, &str), broken: &[(Truth, Breakage)]) -> i32 {
        self.run_with(at, named, broken);
        i32::try_from(self.world.runs.len()).unwrap_or(i32::MAX)
    }

    /// Adds a run, and returns its failures.
    fn run_with(
        &mut self,
        at: f64,
        (branch, revision): (&str, &str),
        broken: &[(Truth, Breakage)],
    ) -> BTreeMap<u32, Truth> {
        let mut failures = Vec::new();
        let mut truths = BTreeMap::new();
        for test in 0..TESTS {
            let mut by_breakage = broken.iter().filter_map(|(truth, broken)| {
                let (rate, text) = broken.tests.get(&test)?;
                self.random
                    .random_bool(*rate)
                    .then_some((*truth, Cause::ThisChange, *text))
            });
            let failure = by_breakage.next();
            let failure = failure.or_else(|| {
                let text = self.flakes.text(test, &mut self.random)?;
                Some((Truth::Chance, Cause::Flake, text))
            });
            if let Some((truth, cause, text)) = failure {
                truths.insert(test, truth);
                failures.push((test, cause, Some(text)));
            }
        }
        let run = BranchRun::new(at, 1, 0);
        let own = branch
            .strip_prefix("topic-")
            .and_then(|number| number.parse().ok());
        let facts = RunFacts {
            branch: Some(branch.into()),
            revision: Some(revision.into()),
            pull_requests: tested_pull_requests(Some(branch), None, own),
            ..run.facts(self.world.runs.len())
        };
        self.world.add(run, facts, failures);
        truths
    }
}

/// The ejections of one batch size.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    ejections: u32,
    right: u32,
    innocent: u32,
    blamed: u32,
    /// The innocent changes that the probabilities of the blamed ones above .5 predict.
    predicted: f64,
}

impl Score {
    fn add(&mut self, truth: Truth, blame: Blame, probability: f64) {
        let is_blamed = matches!(blame, Blame::PullRequest | Blame::Combination);
        self.ejections += 1;
        self.right += u32::from(match truth {
            Truth::Own => is_blamed,
            Truth::Ahead => blame == Blame::Ahead,
            Truth::Base => blame == Blame::Base,
            Truth::Chance => blame == Blame::Chance,
        });
        let is_blamed = is_blamed && probability > 0.5;
        if is_blamed {
            self.predicted += 1.0 - probability;
        }
        if truth != Truth::Own {
            self.innocent += 1;
            self.blamed += u32::from(is_blamed);
        }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            ejections: self.ejections + other.ejections,
            right: self.right + other.right,
            innocent: self.innocent + other.innocent,
            blamed: self.blamed + other.blamed,
            predicted: self.predicted + other.predicted,
        }
    }

    fn row(self) -> String {
        let share = |part: u32, all: u32| 100.0 * f64::from(part) / f64::from(all.max(1));
        format!(
            "{} | {:.1} | {} of {} | {:.1}",
            self.ejections,
            share(self.right, self.ejections),
            self.blamed,
            self.innocent,
            self.predicted
        )
    }
}

/// The table over these seeds: with and without the kind of run.
pub(crate) fn table(seeds: &[u64]) -> String {
    let mut text =
        "| Batch | Ejections | Right, % | Innocent ones blamed | Predicted |\n|---|--:|--:|--:|--:|\n"
            .to_owned();
    for is_kind in [true, false] {
        let mut by_size = [Score::default(); LARGEST + 1];
        for seed in seeds {
            judge(&Month::new(*seed, is_kind), &mut by_size);
        }
        let kind = if is_kind { "with" } else { "without" };
        let all = by_size.iter().copied().fold(Score::default(), Score::and);
        for (size, score) in by_size.iter().enumerate().skip(1) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {kind}, {size} | {} |", score.row());
        }
        let _ = writeln!(text, "| {kind}, all | {} |", all.row());
    }
    text
}

/// Judges every failed run of the queue at the time when it ran.
fn judge(month: &Month, by_size: &mut [Score]) {
    let engine = Engine::default();
    let world = &month.world;
    for queued in &month.queued {
        let run = world
            .runs
            .get(queued.place)
            .zip(world.history.runs.get(queued.place));
        let Some((_, observed)) = run.filter(|(run, _)| run.at >= COUNTED_FROM) else {
            continue;
        };
        let (number, now) = (observed.run.number, observed.run.started_at);
        let causes = engine.causes_of_run(&world.history, &world.texts, number, Knowledge::AtTheTime, now);
        let mine = |failure: &&FailureCause| failure.probabilities.mine();
        let broken =
            |failure: &FailureCause| failure.probabilities.mine() + failure.probabilities.broken_before;
        let worst = causes
            .iter()
            .max_by(|one, other| broken(one).total_cmp(&broken(other)));
        let Some(worst) = worst else { continue };
        let queue = MergeQueue::of(&queued.branch, None);
        let others = |failure: &FailureCause| {
            queue.as_ref().map_or_else(OtherRuns::default, |queue| {
                OtherRuns::of(
                    &world.history,
                    failure.test,
                    |run: &RunFacts| run.number == queued.own,
                    queue,
                )
            })
        };
        let seldom = match queue {
            Some(_) => causes
                .iter()
                .filter(|failure| others(failure).is_seldom())
                .count(),
            None => 0,
        };
        // The run is ejected for its worst failure.
        let truth = [Truth::Own, Truth::Ahead, Truth::Base, Truth::Chance];
        let truth = truth
            .into_iter()
            .find(|truth| queued.truth.values().any(|of| of == truth));
        if let (Some(truth), Some(score)) = (truth, by_size.get_mut(queued.batch)) {
            score.add(truth, others(worst).blame(cause(worst), seldom), mine(&worst));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_run_names_more_ejections_and_blames_fewer_innocents() {
        let score = |is_kind| {
            let mut by_size = [Score::default(); LARGEST + 1];
            judge(&Month::new(7, is_kind), &mut by_size);
            by_size.into_iter().fold(Score::default(), Score::and)
        };
        let (with, without) = (score(true), score(false));
        assert!(with.ejections > 20, "{with:?}");
        assert!(
            with.right > without.right && with.blamed < without.blamed,
            "{with:?} {without:?}"
        );
    }
}
