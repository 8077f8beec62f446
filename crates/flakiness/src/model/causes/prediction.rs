//! The state of a chain, with P(Broken) split by the origin of the breakage, and the prediction before its next result.
#![expect(
    clippy::indexing_slicing,
    reason = "every index was made by the sequence that sized the vectors, or runs over the grid"
)]

use std::array::from_fn;

use super::{
    links::{Link, ResultFacts, Sequence},
    mended::StableCode,
};
use crate::model::{
    BRANCHES_MEND, CAUGHT, FIRST_STABLE, GRID, INHERITED, PerRate, SAME_REVISION_MENDS, SIBLING, Step,
    branch_breaks, breaks_like_branch, breaks_like_sibling, first_breaks, raised_at_first,
    same_revision_breaks, stable_breaks,
};

/// How many times as probable a change outside of the code is as a breakage by the branch: if one other branch failed with
/// the same error, and if several did.
const WITNESSES: (f64, f64) = (2.0, 6.0);
/// The upper bound of this probability.
const OUTSIDE_AT_MOST: f64 = 0.3;
/// The rate at which a merge breaks a test, as a share of that of branches: a merge queue takes changes that passed alone.
const PASSED_ALONE: f64 = 0.1;
/// The share of new failures on one revision that the change causes, if no other branch met them: code may fail only
/// sometimes.
const OWN_LATER: f64 = 0.5;
/// The probability that an outage lasts until the next result of its chain. Of 282 streaks on dask, 187 had one failure and
/// 44 two.
pub(crate) const OUTAGE_LASTS: f64 = 0.3;

/// The state of a chain under each flake rate: good, or broken by one of five causes. All add up to 1.
///
/// The good share is stored. If it is tiny, 1 minus the others would have no correct digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    pub(crate) good: PerRate,
    pub(crate) this: PerRate,
    pub(crate) earlier: PerRate,
    pub(crate) before: PerRate,
    pub(crate) drift: PerRate,
    /// Something outside of the code fails the test on a stable branch for a short time, maybe on all variants. It began
    /// with this revision.
    pub(crate) outage: PerRate,
    /// The same that began with an earlier revision.
    pub(crate) outage_before: PerRate,
}

impl Shares {
    /// The state of a chain before its first result.
    pub(crate) const NONE: Self = Self {
        good: ZERO,
        this: ZERO,
        earlier: ZERO,
        before: ZERO,
        drift: ZERO,
        outage: ZERO,
        outage_before: ZERO,
    };

    /// The state of code without a fault.
    const GOOD: Self = Self {
        good: ONE,
        ..Self::NONE
    };

    /// The state of code that has the changes of several chains, and each fault of theirs with this probability.
    fn of_changes(changes: &[(usize, f64)], states: &[Self]) -> Self {
        let mut all = Self::GOOD;
        for (chain, share) in changes {
            let of = &states[*chain];
            for k in 0..GRID {
                let part = share * all.good[k];
                all.this[k] += part * of.this[k];
                all.earlier[k] += part * of.earlier[k];
                all.before[k] += part * of.before[k];
                all.drift[k] += part * of.drift[k];
                all.good[k] -= part * (1.0 - of.good[k]);
            }
        }
        all
    }

    /// P(broken), without outages.
    pub(crate) fn lasting(&self) -> PerRate {
        from_fn(|k| self.this[k] + self.earlier[k] + self.before[k] + self.drift[k])
    }

    /// P(an outage), whenever it began.
    pub(crate) fn any_outage(&self) -> PerRate {
        from_fn(|k| self.outage[k] + self.outage_before[k])
    }

    /// P(broken or an outage).
    pub(crate) fn broken(&self) -> PerRate {
        let (lasting, outage) = (self.lasting(), self.any_outage());
        from_fn(|k| lasting[k] + outage[k])
    }
}

