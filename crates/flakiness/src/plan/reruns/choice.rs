//! The reruns of one cause: what they may lead to, by looking ahead over all sequences of their results.

use super::{
    EQUAL, Limits, RerunKind, Suspect,
    common_cause::{CommonCause, Evidence, MOST_REPETITIONS, REPRESENTATIVES},
};
use crate::numbers;

/// The probabilities of what the reruns of a cause lead to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcomes {
    /// It no longer speaks against the run.
    pub(super) passes: f64,
    /// It blocks the run.
    pub(super) blocks: f64,
}

impl Outcomes {
    pub(super) fn decides(self) -> f64 {
        (self.passes + self.blocks).min(1.0)
    }
}

/// The repetitions of the tests that run again for one cause.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    /// The tests, as indexes of the suspects. They run together.
    pub(super) tests: Vec<usize>,
    pub(super) kind: RerunKind,
    /// The seconds of one repetition of all these tests.
    pub(super) seconds: f64,
    pub(super) repetitions: u32,
    /// The outcomes of 0, 1, 2 … repetitions.
    outcomes: Vec<Outcomes>,
    /// The probability that the first, second … repetition is needed.
    needed: Vec<f64>,
}

impl Choice {
    pub(super) fn of(cause: &CommonCause, suspects: &[Suspect], passes_below: f64, limits: &Limits) -> Self {
        let best = |choice: &Self| {
            let within = (1..=MOST_REPETITIONS).filter(|repetitions| {
                f64::from(*repetitions) * (choice.seconds + limits.startup_s) <= limits.budget_s
            });
            within
                .map(|repetitions| choice.outcomes_of(repetitions).decides())
                .fold(0.0, f64::max)
        };
        // As many tests as the budget allows.
        let with = |kind| {
            let of = |most| {
                let tests = cause.representatives(suspects, kind, most);
                Self::with(cause, suspects, (kind, tests), passes_below, limits)
            };
            let mut fewer = (2..=REPRESENTATIVES.min(cause.tests.len())).rev().map(of);
            fewer.find(|choice| best(choice) > EQUAL).unwrap_or_else(|| of(1))
        };
        let (alone, with_file) = (with(RerunKind::Alone), with(RerunKind::WithFile));
        let (by_alone, by_file) = (best(&alone), best(&with_file));
        // Passes alone do not exclude that the change spoils what the tests of a mass failure share.
        if cause.is_mass_failure() && by_file > EQUAL {
            return with_file;
        }
        let is_equal = (by_alone - by_file).abs() < EQUAL;
        match is_equal && alone.seconds <= with_file.seconds || !is_equal && by_alone > by_file {
            true => alone,
            false => with_file,
        }
    }

    fn with(
        cause: &CommonCause,
        suspects: &[Suspect],
        (kind, tests): (RerunKind, Vec<usize>),
        passes_below: f64,
        limits: &Limits,
    ) -> Self {
        let most = match tests.is_empty() {
            true => 0,
            false => cause.most_repetitions(),
        };
        let representatives = || tests.iter().filter_map(|index| suspects.get(*index));
        let mut evidence: Vec<Evidence> = representatives().map(|suspect| cause.evidence(suspect)).collect();
        evidence.extend(cause.evidence_without(suspects, &tests));
        let mut ahead = Ahead {
            cause,
            tests: tests.len(),
            kind,
            passes_below,
            blocks_from: limits.blocks_from,
            outcomes: vec![Outcomes::default(); numbers::at(most + 1)],
            needed: vec![0.0; numbers::at(most)],
        };
        ahead.look(&mut evidence, 0, 1.0);
        Self {
            kind,
            seconds: representatives()
                .filter_map(|suspect| suspect.seconds(kind))
                .sum(),
            repetitions: 0,
            outcomes: ahead.outcomes,
            needed: ahead.needed,
            tests,
        }
    }

    pub(super) fn outcomes_of(&self, repetitions: u32) -> Outcomes {
        let of = self.outcomes.get(numbers::at(repetitions)).copied();
        of.unwrap_or_default()
    }

    pub(super) fn outcomes(&self) -> Outcomes {
        self.outcomes_of(self.repetitions)
    }

    /// The most repetitions that may be planned.
    pub(super) fn most(&self) -> u32 {
        numbers::count(self.needed.len())
    }

    /// The probability that this repetition is needed, from 1; 0 if it is not planned.
    pub(super) fn needs(&self, repetition: u32) -> f64 {
        let index = numbers::at(repetition.saturating_sub(1));
        match repetition <= self.repetitions {
            true => self.needed.get(index).copied().unwrap_or(0.0),
            false => 0.0,
        }
    }
}

/// Looks ahead over all sequences of results in reruns of one kind.
struct Ahead<'a> {
    cause: &'a CommonCause,
    /// The number of tests that run in each repetition: the first ones of the evidence.
    tests: usize,
    kind: RerunKind,
    passes_below: f64,
    blocks_from: f64,
    /// The outcomes of 0, 1, 2 … repetitions.
    outcomes: Vec<Outcomes>,
    /// The probability that the first, second … repetition is needed.
    needed: Vec<f64>,
}

impl Ahead<'_> {
    /// Adds what may follow this evidence, which is reached with this probability after these repetitions of the plan.
    fn look(&mut self, evidence: &mut [Evidence], repetitions: u32, probability: f64) {
        let mine = self.cause.mine(evidence);
        let is_passed = mine < self.passes_below;
        let is_blocked = mine >= self.blocks_from && repetitions > 0;
        if is_passed || is_blocked {
            for outcomes in self.outcomes.iter_mut().skip(numbers::at(repetitions)) {
                match is_passed {
                    true => outcomes.passes += probability,
                    false => outcomes.blocks += probability,
                }
            }
            return;
        }
        let running = evidence.iter().take(self.tests);
        let most = running.map(|test| test.results.all()).max();
        if most.is_none_or(|most| most >= self.cause.most_repetitions()) || self.needed.is_empty() {
            return;
        }
        if let Some(needed) = self.needed.get_mut(numbers::at(repetitions)) {
            *needed += probability;
        }
        let mut next = self.next(evidence);
        // The explanations leave out what further failures say, so that all do not add up to the probability so far.
        let all: f64 = next.iter().map(|(_, weight)| weight).sum();
        for (evidence, weight) in &mut next {
            let probability = probability * *weight / all.max(f64::MIN_POSITIVE);
            self.look(evidence, repetitions + 1, probability);
        }
    }

    /// The evidence after each combination of results of the next repetition, with its weight.
    fn next(&self, evidence: &[Evidence]) -> Vec<(Vec<Evidence>, f64)> {
        let mut next = vec![evidence.to_vec()];
        for test in 0..self.tests {
            next = next
                .into_iter()
                .flat_map(|before| {
                    [true, false].map(|failed| {
                        let mut after = before.clone();
                        if let Some(evidence) = after.get_mut(test) {
                            evidence.results.add(self.kind, failed);
                        }
                        after
                    })
                })
                .collect();
        }
        next.into_iter()
            .map(|evidence| {
                let weight = self.cause.weights(&evidence).all();
                (evidence, weight)
            })
            .collect()
    }
}
