//! Forward-backward over the results of one test, with P(Broken) split by who broke the code.
//!
//! The flake rates are independent of each other, so each is passed over separately and the results are mixed at the end.
#![expect(
    clippy::indexing_slicing,
    reason = "every index was made by the sequence that sized the vectors, or runs over the grid"
)]

use std::array::from_fn;

use assay_domain::timestamp::{DAY_MS, Timestamp};

use crate::model::{GRID, Likelihood, Outcome, PerRate, RATES, Step};

/// How many parts there are.
pub(crate) const PARTS: usize = 6;
/// The probability of each part.
pub(crate) type Parts = [f64; PARTS];

/// Good code, and the test failed of itself.
pub(crate) const FLAKE: usize = 0;
/// Good code, and the run's background struck.
pub(crate) const CROWD: usize = 1;
/// The world changed under the code.
pub(crate) const DRIFT: usize = 2;
/// Broken before this branch, or inherited from the stable branch.
pub(crate) const BEFORE: usize = 3;
/// Broken by an earlier revision of this branch.
pub(crate) const EARLIER: usize = 4;
/// Broken by this revision.
pub(crate) const THIS: usize = 5;

/// The probability that a broken test passes nevertheless.
const BROKEN_PASSES: f64 = 0.002;
/// P(Broken) of a stable chain before its first result.
const FIRST_STABLE: f64 = 0.015;
/// How much of the stable chain's P(Broken) another chain inherits.
const INHERITED: f64 = 0.7;
/// How readily a running branch takes over a breakage of the stable one.
const CAUGHT: f64 = 0.3;
/// How often a new revision mends a breakage: on the stable branch, on another one.
const MENDS: (f64, f64) = (0.05, 0.2);
/// A breakage and a fix within one revision.
const SAME_REVISION: (f64, f64) = (0.0003, 0.002);
/// A revision that breaks a test on one variant breaks it on the next one this often.
const SIBLING: f64 = 0.85;
/// How much the last result of another branch says of a change of the world.
const SHARED_WORLD: f64 = 0.3;
/// The longest time between the two results.
const SHARED_WORLD_MS: i64 = 2 * DAY_MS;

/// How often a new revision breaks a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BreakRates {
    /// Of the stable branch.
    pub(crate) stable: f64,
    /// Of another branch; its first one breaks twice as often.
    pub(crate) other: f64,
}

impl Default for BreakRates {
    fn default() -> Self {
        Self {
            stable: 0.001,
            other: 0.003,
        }
    }
}

/// The results of one test, in the engine's order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sequence {
    pub(crate) chains: Vec<ChainFacts>,
    pub(crate) results: Vec<ResultFacts>,
}

/// A chain of the sequence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainFacts {
    /// Its branch, by number.
    pub(crate) branch: usize,
    pub(crate) stable: bool,
    /// The stable chain of its variant, where the test ran on it.
    pub(crate) base: Option<usize>,
}

/// A result of the sequence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultFacts {
    pub(crate) chain: usize,
    pub(crate) revision: usize,
    pub(crate) outcome: Outcome,
    /// The background of its run.
    pub(crate) beta: f64,
    /// The odds that a crowd on a new revision is the change's.
    pub(crate) chi: f64,
    /// The start of its run.
    pub(crate) started_at: Timestamp,
}

/// What the pass over a sequence says.
#[derive(Debug, Clone)]
pub(crate) struct Smoothed {
    /// By result.
    pub(crate) parts: Vec<Parts>,
    /// The posterior of each flake rate.
    pub(crate) weights: PerRate,
}

/// What a result is linked to, whatever the flake rate.
#[derive(Debug, Clone, Copy)]
struct Link {
    step: Step,
    /// The result before it on its branch, where that is another variant's at this revision.
    sibling: Option<usize>,
    /// The chain of the last result of another branch off the stable one, where that is recent.
    elsewhere: Option<usize>,
}

/// The state of a chain: good, or broken by whom. All add up to 1.
///
/// The good share is kept, not computed as what the others leave: where that is tiny, a difference has no digits.
#[derive(Debug, Clone, Copy, Default)]
struct Shares {
    good: f64,
    this: f64,
    earlier: f64,
    before: f64,
    drift: f64,
}

impl Shares {
    fn broken(&self) -> f64 {
        self.this + self.earlier + self.before + self.drift
    }

    /// The broken shares times a factor.
    fn times(&self, factor: f64) -> Self {
        Self {
            good: self.good,
            this: self.this * factor,
            earlier: self.earlier * factor,
            before: self.before * factor,
            drift: self.drift * factor,
        }
    }
}

/// The state of a chain before its next result.
#[derive(Debug, Clone, Copy)]
struct Predicted {
    shares: Shares,
    /// P(still broken) of broken code.
    keeps: f64,
    /// P(broken now) of good code.
    breaks: f64,
}

