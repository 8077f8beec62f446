//! Forward-backward over the results of one test, with P(Broken) split by the origin of the breakage.
//!
//! The flake rates are independent of each other. The pass runs for all of them side by side, so that the compiler can
//! use vector instructions. Only failures get parts: nothing reads those of a result that passed at once.
#![expect(
    clippy::indexing_slicing,
    reason = "every index was made by the sequence that sized the vectors, or runs over the grid"
)]

use std::{array::from_fn, cmp::Reverse, collections::BTreeMap};

use super::{
    links::{Link, ResultFacts, Sequence, links},
    mended::StableCode,
    prediction::{Faults, OUTAGE_LASTS, Prediction, Shares, ZERO, predict, shared_faults},
};
use crate::{
    model::{
        GRID, LEFT_BROKEN, Likelihood, PerRate, RATES, RELIABLE, RELIABLE_TESTS, SIBLING, Step,
        project_rates::USUALLY_UNRELIABLE, reliable,
    },
    numbers::count,
};

/// The number of parts.
pub(crate) const PARTS: usize = 6;
/// The probability of each part.
pub(crate) type Parts = [f64; PARTS];

/// Good code, and the test failed by itself.
pub(crate) const FLAKE: usize = 0;
/// Good code, and the test failed because of the run.
pub(crate) const CROWD: usize = 1;
/// Something outside of the code changed.
pub(crate) const DRIFT: usize = 2;
/// Broken before this branch, or inherited from the stable branch.
pub(crate) const BEFORE: usize = 3;
/// Broken by an earlier revision of this branch.
pub(crate) const EARLIER: usize = 4;
/// Broken by this revision.
pub(crate) const THIS: usize = 5;

/// The prior probability of each rate. The causes know no tests that fail in most runs. Those that changes break often have
/// a part of the reliable ones, by the project's rate of breaking.
pub(crate) const PRIOR: PerRate = {
    let mut prior = [USUALLY_UNRELIABLE / 9.0; GRID];
    prior[0] = 1.0 - USUALLY_UNRELIABLE;
    let mut none = GRID - 3;
    while none < GRID {
        prior[none] = 0.0;
        none += 1;
    }
    prior
};
/// The share of unreliable tests that are so on one variant only, if a test has several.
const ON_ONE_VARIANT: f64 = 0.3;
/// Most variants that are tried as the only unreliable one: those with the most failures.
const TRIED_VARIANTS: usize = 2;
/// The number of likelihoods that are multiplied before a logarithm is taken. Each is at least 1e-7, so the product
/// stays in the range of an `f64`.
const FACTORS: usize = 32;

/// The result of the pass over a sequence.
#[derive(Debug, Clone)]
pub(crate) struct Posterior {
    /// By result; `None` for a test that passed at its first attempt.
    pub(crate) parts: Vec<Option<Parts>>,
    /// The probability that the test is unreliable, by variant.
    pub(crate) unreliable: Vec<f64>,
}

/// What is assumed about a test's flake rates.
#[derive(Debug, Clone, Copy)]
struct Hypothesis {
    /// The only variant on which it has the rates; it is reliable on the others. `None` for all variants.
    only_on: Option<usize>,
    prior: PerRate,
}

impl Hypothesis {
    /// One hypothesis for all variants, and one for each of the variants with the most failures.
    fn all(sequence: &Sequence, prior: &PerRate) -> Vec<Self> {
        let mut failures: BTreeMap<usize, u32> = BTreeMap::new();
        for result in &sequence.results {
            let variant = sequence.chains[result.chain].variant;
            *failures.entry(variant).or_default() += u32::from(result.outcome.had_failure());
        }
        let variants = failures.len();
        if variants < 2 {
            return vec![Self {
                only_on: None,
                prior: *prior,
            }];
        }
        // A reliable test is so everywhere.
        let of_unreliable = |share: f64, reliable: f64| -> PerRate {
            let mut prior = prior.map(|prior| prior * share);
            for k in RELIABLE_TESTS {
                prior[k] *= reliable / share;
            }
            prior
        };
        let mut most: Vec<(usize, u32)> = failures
            .into_iter()
            .filter(|(_, failures)| *failures > 0)
            .collect();
        most.sort_by_key(|(_, failures)| Reverse(*failures));
        let everywhere = Self {
            only_on: None,
            prior: of_unreliable(1.0 - ON_ONE_VARIANT, 1.0),
        };
        let on_one = most.into_iter().take(TRIED_VARIANTS).map(|(variant, _)| Self {
            only_on: Some(variant),
            prior: of_unreliable(ON_ONE_VARIANT / f64::from(count(variants)), 0.0),
        });
        [everywhere].into_iter().chain(on_one).collect()
    }

