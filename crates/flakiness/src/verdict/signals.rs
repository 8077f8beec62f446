//! The active signals, and the signal that decides a verdict.

use assay_domain::verdict::{Signal, VerdictStatus};

use crate::{
    config::{BROKEN, CONCLUSIVE_STREAK, EXCESS_FLIPS, UNRELATED_BRANCHES, VARIANT_FAILURES},
    numbers::count,
    verdict::{chain_counts::FailingEnd, status::FailingTest},
};

/// Every active signal, in their fixed order.
pub(crate) fn active(
    failing_test: &FailingTest<'_, '_>,
    status: VerdictStatus,
    reason: Option<Signal>,
) -> Vec<Signal> {
    Signal::ALL
        .iter()
        .copied()
        .filter(|signal| is_active(failing_test, *signal, status, reason))
        .collect()
}

fn is_active(
    failing_test: &FailingTest<'_, '_>,
    signal: Signal,
    status: VerdictStatus,
    reason: Option<Signal>,
) -> bool {
    let chain_counts = &failing_test.findings.chain_counts;
    match signal {
        Signal::ConsecutiveFailures => failing_test.findings.ends.breakage.is_some(),
        Signal::FailureRateBroken => failing_test
            .findings
            .ends
            .breakage
            .is_some_and(|breakage| breakage.probability >= BROKEN),
        Signal::SameShaFlip => chain_counts.contradictions > 0,
        Signal::RetryRate => failing_test.findings.runs.recovered > 0,
        Signal::FailureRateFlaky => is_episodic(failing_test),
        Signal::FlipRate => chain_counts.excess_flips >= EXCESS_FLIPS,
        // A lasting failure is not isolated.
        Signal::IsolatedFailure => {
            chain_counts.episodes == 1
                && failing_test.incidents() == 0
                && !is_episodic(failing_test)
                && failing_test.findings.ends.breakage.is_none()
                && status != VerdictStatus::Broken
        }
        Signal::MassFailure => failing_test.findings.runs.mass_failures > 0,
        Signal::FailingOffStable => failing_test.findings.ends.off_stable.is_some(),
        Signal::VariantSpecific => {
            chain_counts.failing_variants == 1
                && chain_counts.failures >= VARIANT_FAILURES
                && failing_test.test_counts.column.variants > 1
        }
        Signal::UnrelatedBranches => {
            count(failing_test.findings.unrelated_branches.len()) >= UNRELATED_BRANCHES
        }
        Signal::Resolved => reason == Some(Signal::Resolved),
    }
}

/// Whether the test fails in episodes that a break and its fix do not explain.
fn is_episodic(failing_test: &FailingTest<'_, '_>) -> bool {
    failing_test.findings.chain_counts.episodes >= failing_test.thresholds.episodes
        && failing_test.closed_episodes() > 0
        && failing_test.findings.belief.flake_score >= failing_test.thresholds.episodic_score
}

/// The deciding signal for broken: the streak if it is long, else its probability.
pub(crate) fn broken_reason(failing_test: &FailingTest<'_, '_>) -> Signal {
    if failing_test
        .findings
        .ends
        .breakage
        .is_some_and(|breakage| breakage.end.streak >= CONCLUSIVE_STREAK)
    {
        Signal::ConsecutiveFailures
    } else {
        Signal::FailureRateBroken
    }
}

/// The deciding signal for flaky, if any: the more frequent kind of contradiction, else the episodes.
pub(crate) fn flaky_reason(failing_test: &FailingTest<'_, '_>) -> Option<Signal> {
    if failing_test.incidents() > 0
        && failing_test.findings.belief.flake_score >= failing_test.thresholds.contradicted_score
    {
        let by_retry =
            failing_test.findings.runs.recovered >= failing_test.findings.chain_counts.contradictions;
        return Some(if by_retry {
            Signal::RetryRate
        } else {
            Signal::SameShaFlip
        });
    }
    is_episodic(failing_test).then_some(Signal::FailureRateFlaky)
}

/// The signal for the duration of a failure that is neither broken nor flaky; `None` after a single failure.
pub(crate) fn failing_reason(failing_test: &FailingTest<'_, '_>) -> Option<Signal> {
    let ends = &failing_test.findings.ends;
    let is_now = |end: FailingEnd| ends.failing_now.is_some_and(|now| now.chain == end.chain);
    if ends.breakage.is_some() {
        Some(Signal::ConsecutiveFailures)
    } else if ends.off_stable.is_some_and(is_now) {
        Some(Signal::FailingOffStable)
    } else {
        None
    }
}

/// The signal that explains the failures of a healthy test, if there is one.
pub(crate) fn healthy_reason(failing_test: &FailingTest<'_, '_>) -> Option<Signal> {
    let status = VerdictStatus::Healthy;
    if failing_test.findings.ends.off_stable.is_some() {
        Some(Signal::FailingOffStable)
    } else if is_active(failing_test, Signal::IsolatedFailure, status, None) {
        Some(Signal::IsolatedFailure)
    } else if failing_test.findings.runs.mass_failures > 0 && failing_test.findings.runs.failing == 0 {
        Some(Signal::MassFailure)
    } else {
        None
    }
}
