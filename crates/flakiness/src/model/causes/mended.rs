//! Breakages that a stable chain may have mended. A branch may begin before the fix, and a change may land them again.
#![expect(clippy::indexing_slicing, reason = "every index runs over the grid")]

use std::array::from_fn;

use assay_domain::timestamp::{DAY_MS, Timestamp};

use super::{
    links::ResultFacts,
    prediction::{Prediction, Shares, ZERO},
};
use crate::{config::MASS_FAILURE, model::PerRate};

/// The probability that a new branch began before the newest run of the stable branch, and the days after which it falls to
/// a third of that.
const STALE: (f64, f64) = (0.3, 1.0);
/// The probability that a new revision brings back a breakage that the stable branch has mended: a change that was reverted
/// mostly lands again. Of one failure alone it is too seldom known to be a breakage.
const LANDS_AGAIN: f64 = 0.015;

/// The newest failure of a stable chain with an error.
#[derive(Debug, Clone, Copy)]
struct PastFailure {
    text: Option<u32>,
    at: Timestamp,
    /// Whether the result before it failed, too.
    again: bool,
    /// P(the code was broken at this failure and is good now).
    mended: PerRate,
    /// P(the code was broken at this failure and is broken now).
    broken: PerRate,
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
}

impl StableCode {
    /// A chain without results.
    pub(crate) const NONE: Self = Self {
        broken: ZERO,
        failed: false,
        failures: Vec::new(),
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
        let (good, broken) = relative;
        for past in &mut self.failures {
            for k in 0..good.len() {
                let (was_good, was_broken) = (past.mended[k], past.broken[k]);
                let keeps = predicted.keeps[k];
                let breaks = predicted.breaks[k] + predicted.begins[k];
                past.mended[k] = ((1.0 - breaks) * was_good + (1.0 - keeps) * was_broken) * good[k];
                past.broken[k] = (breaks * was_good + keeps * was_broken) * broken[k];
            }
        }
        if result.beta >= MASS_FAILURE {
            return;
        }
        self.broken = after.broken();
        let again = std::mem::replace(&mut self.failed, result.outcome.failed());
        if self.failed {
            self.failures.retain(|past| past.text != result.text);
            self.failures.push(PastFailure {
                text: result.text,
                at: result.started_at,
                again,
                mended: ZERO,
                broken: after.lasting(),
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
            from_fn(|k| most[k].max(weight * past.mended[k]))
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
