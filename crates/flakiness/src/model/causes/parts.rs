//! Forward-backward over the results of one test, with P(Broken) split by the origin of the breakage.
//!
//! The flake rates are independent of each other. The pass runs for all of them side by side, so that the compiler can
//! use vector instructions. Only failures get parts: nothing reads those of a result that passed at once.
#![expect(
    clippy::indexing_slicing,
    reason = "every index was made by the sequence that sized the vectors, or runs over the grid"
)]

use std::{array::from_fn, collections::BTreeMap};

use assay_domain::timestamp::Timestamp;

use crate::{
    config::MASS_FAILURE,
    model::{
        BRANCHES_MEND, CAUGHT, FIRST_STABLE, GRID, INHERITED, Likelihood, MERGED_WITHIN_MS, Outcome, PerRate,
        RATES, SAME_REVISION_MENDS, SIBLING, Step, breaks_like_branch, breaks_like_sibling,
        project_rates::USUALLY_UNRELIABLE, same_revision_breaks,
    },
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

/// The prior probability of each rate. The causes know no tests that changes break often: the question is whether this
/// change broke the test.
pub(crate) const PRIOR: PerRate = {
    let mut prior = [USUALLY_UNRELIABLE / 9.0; GRID];
    prior[0] = 1.0 - USUALLY_UNRELIABLE;
    prior[GRID - 1] = 0.0;
    prior
};
/// The lower bound of the rate at which a branch breaks a test. A project of few branches shows too few breakages.
pub(crate) const BRANCHES_BREAK_AT_LEAST: f64 = 0.0006;
/// How many times as probable a change outside of the code is as a breakage by the branch: if one other branch failed with
/// the same error, and if several did.
const WITNESSES: (f64, f64) = (2.0, 6.0);
/// The upper bound of this probability.
const OUTSIDE_AT_MOST: f64 = 0.3;
/// The share of new failures on one revision that the change causes, if no other branch met them: code may fail only
/// sometimes.
const OWN_LATER: f64 = 0.5;
/// The number of likelihoods that are multiplied before a logarithm is taken. Each is at least 1e-7, so the product
/// stays in the range of an `f64`.
const FACTORS: usize = 32;

/// The results of one test, in the engine's order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sequence {
    pub(crate) chains: Vec<ChainFacts>,
    pub(crate) results: Vec<ResultFacts>,
    /// Whether the causes of the stable branch's failures are asked for. Then a stable revision may contain what a
    /// merged branch broke.
    pub(crate) asks_for_stable: bool,
}

/// A chain of the sequence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainFacts {
    /// Its branch, by number.
    pub(crate) branch: usize,
    pub(crate) stable: bool,
    /// The stable chain of its variant, if the test ran on it.
    pub(crate) base: Option<usize>,
}

/// A result of the sequence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultFacts {
    pub(crate) chain: usize,
    /// Its run, which may have several variants.
    pub(crate) run: usize,
    pub(crate) revision: usize,
    pub(crate) outcome: Outcome,
    /// The background of its run.
    pub(crate) beta: f64,
    /// The odds that the change caused a crowd on a new revision.
    pub(crate) chi: f64,
    /// The start of its run.
    pub(crate) started_at: Timestamp,
    /// The probability that its revision breaks the test, and mends it, if its chain is a stable one.
    pub(crate) stable_rates: (f64, f64),
    /// The number of other branches that met the same failure before.
    pub(crate) witnesses: u32,
}

/// The result of the pass over a sequence.
#[derive(Debug, Clone)]
pub(crate) struct Posterior {
    /// By result; `None` for a test that passed at its first attempt.
    pub(crate) parts: Vec<Option<Parts>>,
    /// The posterior of each flake rate.
    pub(crate) weights: PerRate,
}

/// The links of a result to earlier results. They are the same for every flake rate.
#[derive(Debug, Clone, Copy)]
struct Link {
    step: Step,
    /// The previous result on its branch, if that is another variant's at this revision.
    sibling: Option<usize>,
    /// Whether it is the first result of a stable chain.
    is_first_on_stable: bool,
    /// The sibling, if one crowd may have failed the test on both: they belong to one run, the sibling failed with others,
    /// and the result failed or has a background.
    in_same_crowd: Option<usize>,
    /// The time since the previous result of its chain; 0 if there is none.
    apart_ms: i64,
    /// For a failure that begins on the stable branch: the failing streak of a branch that its revision may have merged.
    merged_streak: Option<u32>,
}