    /// The flake rates of a result on a variant. In a period in which the calendar fails the test, it fails at least at that
    /// rate.
    fn rates(&self, variant: usize, result: &ResultFacts) -> PerRate {
        let rates = match self.only_on {
            Some(only) if only != variant => [RELIABLE; GRID],
            Some(_) | None => RATES,
        };
        match result.calendar > 0.0 {
            true => rates.map(|rate| 1.0 - (1.0 - rate) * (1.0 - result.calendar)),
            false => rates,
        }
    }
}

/// The parts of every failure, given all results of the sequence. `on_branches` is the probability that a new revision of
/// another branch than the stable one breaks a test; its first revision does so twice as often.
pub(crate) fn smooth(sequence: &Sequence, on_branches: f64, prior: &PerRate) -> Posterior {
    let links = links(sequence);
    let passes = Hypothesis::all(sequence, prior).into_iter();
    let passes = passes.map(|hypothesis| {
        (
            hypothesis,
            Forward::run(sequence, &links, on_branches, &hypothesis),
        )
    });
    let passes: Vec<(Hypothesis, Forward)> = passes.collect();
    let logs = passes.iter().flat_map(|(_, forward)| forward.log_likelihood);
    let top = logs.fold(f64::NEG_INFINITY, f64::max);
    let weights = passes.iter().map(|(hypothesis, forward)| -> PerRate {
        from_fn(|k| hypothesis.prior[k] * (forward.log_likelihood[k] - top).exp())
    });
    let mut weights: Vec<PerRate> = weights.collect();
    let total: f64 = weights.iter().flatten().sum();
    for weight in weights.iter_mut().flatten() {
        *weight /= total;
    }
    let variants = sequence.chains.iter().map(|chain| chain.variant + 1).max();
    let mut posterior = Posterior {
        parts: vec![None; links.len()],
        unreliable: vec![0.0; variants.unwrap_or(0)],
    };
    for ((hypothesis, forward), weights) in passes.iter().zip(&weights) {
        let unreliable = weights.iter().sum::<f64>() - reliable(weights);
        for (variant, of_variant) in posterior.unreliable.iter_mut().enumerate() {
            if hypothesis.only_on.is_none_or(|only| only == variant) {
                *of_variant += unreliable;
            }
        }
        backward(
            sequence,
            &links,
            (hypothesis, forward),
            weights,
            &mut posterior.parts,
        );
    }
    posterior
}

/// The posterior of the flake rates. The likelihoods may have any common factor.
pub(crate) fn posterior(prior: &PerRate, log_likelihood: &PerRate) -> PerRate {
    let top = log_likelihood.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: PerRate = from_fn(|k| prior[k] * (log_likelihood[k] - top).exp());
    let total: f64 = weights.iter().sum();
    weights.map(|weight| weight / total)
}

/// The results of the forward pass.
struct Forward {
    log_likelihood: PerRate,
    /// By result.
    steps: Vec<ForwardStep>,
    /// Ascending by result.
    failures: Vec<ForwardFailure>,
}

/// The part of the forward pass that the parts of a failure need.
#[derive(Debug, Clone, Copy)]
struct ForwardFailure {
    /// Its result.
    index: usize,
    /// The state after it.
    shares: Shares,
    /// The share of a good test's failures here that the run causes.
    crowd: PerRate,
}

/// The part of the forward pass that the backward pass needs of a result.
#[derive(Debug, Clone, Copy)]
struct ForwardStep {
    likelihood: Likelihood,
    keeps: PerRate,
    breaks: PerRate,
    /// P(an outage begins) before the result, if the code is good.
    begins: PerRate,
    keeps_before: PerRate,
    breaks_before: PerRate,
    /// The faults before the result if its sibling has none that it shares; none without a sibling or new code.
    apart: Faults,
}

