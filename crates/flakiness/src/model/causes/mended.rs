//! Breakages that a stable chain may have mended. A branch may begin before the fix, and a change may land them again.
#![expect(
    clippy::indexing_slicing,
    reason = "every index runs over the grid or the results"
)]

use std::array::from_fn;

use assay_domain::timestamp::{DAY_MS, Timestamp};

use super::{
    links::ResultFacts,
    prediction::{Prediction, Shares, ZERO},
};
use crate::{
    config::MASS_FAILURE,
    model::{GRID, PerRate},
};

/// The probability that a new branch began before the newest run of the stable branch, and the days after which it falls to
/// a third of that.
const STALE: (f64, f64) = (0.3, 1.0);
/// The probability that a new revision brings back a breakage that the stable branch has mended: a change that was reverted
/// mostly lands again. Of one failure alone it is too seldom known to be a breakage.
const LANDS_AGAIN: f64 = 0.015;

/// A result of a stable chain, as far as it changes what is known of the code before it.
#[derive(Debug, Clone, Copy)]
struct StableResult {
    revision: usize,
    in_mass_failure: bool,
    /// P(broken) after it.
    broken: PerRate,
    keeps: PerRate,
    breaks: PerRate,
    /// Its likelihood if the code is good, in relation to its probability.
    if_good: PerRate,
    /// The same if the code is broken.
    if_broken: PerRate,
}

impl StableResult {
    /// P(the code was in some state before, and is good after this result), and that it is broken after it.
    fn go_on(&self, k: usize, (good, broken): (f64, f64)) -> (f64, f64) {
        let (keeps, breaks) = (self.keeps[k], self.breaks[k]);
        (
            ((1.0 - breaks) * good + (1.0 - keeps) * broken) * self.if_good[k],
            (breaks * good + keeps * broken) * self.if_broken[k],
        )
    }
}

/// The newest failure of a stable chain with an error.
#[derive(Debug, Clone, Copy)]
struct PastFailure {
    text: Option<u32>,
    at: Timestamp,
    /// Whether the result before it failed, too.
    again: bool,
    /// P(the code was broken at this failure and is good now), and that it is broken now.
    mended_or_not: [(f64, f64); GRID],
}

/// What branches may have from a stable chain.
#[derive(Debug, Clone)]
pub(crate) struct StableCode {
    /// P(broken) after the newest result outside of mass failures.
    broken: PerRate,
    /// Whether that result failed.
    failed: bool,
    /// The newest failure with each error. Those in mass failures count against no test.
    failures: Vec<PastFailure>,
    results: Vec<StableResult>,
}

impl StableCode {
    /// A chain without results.
    pub(crate) const NONE: Self = Self {
        broken: ZERO,
        failed: false,
        failures: Vec::new(),
        results: Vec::new(),
    };

    /// Adds the next result of the chain. `after` is the state after it, and `relative` has its likelihood if the code is
    /// good, and if it is broken, in relation to its probability.
    pub(crate) fn add(
        &mut self,
        result: &ResultFacts,
        predicted: &Prediction,
        relative: &(PerRate, PerRate),
        after: &Shares,
    ) {
        let here = StableResult {
            revision: result.revision,
            in_mass_failure: result.beta >= MASS_FAILURE,
            broken: after.broken(),
            keeps: predicted.keeps,
            breaks: from_fn(|k| predicted.breaks[k] + predicted.begins[k]),
            if_good: relative.0,
            if_broken: relative.1,
        };
        for past in &mut self.failures {
            past.mended_or_not = from_fn(|k| here.go_on(k, past.mended_or_not[k]));
        }
        self.results.push(here);
        if here.in_mass_failure {
            return;
        }
        self.broken = here.broken;
        let again = std::mem::replace(&mut self.failed, result.outcome.failed());
        if self.failed {
            self.failures.retain(|past| past.text != result.text);
            self.failures.push(PastFailure {
                text: result.text,
                at: result.started_at,
                again,
                mended_or_not: after.lasting().map(|broken| (0.0, broken)),
            });
        }
    }

    /// The probability that the chain is broken, as a result of a branch shows it. What breaks a crowd of tests fails them in
    /// a crowd.
    pub(crate) fn broken_for(&self, result: &ResultFacts, now: &Shares) -> PerRate {
        if result.beta > 0.0 {
            now.broken()
        } else {
            self.broken
        }
    }

    /// The probability that the chain was broken at the base of this result, by all its results so far; `None` if it has no
    /// result there.
    pub(crate) fn broken_at_base(&self, result: &ResultFacts) -> Option<PerRate> {
        let base = result.base?;
        let (until, after) = self
            .results
            .split_at(self.results.partition_point(|other| other.revision <= base));
        until.last().filter(|last| last.revision == base)?;
        let counts = |other: &StableResult| result.beta > 0.0 || !other.in_mass_failure;
        let Some(from) = until.iter().rposition(counts) else {
            return Some(ZERO);
        };
        let broken = until[from].broken;
        let later = || until[from + 1..].iter().chain(after);
        Some(from_fn(|k| {
            let sum = |then: (f64, f64)| {
                let (good, broken) = later().fold(then, |state, later| later.go_on(k, state));
                good + broken
            };
            let (was_broken, was_good) = (sum((0.0, broken[k])), sum((1.0 - broken[k], 0.0)));
            was_broken / (was_broken + was_good)
        }))
    }

    /// The probability that a branch that begins with this result has a breakage from its base that the chain has mended.
    pub(crate) fn in_stale_base(&self, result: &ResultFacts) -> PerRate {
        self.most(result, |past| {
            let days = days(result.started_at.since_ms(past.at));
            STALE.0 * (-days / STALE.1).exp()
        })
    }

    /// The probability that the new revision of this result brings back a breakage that the chain has mended.
    pub(crate) fn lands_again(&self, result: &ResultFacts) -> PerRate {
        self.most(result, |past| if past.again { LANDS_AGAIN } else { 0.0 })
    }

    /// The largest product of a weight and P(mended) over the failures that may have the error of a result.
    fn most(&self, result: &ResultFacts, weight: impl Fn(&PastFailure) -> f64) -> PerRate {
        let agrees = |past: &&PastFailure| result.text.zip(past.text).is_none_or(|(one, other)| one == other);
        self.failures.iter().filter(agrees).fold(ZERO, |most, past| {
            let weight = weight(past);
            from_fn(|k| most[k].max(weight * past.mended_or_not[k].0))
        })
    }
}

#[expect(
    clippy::as_conversions,
    reason = "the milliseconds of a window are exact as f64"
)]
fn days(milliseconds: i64) -> f64 {
    milliseconds.max(0) as f64 / DAY_MS as f64
}
