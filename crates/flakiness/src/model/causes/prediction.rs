//! The state of a chain, with P(Broken) split by the origin of the breakage, and the prediction before its next result.
#![expect(
    clippy::indexing_slicing,
    reason = "every index was made by the sequence that sized the vectors, or runs over the grid"
)]

use std::array::from_fn;

use super::links::{Link, ResultFacts, Sequence};
use crate::model::{
    BRANCHES_MEND, CAUGHT, FIRST_STABLE, GRID, INHERITED, PerRate, SAME_REVISION_MENDS, SIBLING, Step,
    breaks_like_branch, breaks_like_sibling, same_revision_breaks,
};

/// How many times as probable a change outside of the code is as a breakage by the branch: if one other branch failed with
/// the same error, and if several did.
const WITNESSES: (f64, f64) = (2.0, 6.0);
/// The upper bound of this probability.
const OUTSIDE_AT_MOST: f64 = 0.3;
/// The share of new failures on one revision that the change causes, if no other branch met them: code may fail only
/// sometimes.
const OWN_LATER: f64 = 0.5;

/// The state of a chain under each flake rate: good, or broken by one of four causes. All add up to 1.
///
/// The good share is stored. If it is tiny, 1 minus the others would have no correct digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    pub(crate) good: PerRate,
    pub(crate) this: PerRate,
    pub(crate) earlier: PerRate,
    pub(crate) before: PerRate,
    pub(crate) drift: PerRate,
}

impl Shares {
    /// The state of a chain before its first result.
    pub(crate) const NONE: Self = Self {
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

pub(crate) const ZERO: PerRate = [0.0; GRID];

/// The state of a chain before its next result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prediction {
    pub(crate) shares: Shares,
    /// P(still broken) of broken code.
    pub(crate) keeps: PerRate,
    /// P(broken now) of good code.
    pub(crate) breaks: PerRate,
}

/// The probability of a breakage on the sibling of a result on new code that breaks it, too, with [`SIBLING`]; `None`
/// without a sibling. For a test that is new on a variant of the stable branch, that is any breakage of the code.
pub(crate) fn shared_breakage(sequence: &Sequence, states: &[Shares], link: &Link) -> Option<PerRate> {
    let sibling = &states[sequence.results[link.sibling?].chain];
    let before = if link.is_first_on_stable {
        &sibling.before
    } else {
        &ZERO
    };
    Some(from_fn(|k| sibling.this[k] + before[k]))
}

/// The state of a result's chain before the result, and P(Broken) if the sibling has no breakage that it shares.
pub(crate) fn predict(
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