/// The state of a chain under each flake rate: good, or broken by one of four causes. All add up to 1.
///
/// The good share is stored. If it is tiny, 1 minus the others would have no correct digits.
#[derive(Debug, Clone, Copy)]
struct Shares {
    good: PerRate,
    this: PerRate,
    earlier: PerRate,
    before: PerRate,
    drift: PerRate,
}

impl Shares {
    /// The state of a chain before its first result.
    const NONE: Self = Self {
        good: ZERO,
        this: ZERO,
        earlier: ZERO,
        before: ZERO,
        drift: ZERO,
    };

    fn broken(&self) -> PerRate {
        from_fn(|k| self.this[k] + self.earlier[k] + self.before[k] + self.drift[k])
    }
}

const ZERO: PerRate = [0.0; GRID];

/// The state of a chain before its next result.
#[derive(Debug, Clone, Copy)]
struct Prediction {
    shares: Shares,
    /// P(still broken) of broken code.
    keeps: PerRate,
    /// P(broken now) of good code.
    breaks: PerRate,
}

/// The parts of every failure, given all results of the sequence. `on_branches` is the probability that a new revision of
/// another branch than the stable one breaks a test; its first revision does so twice as often.
pub(crate) fn smooth(sequence: &Sequence, on_branches: f64, prior: &PerRate) -> Posterior {
    let links = links(sequence);
    let forward = Forward::run(sequence, &links, on_branches);
    let weights = posterior(prior, &forward.log_likelihood);
    Posterior {
        parts: backward(sequence, &links, &forward, &weights),
        weights,
    }
}

/// The posterior of the flake rates. The likelihoods may have any common factor.
pub(crate) fn posterior(prior: &PerRate, log_likelihood: &PerRate) -> PerRate {
    let top = log_likelihood.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: PerRate = from_fn(|k| prior[k] * (log_likelihood[k] - top).exp());
    let total: f64 = weights.iter().sum();
    weights.map(|weight| weight / total)
}

/// The failures in a row at the end of a chain. Results of mass failures do not count.
#[derive(Debug, Clone, Copy)]
struct FailingEnd {
    streak: u32,
    at: Timestamp,
}

/// The failing ends of chains off the stable branch, by chain.
struct FailingEnds(Vec<Option<FailingEnd>>);

impl FailingEnds {
    fn add(&mut self, result: &ResultFacts) {
        if result.beta >= MASS_FAILURE {
            return;
        }
        let end = &mut self.0[result.chain];
        let streak = end.map_or(0, |end| end.streak);
        *end = result.outcome.failed().then_some(FailingEnd {
            streak: streak + 1,
            at: result.started_at,
        });
    }

    /// The longest streak at the end of a branch of the same variant that failed at most a day before a stable result.
    fn longest(&self, sequence: &Sequence, stable: &ResultFacts) -> Option<u32> {
        let of_variant = sequence.chains.iter().zip(&self.0);
        let ends = of_variant.filter_map(|(chain, end)| end.filter(|_| chain.base == Some(stable.chain)));
        ends.filter(|end| (0..=MERGED_WITHIN_MS).contains(&stable.started_at.since_ms(end.at)))
            .map(|end| end.streak)
            .max()
    }
}