impl Forward {
    fn run(sequence: &Sequence, links: &[Link], on_branches: f64, hypothesis: &Hypothesis) -> Self {
        let mut states = vec![Shares::NONE; sequence.chains.len()];
        let mut stable = vec![StableCode::NONE; sequence.chains.len()];
        let mut forward = Self {
            log_likelihood: ZERO,
            steps: Vec::with_capacity(links.len()),
            failures: Vec::new(),
        };
        let mut product = [1.0; GRID];
        for (index, (result, link)) in sequence.results.iter().zip(links).enumerate() {
            let shared = shared_faults(sequence, &states, link);
            let (predicted, apart) = predict(
                sequence,
                (&states, &stable),
                result,
                link,
                on_branches,
                shared.as_ref(),
            );
            let Prediction {
                shares,
                keeps,
                breaks,
                begins,
                keeps_before,
                breaks_before,
            } = predicted;
            let mut relative = (ZERO, ZERO);
            let backgrounds = match link.in_same_crowd.zip(shared) {
                // Given that the code is good here. If it is broken on the sibling, it is broken here more probably.
                Some((sibling, shared)) => {
                    let crowd = forward.crowd_of(sibling);
                    from_fn(|k| {
                        with_sibling(
                            crowd[k] / (1.0 - SIBLING * shared.broken[k] - SIBLING * shared.outage[k]),
                            result.beta,
                        )
                    })
                }
                None => [result.beta; GRID],
            };
            let rates = hypothesis.rates(sequence.chains[result.chain].variant, result);
            let likelihood = Likelihood::with_rates(result.outcome, &rates, &backgrounds);
            let state = &mut states[result.chain];
            let (lasting, outage) = (shares.lasting(), shares.any_outage());
            for (k, product) in product.iter_mut().enumerate() {
                let (good, broken) = (likelihood.good[k], likelihood.broken);
                let b = lasting[k] + outage[k];
                let z = shares.good[k] * good + b * broken;
                *product *= z;
                let (good, broken) = (good / z, broken / z);
                (relative.0[k], relative.1[k]) = (good, broken);
                state.good[k] = shares.good[k] * good;
                state.this[k] = shares.this[k] * broken;
                state.earlier[k] = shares.earlier[k] * broken;
                state.before[k] = shares.before[k] * broken;
                state.drift[k] = shares.drift[k] * broken;
                state.outage[k] = shares.outage[k] * broken;
                state.outage_before[k] = shares.outage_before[k] * broken;
            }
            if sequence.chains[result.chain].stable {
                stable[result.chain].add(result, &predicted, &relative, state);
            }
            if link.is_left_broken {
                let broken = state.broken();
                for (k, product) in product.iter_mut().enumerate() {
                    *product *= 1.0 - (1.0 - LEFT_BROKEN[k]) * broken[k];
                }
            }
            if index % FACTORS == FACTORS - 1 || index + 1 == links.len() {
                for (log, product) in forward.log_likelihood.iter_mut().zip(&mut product) {
                    *log += std::mem::replace(product, 1.0).ln();
                }
            }
            if result.outcome.had_failure() {
                forward.failures.push(ForwardFailure {
                    index,
                    shares: *state,
                    crowd: crowd_shares(&rates, &backgrounds),
                });
            }
            forward.steps.push(ForwardStep {
                likelihood,
                keeps,
                breaks,
                begins,
                keeps_before,
                breaks_before,
                apart,
            });
        }
        forward
    }

    /// The probability that a failure is the run's fault.
    fn crowd_of(&self, failure: usize) -> PerRate {
        let found = self
            .failures
            .binary_search_by_key(&failure, |failure| failure.index);
        found.map_or(ZERO, |place| {
            let ForwardFailure { shares, crowd, .. } = &self.failures[place];
            from_fn(|k| shares.good[k] * crowd[k])
        })
    }
}

