//! The next rerun of one cause: the one with which the expected loss is smallest, by looking ahead over all sequences of
//! reruns and results.

use std::{collections::HashMap, slice};

use super::{
    KINDS, Limits, RerunKind, RerunResults, Suspect,
    common_cause::{CommonCause, Evidence, REPRESENTATIVES},
};

/// The next rerun of the tests that run again for one cause.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    /// The tests, as indexes of the suspects. They run together.
    pub(super) tests: Vec<usize>,
    pub(super) kind: RerunKind,
    /// The seconds of these tests, without the start of the runner.
    pub(super) seconds: f64,
    /// The expected loss that it saves, in seconds; below 0 if it costs more.
    pub(super) saves_s: f64,
}

impl Choice {
    /// The best next rerun; none if none fits the budget. As many tests run as are worth their time. `stake_s` is the loss of
    /// a wrong block: less, the more probably another test is broken.
    pub(super) fn of(
        cause: &CommonCause,
        suspects: &[Suspect],
        (passes_below, stake_s): (f64, f64),
        limits: &Limits,
    ) -> Option<Self> {
        let runs = |kind: &RerunKind| !cause.representatives(suspects, *kind, 1).is_empty();
        let kinds: Vec<RerunKind> = KINDS.into_iter().filter(runs).collect();
        // Passes alone do not exclude that the change spoils what the tests of a mass failure share.
        let with_file = kinds
            .last()
            .filter(|_| cause.is_mass_failure())
            .map(slice::from_ref);
        let of_kinds =
            |kinds: &[RerunKind]| Self::of_kinds(cause, suspects, kinds, (passes_below, stake_s), limits);
        with_file.and_then(of_kinds).or_else(|| of_kinds(&kinds))
    }

    /// The best next rerun of one of these kinds.
    fn of_kinds(
        cause: &CommonCause,
        suspects: &[Suspect],
        kinds: &[RerunKind],
        stakes: (f64, f64),
        limits: &Limits,
    ) -> Option<Self> {
        let of = |most| {
            let tests = cause.representatives(suspects, *kinds.last()?, most);
            Ahead::new(cause, suspects, &tests, kinds, stakes, limits).choice()
        };
        let mut more = (2..=REPRESENTATIVES.min(cause.tests.len())).rev().filter_map(of);
        more.find(|choice| choice.saves_s > 0.0).or_else(|| of(1))
    }
}

/// Looks ahead over all sequences of reruns of the tests of a cause, and their results.
struct Ahead<'a> {
    cause: &'a CommonCause,
    tests: &'a [usize],
    /// The evidence of these tests, then of others that have run again.
    evidence: Vec<Evidence>,
    /// The kinds of reruns, each with the seconds of the tests.
    kinds: Vec<(RerunKind, f64)>,
    passes_below: f64,
    /// The loss of a wrong block, in seconds.
    stake_s: f64,
    limits: &'a Limits,
    /// The smallest expected loss by the results of the tests.
    known: HashMap<Vec<RerunResults>, f64>,
}

impl<'a> Ahead<'a> {
    fn new(
        cause: &'a CommonCause,
        suspects: &[Suspect],
        tests: &'a [usize],
        kinds: &[RerunKind],
        (passes_below, stake_s): (f64, f64),
        limits: &'a Limits,
    ) -> Self {
        let running = || tests.iter().filter_map(|index| suspects.get(*index));
        let mut evidence: Vec<Evidence> = running().map(|suspect| cause.evidence(suspect)).collect();
        evidence.extend(cause.evidence_without(suspects, tests));
        let seconds = |kind: RerunKind| {
            let each: Option<Vec<f64>> = running().map(|suspect| suspect.seconds(kind)).collect();
            each.map(|each| (kind, each.iter().sum()))
        };
        Self {
            cause,
            tests,
            evidence,
            kinds: kinds.iter().filter_map(|kind| seconds(*kind)).collect(),
            passes_below,
            stake_s,
            limits,
            known: HashMap::new(),
        }
    }