fn links(sequence: &Sequence) -> Vec<Link> {
    let mut failing_ends = FailingEnds(vec![None; sequence.chains.len()]);
    let mut last_of_chain: Vec<Option<usize>> = vec![None; sequence.chains.len()];
    let branches = sequence.chains.iter().map(|chain| chain.branch + 1).max();
    let mut last_of_branch: Vec<Option<usize>> = vec![None; branches.unwrap_or(0)];
    let mut links = Vec::with_capacity(sequence.results.len());
    for (index, result) in sequence.results.iter().enumerate() {
        let chain = sequence.chains[result.chain];
        let before = last_of_chain[result.chain].replace(index);
        let step = Step::between(
            before.map(|before| sequence.results[before].revision),
            result.revision,
        );
        let sibling = last_of_branch[chain.branch].replace(index).filter(|sibling| {
            let sibling = &sequence.results[*sibling];
            sibling.revision == result.revision && sibling.chain != result.chain
        });
        let in_same_crowd = sibling.filter(|sibling| {
            let sibling = &sequence.results[*sibling];
            step.is_new_code()
                && sibling.run == result.run
                && sibling.outcome.had_failure()
                && sibling.beta > 0.0
                // The run had no outage on a variant where the test passed and no crowd failed.
                && (result.outcome.had_failure() || result.beta > 0.0)
        });
        let apart_ms = before.map_or(0, |before| {
            result.started_at.since_ms(sequence.results[before].started_at)
        });
        let failed = |index: usize| sequence.results[index].outcome.failed();
        let may_be_merged = sequence.asks_for_stable
            && chain.stable
            && step == Step::NewRevision
            && result.outcome.failed()
            && result.beta < MASS_FAILURE
            && !before.is_some_and(failed)
            && !sibling.is_some_and(failed);
        let merged_streak = may_be_merged
            .then(|| failing_ends.longest(sequence, result))
            .flatten();
        if !chain.stable {
            failing_ends.add(result);
        }
        links.push(Link {
            step,
            sibling,
            is_first_on_stable: step == Step::First && chain.stable,
            in_same_crowd,
            apart_ms,
            merged_streak,
        });
    }
    links
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
    /// P(Broken) before the result if its sibling has no breakage that it shares; 0 without a sibling or new code.
    apart: PerRate,
}