/// The probability that a test is broken, and that it has an outage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Faults {
    pub(crate) broken: PerRate,
    pub(crate) outage: PerRate,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        broken: ZERO,
        outage: ZERO,
    };

    /// The faults of a result, if it has these without a sibling, and its sibling has `shared` ones.
    fn beside(&self, shared: &Self) -> Self {
        Self {
            broken: breaks_like_sibling(&self.broken, &shared.broken),
            outage: breaks_like_sibling(&self.outage, &shared.outage),
        }
    }
}

pub(crate) const ZERO: PerRate = [0.0; GRID];
const ONE: PerRate = [1.0; GRID];

/// The state of a chain before its next result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prediction {
    pub(crate) shares: Shares,
    /// P(still broken) of broken code.
    pub(crate) keeps: PerRate,
    /// P(broken now) of good code, without outages.
    pub(crate) breaks: PerRate,
    /// P(an outage begins) of good code.
    pub(crate) begins: PerRate,
    /// P(still broken) of code that was broken before the branch.
    pub(crate) keeps_before: PerRate,
    /// The part of `breaks` that the branch takes over from the stable branch.
    pub(crate) breaks_before: PerRate,
}

/// The faults of the sibling of a result on new code that the result has, too, with [`SIBLING`]: those that began with this
/// revision. `None` without a sibling. For a test that is new on a variant of the stable branch, the earlier ones too.
pub(crate) fn shared_faults(sequence: &Sequence, states: &[Shares], link: &Link) -> Option<Faults> {
    let sibling = &states[sequence.results[link.sibling?].chain];
    let (before, outage_before) = if link.is_first_on_stable {
        (&sibling.before, &sibling.outage_before)
    } else {
        (&ZERO, &ZERO)
    };
    Some(Faults {
        broken: from_fn(|k| sibling.this[k] + before[k]),
        outage: from_fn(|k| sibling.outage[k] + outage_before[k]),
    })
}