/// The parts of every result, given all results of the sequence.
pub(crate) fn smooth(sequence: &Sequence, rates: BreakRates, prior: &PerRate) -> Smoothed {
    let links = links(sequence);
    let results = sequence.results.iter();
    let likelihoods: Vec<_> = results
        .map(|result| Likelihood::of(result.outcome, result.beta, BROKEN_PASSES))
        .collect();
    let passes: [RatePass; GRID] = from_fn(|k| RatePass::run(sequence, &links, &likelihoods, rates, k));
    let top = passes
        .iter()
        .map(|pass| pass.log_likelihood)
        .fold(f64::NEG_INFINITY, f64::max);
    let weights: PerRate = from_fn(|k| prior[k] * (passes[k].log_likelihood - top).exp());
    let total: f64 = weights.iter().sum();
    let weights = weights.map(|weight| weight / total);
    let mixed = |result: usize| {
        from_fn(|part| {
            (0..GRID)
                .map(|k| weights[k] * passes[k].parts[result][part])
                .sum()
        })
    };
    Smoothed {
        parts: (0..sequence.results.len()).map(mixed).collect(),
        weights,
    }
}

fn links(sequence: &Sequence) -> Vec<Link> {
    let mut last_of_chain: Vec<Option<usize>> = vec![None; sequence.chains.len()];
    let branches = sequence.chains.iter().map(|chain| chain.branch + 1).max();
    let mut last_of_branch: Vec<Option<usize>> = vec![None; branches.unwrap_or(0)];
    // The last results of the two branches off the stable one that ran last.
    let mut latest: [Option<usize>; 2] = [None, None];
    let mut links = Vec::with_capacity(sequence.results.len());
    for (index, result) in sequence.results.iter().enumerate() {
        let chain = sequence.chains[result.chain];
        let branch_of = |other: usize| sequence.chains[sequence.results[other].chain].branch;
        let before = last_of_chain[result.chain].replace(index);
        let step = Step::between(
            before.map(|before| sequence.results[before].revision),
            result.revision,
        );
        let sibling = last_of_branch[chain.branch].replace(index).filter(|sibling| {
            let sibling = &sequence.results[*sibling];
            sibling.revision == result.revision && sibling.chain != result.chain
        });
        let is_same = latest[0].is_some_and(|latest| branch_of(latest) == chain.branch);
        let elsewhere = if is_same { latest[1] } else { latest[0] };
        let elsewhere = elsewhere.filter(|other| {
            let apart = result.started_at.since_ms(sequence.results[*other].started_at);
            !chain.stable && apart.abs() <= SHARED_WORLD_MS
        });
        links.push(Link {
            step,
            sibling,
            elsewhere: elsewhere.map(|other| sequence.results[other].chain),
        });
        if !chain.stable {
            if !is_same {
                latest[1] = latest[0];
            }
            latest[0] = Some(index);
        }
    }
    links
}

/// The pass under one flake rate.
struct RatePass {
    log_likelihood: f64,
    parts: Vec<Parts>,
}

/// What the backward pass needs of a result.
#[derive(Debug, Clone, Copy)]
struct Passed {
    good: f64,
    broken: f64,
    keeps: f64,
    breaks: f64,
}

impl RatePass {
    fn run(
        sequence: &Sequence,
        links: &[Link],
        likelihoods: &[Likelihood],
        rates: BreakRates,
        k: usize,
    ) -> Self {
        let (mut pass, passed) = Self::forward(sequence, links, likelihoods, rates, k);
        pass.backward(sequence, links, &passed);
        pass
    }

    /// The parts of each result, given the results until it.
    fn forward(
        sequence: &Sequence,
        links: &[Link],
        likelihoods: &[Likelihood],
        rates: BreakRates,
        k: usize,
    ) -> (Self, Vec<Passed>) {
        let mut states: Vec<Option<Shares>> = vec![None; sequence.chains.len()];
        let mut pass = Self {
            log_likelihood: 0.0,
            parts: Vec::with_capacity(links.len()),
        };
        let mut passed = Vec::with_capacity(links.len());
        for ((result, link), likelihood) in sequence.results.iter().zip(links).zip(likelihoods) {
            let predicted = predict(sequence, &states, result, link, rates);
            let (good, broken) = (likelihood.good[k], likelihood.broken);
            let b = predicted.shares.broken();
            let z = predicted.shares.good * good + b * broken;
            pass.log_likelihood += z.ln();
            let mut shares = predicted.shares.times(broken / z);
            shares.good *= good / z;
            states[result.chain] = Some(shares);
            let fails = 1.0 - (1.0 - RATES[k]) * (1.0 - result.beta);
            let crowd = result.beta / fails;
            let mut parts = [0.0; PARTS];
            parts[FLAKE] = shares.good * (1.0 - crowd);
            parts[CROWD] = shares.good * crowd;
            parts[DRIFT] = shares.drift;
            parts[BEFORE] = shares.before;
            parts[EARLIER] = shares.earlier;
            parts[THIS] = shares.this;
            pass.parts.push(parts);
            passed.push(Passed {
                good,
                broken,
                keeps: predicted.keeps,
                breaks: predicted.breaks,
            });
        }
        (pass, passed)
    }