    fn choice(mut self) -> Option<Choice> {
        let evidence = self.evidence.clone();
        let now = self.loss_of_decision(&evidence);
        let choices = self.kinds.clone().into_iter().filter_map(|(kind, seconds)| {
            let loss = self.loss_of_rerun(&evidence, (kind, seconds), 0.0)?;
            Some((now - loss, kind, seconds))
        });
        let (saves_s, kind, seconds) = choices.max_by(|(one, ..), (other, ..)| one.total_cmp(other))?;
        Some(Choice {
            tests: self.tests.to_vec(),
            kind,
            seconds,
            saves_s,
        })
    }

    /// The expected losses of a block and of a pass without a further rerun.
    fn losses_of_decisions(&self, evidence: &[Evidence]) -> [f64; 2] {
        let mine = self.cause.mine(evidence);
        let wrong_pass = self.stake_s * (1.0 - self.passes_below) / self.passes_below.max(f64::EPSILON);
        [(1.0 - mine) * self.stake_s, mine * wrong_pass]
    }

    /// The expected loss of the better decision.
    fn loss_of_decision(&self, evidence: &[Evidence]) -> f64 {
        let [block, pass] = self.losses_of_decisions(evidence);
        block.min(pass)
    }

    /// The smallest expected loss, after reruns that took this long.
    fn loss(&mut self, evidence: &[Evidence], spent_s: f64) -> f64 {
        let key: Vec<RerunResults> = evidence.iter().map(|test| test.results).collect();
        if let Some(loss) = self.known.get(&key) {
            return *loss;
        }
        let mut loss = self.loss_of_decision(evidence);
        // Each rerun takes a second or more, in which less than this cannot be saved.
        if loss > self.limits.startup_s {
            for kind in self.kinds.clone() {
                if let Some(with_rerun) = self.loss_of_rerun(evidence, kind, spent_s) {
                    loss = loss.min(with_rerun);
                }
            }
        }
        self.known.insert(key, loss);
        loss
    }

    /// The expected loss with a rerun, and its seconds; none if it exceeds the budget or the tests ran often enough.
    fn loss_of_rerun(
        &mut self,
        evidence: &[Evidence],
        (kind, seconds): (RerunKind, f64),
        spent_s: f64,
    ) -> Option<f64> {
        let takes = self.limits.startup_s + seconds;
        let running = evidence.iter().take(self.tests.len());
        let most = running.map(|test| test.results.all()).max()?;
        if most >= self.cause.most_repetitions() || spent_s + takes > self.limits.budget_s {
            return None;
        }
        let next = self.next(evidence, kind);
        // The explanations leave out what further failures say, so that all do not add up to the probability so far. What the
        // rerun saves is therefore measured against one decision for all of its results.
        let (mut all, mut block, mut pass, mut after) = (0.0, 0.0, 0.0, 0.0);
        for (evidence, weight) in next {
            let [of_block, of_pass] = self.losses_of_decisions(&evidence);
            all += weight;
            block += weight * of_block;
            pass += weight * of_pass;
            after += weight * self.loss(&evidence, spent_s + takes);
        }
        let saved = (block.min(pass) - after) / all.max(f64::MIN_POSITIVE);
        Some(self.loss_of_decision(evidence) + takes - saved)
    }

    /// The evidence after each combination of results of the next rerun, with its weight.
    fn next(&self, evidence: &[Evidence], kind: RerunKind) -> Vec<(Vec<Evidence>, f64)> {
        let mut next = vec![evidence.to_vec()];
        for test in 0..self.tests.len() {
            next = next
                .into_iter()
                .flat_map(|before| {
                    [true, false].map(|failed| {
                        let mut after = before.clone();
                        if let Some(evidence) = after.get_mut(test) {
                            evidence.results.add(kind, failed);
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