/// The share of a good test's failures that the run causes.
fn crowd_shares(rates: &PerRate, backgrounds: &PerRate) -> PerRate {
    from_fn(|k| backgrounds[k] / (1.0 - (1.0 - rates[k]) * (1.0 - backgrounds[k])))
}

/// The background of a result, if a crowd failed its sibling in the same run with this probability.
fn with_sibling(crowd: f64, beta: f64) -> f64 {
    SIBLING * crowd + (1.0 - SIBLING) * beta
}

/// The factors of the later variants for the parts of the one before them, in relation to that of a flake. Drift and what
/// an earlier revision of the branch broke have the factor of a flake. So have, unless the next result is the first of a
/// stable chain, a breakage and an outage of an earlier revision.
#[derive(Debug, Clone, Copy)]
struct OfSibling {
    crowd: PerRate,
    this: PerRate,
    before: PerRate,
    outage: PerRate,
    outage_before: PerRate,
}

impl OfSibling {
    const NONE: Self = Self {
        crowd: [1.0; GRID],
        this: [1.0; GRID],
        before: [1.0; GRID],
        outage: [1.0; GRID],
        outage_before: [1.0; GRID],
    };
    /// The largest factor. Those of many variants would be too large for an `f64`.
    const MOST: f64 = 1e100;

    /// The factors of a result for its sibling. `next` has those of the variants after it.
    fn of(
        (result, rates): (&ResultFacts, &PerRate),
        link: &Link,
        step: &ForwardStep,
        later: &Later,
        next: &Self,
    ) -> Self {
        // The probability of the result and of the later ones if its code is broken.
        let broken: PerRate = later.broken.map(|later| step.likelihood.broken * later);
        let outage: PerRate = later.outage.map(|later| step.likelihood.broken * later);
        // The same if the sibling has no fault that the result shares.
        let apart = |background: f64| -> PerRate {
            let backgrounds = [background; GRID];
            let good = Likelihood::with_rates(result.outcome, rates, &backgrounds).good;
            let crowd = crowd_shares(rates, &backgrounds);
            from_fn(|k| {
                let next = crowd[k] * next.crowd[k] + 1.0 - crowd[k];
                let faults = (step.apart.broken[k], step.apart.outage[k]);
                (1.0 - faults.0 - faults.1) * good[k] * later.good[k] * next
                    + faults.0 * broken[k]
                    + faults.1 * outage[k]
            })
        };
        let (alone, crowd) = match link.in_same_crowd {
            Some(_) => (
                apart(with_sibling(0.0, result.beta)),
                apart(with_sibling(1.0, result.beta)),
            ),
            None => {
                let alone = apart(result.beta);
                (alone, alone)
            }
        };
        let shared = |fault: &PerRate, next: &PerRate| -> PerRate {
            from_fn(|k| {
                let shared = SIBLING * fault[k] * next[k] + (1.0 - SIBLING) * alone[k];
                (shared / alone[k]).min(Self::MOST)
            })
        };
        let crowd = from_fn(|k| (crowd[k] / alone[k]).min(Self::MOST));
        // A test that is new on a stable variant has them from before, and shares the sibling's earlier ones too.
        if link.is_first_on_stable {
            let (broken, outage) = (
                shared(&broken, &next.before),
                shared(&outage, &next.outage_before),
            );
            return Self {
                crowd,
                this: broken,
                before: broken,
                outage,
                outage_before: outage,
            };
        }
        Self {
            crowd,
            this: shared(&broken, &next.this),
            outage: shared(&outage, &next.outage),
            ..Self::NONE
        }
    }
}

/// The probability of a chain's later results if the code is good, if it is broken, if it was so before the branch, and in an
/// outage. The four may have any common factor.
#[derive(Debug, Clone, Copy)]
struct Later {
    good: PerRate,
    broken: PerRate,
    before: PerRate,
    outage: PerRate,
}

impl Later {
    const NONE: Self = Self {
        good: [1.0; GRID],
        broken: [1.0; GRID],
        before: [1.0; GRID],
        outage: [1.0; GRID],
    };
    /// Those of a branch that is over and ends with a failure.
    const LEFT_BROKEN: Self = Self {
        good: [1.0; GRID],
        broken: LEFT_BROKEN,
        before: LEFT_BROKEN,
        outage: LEFT_BROKEN,
    };