    /// Takes the later results into the parts of the earlier ones.
    fn backward(&mut self, sequence: &Sequence, links: &[Link], passed: &[Passed]) {
        // How probable the later results of a chain are, with the code good and broken.
        let mut later = vec![(1.0, 1.0); sequence.chains.len()];
        // What the next variant says of the one before it.
        let mut by_sibling = vec![1.0; passed.len()];
        for index in (0..passed.len()).rev() {
            let chain = sequence.results[index].chain;
            let Passed {
                good,
                broken,
                keeps,
                breaks,
            } = passed[index];
            let (later_good, later_broken) = later[chain];
            let factors: Parts = from_fn(|part| match part {
                FLAKE | CROWD => later_good,
                THIS => later_broken * by_sibling[index],
                _ => later_broken,
            });
            let parts = &mut self.parts[index];
            for (part, factor) in parts.iter_mut().zip(factors) {
                *part *= factor;
            }
            let total: f64 = parts.iter().sum();
            for part in parts {
                *part /= total;
            }
            let (good, broken) = (good * later_good, broken * later_broken);
            let link = &links[index];
            if let Some(sibling) = link.sibling.filter(|_| link.step != Step::SameRevision) {
                by_sibling[sibling] = SIBLING * broken / good * by_sibling[index] + 1.0 - SIBLING;
            }
            let was_good = (1.0 - breaks) * good + breaks * broken;
            let was_broken = (1.0 - keeps) * good + keeps * broken;
            let total = was_good + was_broken;
            later[chain] = (was_good / total, was_broken / total);
        }
    }
}

/// The state of a result's chain before the result is seen.
fn predict(
    sequence: &Sequence,
    states: &[Option<Shares>],
    result: &ResultFacts,
    link: &Link,
    rates: BreakRates,
) -> Predicted {
    let chain = sequence.chains[result.chain];
    let state = |chain: usize| states[chain].unwrap_or_default();
    let m = match chain.base {
        Some(base) if !chain.stable => INHERITED * state(base).broken(),
        _ => 0.0,
    };
    let h = if chain.stable { rates.stable } else { rates.other };
    let sibling = link
        .sibling
        .map(|sibling| state(sequence.results[sibling].chain).this);
    let h = sibling.map_or(h, |new| SIBLING * new + (1.0 - SIBLING) * h * (1.0 - new));
    let crowd = result.chi * result.beta / (1.0 + result.chi * result.beta);
    let drift = link
        .elsewhere
        .map_or(0.0, |other| SHARED_WORLD * state(other).broken());
    let now = state(result.chain);
    let good = now.good;
    match link.step {
        Step::First => first(
            chain.stable,
            m,
            if sibling.is_some() { h } else { 2.0 * h },
            crowd,
            drift,
        ),
        Step::SameRevision | Step::LaterRerun => {
            let mut shares = now.times(1.0 - SAME_REVISION.1);
            shares.drift += SAME_REVISION.0 * good;
            shares.good = (1.0 - SAME_REVISION.0) * good + SAME_REVISION.1 * now.broken();
            Predicted {
                shares,
                keeps: 1.0 - SAME_REVISION.1,
                breaks: SAME_REVISION.0,
            }
        }
        Step::NewRevision => {
            let (keeps, caught, own) = if chain.stable {
                (1.0 - MENDS.0, 0.0, h)
            } else {
                (1.0 - MENDS.1 * (1.0 - m), CAUGHT * m, h * (1.0 - CAUGHT * m))
            };
            let own = own + (1.0 - own - caught) * crowd;
            let drift = (1.0 - own - caught) * drift;
            let code = now.this + now.earlier;
            let (earlier, before) = if chain.stable {
                (0.0, keeps * (now.before + code))
            } else {
                (keeps * code, keeps * now.before + good * caught)
            };
            let breaks = own + caught + drift;
            Predicted {
                shares: Shares {
                    good: (1.0 - breaks) * good + (1.0 - keeps) * now.broken(),
                    this: good * own,
                    earlier,
                    before,
                    drift: keeps * now.drift + good * drift,
                },
                keeps,
                breaks,
            }
        }
    }
}

/// The state of a chain before its first result.
fn first(stable: bool, m: f64, h: f64, crowd: f64, drift: f64) -> Predicted {
    let shares = if stable {
        Shares {
            good: 1.0 - FIRST_STABLE,
            before: FIRST_STABLE,
            ..Shares::default()
        }
    } else {
        let this = h * (1.0 - m);
        let this = this + (1.0 - this - m) * crowd;
        let drift = (1.0 - this - m) * drift;
        Shares {
            good: 1.0 - this - m - drift,
            this,
            before: m,
            drift,
            earlier: 0.0,
        }
    };
    Predicted {
        shares,
        keeps: shares.broken(),
        breaks: shares.broken(),
    }
}