/// The state of a result's chain before the result, by the states and failures of all chains so far, and its faults if the sibling has none that it shares.
pub(crate) fn predict(
    sequence: &Sequence,
    (states, stable): (&[Shares], &[StableCode]),
    result: &ResultFacts,
    link: &Link,
    on_branches: f64,
    shared: Option<&Faults>,
) -> (Prediction, Faults) {
    let chain = sequence.chains[result.chain];
    let of_changes;
    let now = match link.step {
        Step::First if !chain.stable => {
            of_changes = Shares::of_changes(&link.same_change, states);
            &of_changes
        }
        Step::First | Step::SameRevision | Step::NewRevision => &states[result.chain],
    };
    if !link.step.is_new_code() {
        let has_witness = chain.stable || result.witnesses > 0;
        return (
            rerun(now, same_revision_breaks(link.apart_ms), has_witness),
            Faults::NONE,
        );
    }
    let of_stable = chain.base.filter(|_| !chain.stable);
    let at_base = of_stable.and_then(|base| stable[base].broken_at_base(result));
    let in_base = at_base.or_else(|| {
        let base = of_stable?;
        let now = stable[base].broken_for(result, &states[base]);
        let stale = match link.step {
            Step::First => stable[base].in_stale_base(result),
            Step::SameRevision | Step::NewRevision => ZERO,
        };
        Some(from_fn(|k| now[k] + stale[k]))
    });
    let m = in_base.map_or(ZERO, |broken| broken.map(|broken| INHERITED * broken));
    // A known base tells whether new code has another one than the code before.
    let base = match (link.step, at_base) {
        (Step::First, _) => (in_base.unwrap_or(ONE), 1.0),
        (_, Some(broken)) if link.is_base_moved => (broken, 1.0),
        (_, Some(_)) => (ONE, 0.0),
        (_, None) => (ONE, CAUGHT),
    };
    let (on_stable, stable_mends) = result.stable_rates;
    let usual = match (link.step, chain.stable) {
        (Step::First, true) => [FIRST_STABLE; GRID],
        (_, true) => stable_breaks(on_stable),
        (_, false) => branch_breaks(on_branches),
    };
    let stable_chain = if chain.stable {
        Some(result.chain)
    } else {
        chain.base
    };
    let again = stable_chain.map_or(ZERO, |chain| stable[chain].lands_again(result));
    let passed_alone = if chain.queue { PASSED_ALONE } else { 1.0 };
    let usual = from_fn(|k| passed_alone * (usual[k] + (1.0 - usual[k]) * again[k]));
    let broken = match link.merged_streak {
        Some(streak) => breaks_like_branch(streak, &usual, &branch_breaks(on_branches)),
        None => usual,
    };
    let outages = match (link.step, chain.stable) {
        (Step::First, _) | (_, false) => 0.0,
        (_, true) => {
            let (first, later) = sequence.outage_ratios;
            let ratio = if result.failed_before { later } else { first };
            (ratio * on_stable).min(OUTSIDE_AT_MOST)
        }
    };
    let alone = Faults {
        broken,
        outage: [outages; GRID],
    };
    // Like a breakage: what the revision broke with others, it mostly broke on the sibling, too.
    let crowd = link.sibling.map_or(1.0, |_| 1.0 - SIBLING) * result.chi * result.beta;
    let crowd = crowd / (1.0 + crowd);
    let own = match link.step {
        Step::First => raised_at_first(branch_breaks(on_branches), passed_alone),
        Step::SameRevision | Step::NewRevision => branch_breaks(on_branches),
    };
    let outside = |times: f64| own.map(|own| (times * own).min(OUTSIDE_AT_MOST));
    let drift = match (chain.stable, result.witnesses) {
        // A single branch was probably merged. Of several, one may be.
        (_, 0) | (true, 1) => ZERO,
        (true, _) => [OUTSIDE_AT_MOST; GRID],
        (false, 1) => outside(WITNESSES.0),
        (false, _) => outside(WITNESSES.1),
    };
    let with = |faults: &Faults| match (link.step, chain.stable) {
        (Step::First, true) => first_on_stable(faults),
        (_, true) => new_on_stable(now, faults, stable_mends, crowd, &drift),
        (_, false) => new_revision(now, (&m, &base), &faults.broken, crowd, &drift),
    };
    let faults_of = |predicted: &Prediction| Faults {
        broken: predicted.shares.lasting(),
        outage: predicted.shares.any_outage(),
    };
    match shared {
        // The sibling passed what the merged branch broke here.
        Some(_) if link.merged_streak.is_some() => {
            let apart = alone.beside(&Faults::NONE);
            let predicted = with(&Faults {
                broken: alone.broken,
                ..apart
            });
            let apart = faults_of(&predicted);
            (predicted, apart)
        }
        Some(shared) => {
            let apart = with(&alone.beside(&Faults::NONE));
            (with(&alone.beside(shared)), faults_of(&apart))
        }
        None if link.step == Step::First && !chain.stable => {
            let broken = first_breaks(&alone.broken, passed_alone);
            (with(&Faults { broken, ..alone }), Faults::NONE)
        }
        None => (with(&alone), Faults::NONE),
    }
}

/// The state before the first result of a stable chain.
fn first_on_stable(faults: &Faults) -> Prediction {
    let broken = from_fn(|k| faults.broken[k] + faults.outage[k]);
    Prediction {
        shares: Shares {
            good: broken.map(|broken| 1.0 - broken),
            before: faults.broken,
            outage_before: faults.outage,
            ..Shares::NONE
        },
        keeps: broken,
        breaks: broken,
        begins: ZERO,
        keeps_before: broken,
        breaks_before: ZERO,
    }
}