    /// Adds the result before the later ones.
    fn go_back(&mut self, step: &ForwardStep) {
        for k in 0..GRID {
            let good = step.likelihood.good[k] * self.good[k];
            let broken = step.likelihood.broken * self.broken[k];
            let before = step.likelihood.broken * self.before[k];
            let outage = step.likelihood.broken * self.outage[k];
            let (breaks, begins, takes_over) = (step.breaks[k], step.begins[k], step.breaks_before[k]);
            let was_good = (1.0 - breaks - begins) * good
                + (breaks - takes_over) * broken
                + takes_over * before
                + begins * outage;
            let was_broken = (1.0 - step.keeps[k]) * good + step.keeps[k] * broken;
            let was_before = (1.0 - step.keeps_before[k]) * good + step.keeps_before[k] * before;
            let total = was_good + was_broken;
            self.good[k] = was_good / total;
            self.broken[k] = was_broken / total;
            self.before[k] = was_before / total;
            self.outage[k] = ((1.0 - OUTAGE_LASTS) * good + OUTAGE_LASTS * outage) / total;
        }
    }
}

/// Adds the parts of each failure under a hypothesis, given all results: the sum over the rates by their weights.
fn backward(
    sequence: &Sequence,
    links: &[Link],
    (hypothesis, forward): (&Hypothesis, &Forward),
    weights: &PerRate,
    parts: &mut [Option<Parts>],
) {
    let mut failures = forward.failures.as_slice();
    let mut later_of_chain = vec![Later::NONE; sequence.chains.len()];
    // The factor of the next variant for the one before it.
    let mut by_sibling: BTreeMap<usize, OfSibling> = BTreeMap::new();
    for (index, (step, link)) in forward.steps.iter().zip(links).enumerate().rev() {
        let result = &sequence.results[index];
        let later = &mut later_of_chain[result.chain];
        if link.is_left_broken {
            *later = Later::LEFT_BROKEN;
        }
        let of_sibling = by_sibling.remove(&index).unwrap_or(OfSibling::NONE);
        if let Some((failure, earlier)) = failures
            .split_last()
            .filter(|(failure, _)| failure.index == index)
        {
            failures = earlier;
            let sum = parts[index].get_or_insert([0.0; PARTS]);
            for (sum, part) in sum.iter_mut().zip(mixed(failure, later, &of_sibling, weights)) {
                *sum += part;
            }
        }
        if let Some(sibling) = link.sibling.filter(|_| link.step != Step::SameRevision) {
            let rates = hypothesis.rates(sequence.chains[result.chain].variant, result);
            let factor = OfSibling::of((result, &rates), link, step, later, &of_sibling);
            by_sibling.insert(sibling, factor);
        }
        later.go_back(step);
    }
}

/// The parts of a failure. `of_sibling` has the factors of the next variant.
fn mixed(
    ForwardFailure { shares, crowd, .. }: &ForwardFailure,
    later: &Later,
    of_sibling: &OfSibling,
    weights: &PerRate,
) -> Parts {
    let mut mixed = [0.0; PARTS];
    for k in 0..GRID {
        let good = shares.good[k] * later.good[k];
        let mut parts = [0.0; PARTS];
        parts[FLAKE] = good * (1.0 - crowd[k]);
        parts[CROWD] = good * crowd[k] * of_sibling.crowd[k];
        let outage =
            shares.outage[k] * of_sibling.outage[k] + shares.outage_before[k] * of_sibling.outage_before[k];
        parts[DRIFT] = shares.drift[k] * later.broken[k] + outage * later.outage[k];
        parts[BEFORE] = shares.before[k] * later.before[k] * of_sibling.before[k];
        parts[EARLIER] = shares.earlier[k] * later.broken[k];
        parts[THIS] = shares.this[k] * later.broken[k] * of_sibling.this[k];
        let total: f64 = parts.iter().sum();
        for (mixed, part) in mixed.iter_mut().zip(parts) {
            *mixed += weights[k] * part / total;
        }
    }
    mixed
}