impl Forward {
    fn run(sequence: &Sequence, links: &[Link], on_branches: f64) -> Self {
        let mut states = vec![Shares::NONE; sequence.chains.len()];
        let mut forward = Self {
            log_likelihood: ZERO,
            steps: Vec::with_capacity(links.len()),
            failures: Vec::new(),
        };
        let mut product = [1.0; GRID];
        for (index, (result, link)) in sequence.results.iter().zip(links).enumerate() {
            let shared = shared_breakage(sequence, &states, link);
            let (predicted, apart) = predict(sequence, &states, result, link, on_branches, shared.as_ref());
            let Prediction {
                shares,
                keeps,
                breaks,
            } = predicted;
            let backgrounds = match link.in_same_crowd.zip(shared) {
                // Given that the code is good here. If it is broken on the sibling, it is broken here more probably.
                Some((sibling, shared)) => {
                    let crowd = forward.crowd_of(sibling);
                    from_fn(|k| with_sibling(crowd[k] / (1.0 - SIBLING * shared[k]), result.beta))
                }
                None => [result.beta; GRID],
            };
            let likelihood = Likelihood::with_backgrounds(result.outcome, &backgrounds);
            let state = &mut states[result.chain];
            for (k, product) in product.iter_mut().enumerate() {
                let (good, broken) = (likelihood.good[k], likelihood.broken);
                let b = shares.this[k] + shares.earlier[k] + shares.before[k] + shares.drift[k];
                let z = shares.good[k] * good + b * broken;
                *product *= z;
                let (good, broken) = (good / z, broken / z);
                state.good[k] = shares.good[k] * good;
                state.this[k] = shares.this[k] * broken;
                state.earlier[k] = shares.earlier[k] * broken;
                state.before[k] = shares.before[k] * broken;
                state.drift[k] = shares.drift[k] * broken;
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
                    crowd: crowd_shares(&backgrounds),
                });
            }
            forward.steps.push(ForwardStep {
                likelihood,
                keeps,
                breaks,
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
fn crowd_shares(backgrounds: &PerRate) -> PerRate {
    from_fn(|k| backgrounds[k] / (1.0 - (1.0 - RATES[k]) * (1.0 - backgrounds[k])))
}

/// The background of a result, if a crowd failed its sibling in the same run with this probability.
fn with_sibling(crowd: f64, beta: f64) -> f64 {
    SIBLING * crowd + (1.0 - SIBLING) * beta
}

/// The factors of the later variants for the parts of the one before them, in relation to that of a flake. Drift and what
/// an earlier revision of the branch broke have the factor of a flake.
#[derive(Debug, Clone, Copy)]
struct OfSibling {
    crowd: PerRate,
    this: PerRate,
    before: PerRate,
}

impl OfSibling {
    const NONE: Self = Self {
        crowd: [1.0; GRID],
        this: [1.0; GRID],
        before: [1.0; GRID],
    };
    /// The largest factor. Those of many variants would be too large for an `f64`.
    const MOST: f64 = 1e100;

    /// The factors of a result for its sibling. `next` has those of the variants after it.
    fn of(
        result: &ResultFacts,
        link: &Link,
        step: &ForwardStep,
        (later_good, later_broken): (&PerRate, &PerRate),
        next: &Self,
    ) -> Self {
        // The probability of the result and of the later ones if its code is broken.
        let broken: PerRate = from_fn(|k| step.likelihood.broken * later_broken[k]);
        // The same if the sibling has no breakage that the result shares.
        let apart = |background: f64| -> PerRate {
            let good = Likelihood::of(result.outcome, background).good;
            let crowd = crowd_shares(&[background; GRID]);
            from_fn(|k| {
                let next = crowd[k] * next.crowd[k] + 1.0 - crowd[k];
                (1.0 - step.apart[k]) * good[k] * later_good[k] * next + step.apart[k] * broken[k]
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
        let next = if link.is_first_on_stable {
            &next.before
        } else {
            &next.this
        };
        let this = from_fn(|k| {
            let shared = SIBLING * broken[k] * next[k] + (1.0 - SIBLING) * alone[k];
            (shared / alone[k]).min(Self::MOST)
        });
        Self {
            crowd: from_fn(|k| (crowd[k] / alone[k]).min(Self::MOST)),
            this,
            before: if link.is_first_on_stable {
                this
            } else {
                [1.0; GRID]
            },
        }
    }
}

/// The parts of each failure, given all results: the mean over the rates by their weights.
fn backward(sequence: &Sequence, links: &[Link], forward: &Forward, weights: &PerRate) -> Vec<Option<Parts>> {
    let mut parts = vec![None; links.len()];
    let mut failures = forward.failures.as_slice();
    // The probability of a chain's later results, if the code is good and if it is broken.
    let mut later = vec![([1.0; GRID], [1.0; GRID]); sequence.chains.len()];
    // The factor of the next variant for the one before it.
    let mut by_sibling: BTreeMap<usize, OfSibling> = BTreeMap::new();
    for (index, (step, link)) in forward.steps.iter().zip(links).enumerate().rev() {
        let result = &sequence.results[index];
        let (later_good, later_broken) = &mut later[result.chain];
        let of_sibling = by_sibling.remove(&index).unwrap_or(OfSibling::NONE);
        if let Some((failure, earlier)) = failures
            .split_last()
            .filter(|(failure, _)| failure.index == index)
        {
            failures = earlier;
            let later = (&*later_good, &*later_broken, &of_sibling);
            parts[index] = Some(mixed(failure, later, weights));
        }
        if let Some(sibling) = link.sibling.filter(|_| link.step != Step::SameRevision) {
            let later = (&*later_good, &*later_broken);
            let factor = OfSibling::of(result, link, step, later, &of_sibling);
            by_sibling.insert(sibling, factor);
        }
        for k in 0..GRID {
            let good = step.likelihood.good[k] * later_good[k];
            let broken = step.likelihood.broken * later_broken[k];
            let was_good = (1.0 - step.breaks[k]) * good + step.breaks[k] * broken;
            let was_broken = (1.0 - step.keeps[k]) * good + step.keeps[k] * broken;
            let total = was_good + was_broken;
            later_good[k] = was_good / total;
            later_broken[k] = was_broken / total;
        }
    }
    parts
}

/// The parts of a failure. `later` has the probabilities of the later results, if the code is good and if it is broken,
/// and the factors of the next variant.
fn mixed(
    ForwardFailure { shares, crowd, .. }: &ForwardFailure,
    (later_good, later_broken, of_sibling): (&PerRate, &PerRate, &OfSibling),
    weights: &PerRate,
) -> Parts {
    let mut mixed = [0.0; PARTS];
    for k in 0..GRID {
        let good = shares.good[k] * later_good[k];
        let mut parts = [0.0; PARTS];
        parts[FLAKE] = good * (1.0 - crowd[k]);
        parts[CROWD] = good * crowd[k] * of_sibling.crowd[k];
        parts[DRIFT] = shares.drift[k] * later_broken[k];
        parts[BEFORE] = shares.before[k] * later_broken[k] * of_sibling.before[k];
        parts[EARLIER] = shares.earlier[k] * later_broken[k];
        parts[THIS] = shares.this[k] * later_broken[k] * of_sibling.this[k];
        let total: f64 = parts.iter().sum();
        for (mixed, part) in mixed.iter_mut().zip(parts) {
            *mixed += weights[k] * part / total;
        }
    }
    mixed
}

/// The probability of a breakage on the sibling of a result on new code that breaks it, too, with [`SIBLING`]; `None`
/// without a sibling. For a test that is new on a variant of the stable branch, that is any breakage of the code.
fn shared_breakage(sequence: &Sequence, states: &[Shares], link: &Link) -> Option<PerRate> {
    let sibling = &states[sequence.results[link.sibling?].chain];
    let before = if link.is_first_on_stable {
        &sibling.before
    } else {
        &ZERO
    };
    Some(from_fn(|k| sibling.this[k] + before[k]))
}

/// The state of a result's chain before the result, and P(Broken) if the sibling has no breakage that it shares.
fn predict(
    sequence: &Sequence,
    states: &[Shares],
    result: &ResultFacts,
    link: &Link,
    on_branches: f64,
    shared: Option<&PerRate>,
) -> (Prediction, PerRate) {
    let chain = sequence.chains[result.chain];
    let now = &states[result.chain];
    if !link.step.is_new_code() {
        let has_witness = chain.stable || result.witnesses > 0;
        return (rerun(now, same_revision_breaks(link.apart_ms), has_witness), ZERO);
    }
    let of_stable = chain.base.filter(|_| !chain.stable);
    let m = of_stable.map_or(ZERO, |base| {
        states[base].broken().map(|broken| INHERITED * broken)
    });
    let (stable_breaks, stable_mends) = result.stable_rates;
    let usual = match (link.step, chain.stable) {
        (Step::First, true) => FIRST_STABLE,
        (_, true) => stable_breaks,
        (_, false) => on_branches,
    };
    let alone = match link.merged_streak {
        Some(streak) => breaks_like_branch(streak, &[usual; GRID], &[on_branches; GRID]),
        None => [usual; GRID],
    };
    // Like `alone`: what the revision broke with others, it mostly broke on the sibling, too.
    let crowd = link.sibling.map_or(1.0, |_| 1.0 - SIBLING) * result.chi * result.beta;
    let crowd = crowd / (1.0 + crowd);
    let drift = match result.witnesses {
        0 => 0.0,
        1 => WITNESSES.0 * on_branches,
        _ => WITNESSES.1 * on_branches,
    };
    let drift = drift.min(OUTSIDE_AT_MOST);
    let breaking_with = |h: &PerRate| match (link.step, chain.stable) {
        (Step::First, true) => first_on_stable(h),
        (Step::First, false) => first(&m, h, crowd, drift),
        (_, true) => new_on_stable(now, h, stable_mends, crowd),
        (_, false) => new_revision(now, &m, h, crowd, drift),
    };
    match shared {
        // The sibling passed what the merged branch broke here.
        Some(_) if link.merged_streak.is_some() => {
            let predicted = breaking_with(&alone);
            let apart = predicted.shares.broken();
            (predicted, apart)
        }
        Some(shared) => {
            let apart = breaking_with(&breaks_like_sibling(&alone, &ZERO));
            (
                breaking_with(&breaks_like_sibling(&alone, shared)),
                apart.shares.broken(),
            )
        }
        None if link.step == Step::First && !chain.stable => {
            (breaking_with(&alone.map(|alone| (2.0 * alone).min(0.5))), ZERO)
        }
        None => (breaking_with(&alone), ZERO),
    }
}

/// The state before the first result of a stable chain.
fn first_on_stable(broken: &PerRate) -> Prediction {
    Prediction {
        shares: Shares {
            good: broken.map(|broken| 1.0 - broken),
            before: *broken,
            ..Shares::NONE
        },
        keeps: *broken,
        breaks: *broken,
    }
}

/// The state before the first result of another chain.
fn first(m: &PerRate, h: &PerRate, crowd: f64, drift: f64) -> Prediction {
    let mut shares = Shares {
        before: *m,
        ..Shares::NONE
    };
    for k in 0..GRID {
        let this = h[k] * (1.0 - m[k]);
        let this = this + (1.0 - this - m[k]) * crowd;
        let drift = (1.0 - this - m[k]) * drift;
        shares.good[k] = 1.0 - this - m[k] - drift;
        shares.this[k] = this;
        shares.drift[k] = drift;
    }
    let broken = shares.broken();
    Prediction {
        shares,
        keeps: broken,
        breaks: broken,
    }
}

/// The state before another result of the same revision.
fn rerun(now: &Shares, breaks: f64, has_witness: bool) -> Prediction {
    let keeps = 1.0 - SAME_REVISION_MENDS;
    let own = if has_witness { 0.0 } else { OWN_LATER };
    let broken = now.broken();
    Prediction {
        shares: Shares {
            good: from_fn(|k| (1.0 - breaks) * now.good[k] + SAME_REVISION_MENDS * broken[k]),
            this: from_fn(|k| now.this[k] * keeps + breaks * own * now.good[k]),
            earlier: now.earlier.map(|earlier| earlier * keeps),
            before: now.before.map(|before| before * keeps),
            drift: from_fn(|k| now.drift[k] * keeps + breaks * (1.0 - own) * now.good[k]),
        },
        keeps: [keeps; GRID],
        breaks: [breaks; GRID],
    }
}

/// The state before the first result of a new revision of the stable branch.
fn new_on_stable(now: &Shares, h: &PerRate, mends: f64, crowd: f64) -> Prediction {
    let keeps = 1.0 - mends;
    let mut predicted = Prediction {
        shares: Shares::NONE,
        keeps: [keeps; GRID],
        breaks: h.map(|h| h + (1.0 - h) * crowd),
    };
    for k in 0..GRID {
        let breaks = predicted.breaks[k];
        let code = now.before[k] + now.this[k] + now.earlier[k];
        predicted.shares.good[k] = (1.0 - breaks) * now.good[k] + (1.0 - keeps) * (code + now.drift[k]);
        predicted.shares.this[k] = now.good[k] * breaks;
        predicted.shares.before[k] = keeps * code;
        predicted.shares.drift[k] = keeps * now.drift[k];
    }
    predicted
}

/// The state before the first result of a new revision of another branch.
fn new_revision(now: &Shares, m: &PerRate, h: &PerRate, crowd: f64, drift: f64) -> Prediction {
    let mut predicted = Prediction {
        shares: Shares::NONE,
        keeps: ZERO,
        breaks: ZERO,
    };
    for k in 0..GRID {
        let keeps = 1.0 - BRANCHES_MEND * (1.0 - m[k]);
        let caught = CAUGHT * m[k];
        let own = h[k] * (1.0 - caught);
        let own = own + (1.0 - own - caught) * crowd;
        let drift = (1.0 - own - caught) * drift;
        let breaks = own + caught + drift;
        let good = now.good[k];
        let code = now.this[k] + now.earlier[k];
        let broken = code + now.before[k] + now.drift[k];
        predicted.shares.good[k] = (1.0 - breaks) * good + (1.0 - keeps) * broken;
        predicted.shares.this[k] = good * own;
        predicted.shares.earlier[k] = keeps * code;
        predicted.shares.before[k] = keeps * now.before[k] + good * caught;
        predicted.shares.drift[k] = keeps * now.drift[k] + good * drift;
        predicted.keeps[k] = keeps;
        predicted.breaks[k] = breaks;
    }
    predicted
}