/// The state before another result of the same revision.
fn rerun(now: &Shares, breaks: f64, has_witness: bool) -> Prediction {
    let keeps = 1.0 - SAME_REVISION_MENDS;
    let own = if has_witness { 0.0 } else { OWN_LATER };
    let (lasting, outage) = (now.lasting(), now.any_outage());
    Prediction {
        shares: Shares {
            good: from_fn(|k| {
                (1.0 - breaks) * now.good[k]
                    + SAME_REVISION_MENDS * lasting[k]
                    + (1.0 - OUTAGE_LASTS) * outage[k]
            }),
            this: from_fn(|k| now.this[k] * keeps + breaks * own * now.good[k]),
            earlier: now.earlier.map(|earlier| earlier * keeps),
            before: now.before.map(|before| before * keeps),
            drift: from_fn(|k| now.drift[k] * keeps + breaks * (1.0 - own) * now.good[k]),
            outage: now.outage.map(|outage| OUTAGE_LASTS * outage),
            outage_before: now.outage_before.map(|outage| OUTAGE_LASTS * outage),
        },
        keeps: [keeps; GRID],
        breaks: [breaks; GRID],
        begins: ZERO,
        keeps_before: [keeps; GRID],
        breaks_before: ZERO,
    }
}

/// The state before the first result of a new revision of the stable branch.
fn new_on_stable(now: &Shares, faults: &Faults, mends: f64, crowd: f64, outside: &PerRate) -> Prediction {
    let keeps = 1.0 - mends;
    let mut predicted = Prediction {
        shares: Shares::NONE,
        keeps: [keeps; GRID],
        breaks: from_fn(|k| {
            let (h, outage) = (faults.broken[k], faults.outage[k]);
            h + (1.0 - h - outage) * crowd
        }),
        begins: faults.outage,
        keeps_before: [keeps; GRID],
        breaks_before: ZERO,
    };
    for (k, outage) in now.any_outage().into_iter().enumerate() {
        let (own, begins) = (predicted.breaks[k], predicted.begins[k]);
        let drift = (1.0 - own - begins) * outside[k];
        predicted.breaks[k] += drift;
        let code = now.before[k] + now.this[k] + now.earlier[k];
        predicted.shares.good[k] = (1.0 - own - drift - begins) * now.good[k]
            + (1.0 - keeps) * (code + now.drift[k])
            + (1.0 - OUTAGE_LASTS) * outage;
        predicted.shares.outage[k] = now.good[k] * begins;
        predicted.shares.outage_before[k] = OUTAGE_LASTS * outage;
        predicted.shares.this[k] = now.good[k] * own;
        predicted.shares.before[k] = keeps * code;
        predicted.shares.drift[k] = keeps * now.drift[k] + now.good[k] * drift;
    }
    predicted
}

/// The state before the first result of a new revision of another branch. `now` is that of its code before.
///
/// `base` has P(the new base is broken), and P(the new code has another base).
fn new_revision(
    now: &Shares,
    (m, base): (&PerRate, &(PerRate, f64)),
    h: &PerRate,
    crowd: f64,
    outside: &PerRate,
) -> Prediction {
    let mut predicted = Prediction {
        shares: Shares::NONE,
        keeps: ZERO,
        breaks: ZERO,
        begins: ZERO,
        keeps_before: ZERO,
        breaks_before: ZERO,
    };
    for k in 0..GRID {
        let keeps = 1.0 - BRANCHES_MEND[k] * (1.0 - m[k]);
        let caught = base.1 * m[k];
        let kept_before = keeps * base.0[k];
        let own = h[k] * (1.0 - caught);
        let own = own + (1.0 - own - caught) * crowd;
        let drift = (1.0 - own - caught) * outside[k];
        let breaks = own + caught + drift;
        let good = now.good[k];
        let code = now.this[k] + now.earlier[k];
        predicted.shares.good[k] = (1.0 - breaks) * good
            + (1.0 - keeps) * (code + now.drift[k])
            + (1.0 - kept_before) * now.before[k];
        predicted.shares.this[k] = good * own;
        predicted.shares.earlier[k] = keeps * code;
        predicted.shares.before[k] = kept_before * now.before[k] + good * caught;
        predicted.shares.drift[k] = keeps * now.drift[k] + good * drift;
        predicted.keeps[k] = keeps;
        predicted.breaks[k] = breaks;
        predicted.keeps_before[k] = kept_before;
        predicted.breaks_before[k] = caught;
    }
    predicted
}
