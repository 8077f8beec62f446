//! The active signals, and the signal that decides a verdict.

use assay_domain::verdict::{Signal, VerdictStatus};

use crate::{
    config::{
        CONCLUSIVE_STREAK, CONTRADICTED_SCORE, EPISODIC_SCORE, EXCESS_FLIPS, UNRELATED_BRANCHES,
        VARIANT_FAILURES,
    },
    numbers::count,
    verdict::{chain_counts::FailingEnd, status::FailedTest},
};

/// Every active signal, in their fixed order.
pub(crate) fn active(
    failed_test: &FailedTest<'_, '_>,
    status: VerdictStatus,
    reason: Option<Signal>,
) -> Vec<Signal> {
    Signal::ALL
        .iter()
        .copied()
        .filter(|signal| is_active(failed_test, *signal, status, reason))
        .collect()
}

fn is_active(
    failed_test: &FailedTest<'_, '_>,
    signal: Signal,
    status: VerdictStatus,
    reason: Option<Signal>,
) -> bool {
    let chain_counts = &failed_test.findings.chain_counts;
    match signal {
        Signal::ConsecutiveFailures => failed_test.findings.ends.breakage.is_some(),
        Signal::FailureRateBroken => failed_test
            .findings
            .ends
            .breakage
            .is_some_and(|breakage| breakage.is_conclusive()),
        Signal::SameShaFlip => chain_counts.contradictions > 0,
        Signal::RetryRate => failed_test.findings.runs.recovered > 0,
        Signal::FailureRateFlaky => is_episodic(failed_test),
        Signal::FlipRate => chain_counts.excess_flips >= EXCESS_FLIPS,
        // A lasting failure is not isolated.
        Signal::IsolatedFailure => {
            chain_counts.episodes == 1
                && failed_test.incidents() == 0
                && !is_episodic(failed_test)
                && failed_test.findings.ends.breakage.is_none()
                && status != VerdictStatus::Broken
        }
        Signal::MassFailure => failed_test.findings.runs.mass_failures > 0,
        Signal::FailingOffStable => failed_test.findings.ends.off_stable.is_some(),
        Signal::VariantSpecific => {
            chain_counts.failing_variants == 1
                && chain_counts.failures >= VARIANT_FAILURES
                && failed_test.test_counts.column.variants > 1
        }
        Signal::UnrelatedBranches => {
            count(failed_test.findings.unrelated_branches.len()) >= UNRELATED_BRANCHES
        }
        Signal::Calendar => is_by_calendar(failed_test),
        Signal::Resolved => reason == Some(Signal::Resolved),
    }
}

/// Whether the test fails in episodes that a breakage and its fix do not explain.
fn is_episodic(failed_test: &FailedTest<'_, '_>) -> bool {
    failed_test.closed_episodes() > 0 && failed_test.findings.belief.flake_score >= EPISODIC_SCORE
}

/// Whether the calendar decides when the test fails, and not the code.
pub(crate) fn is_by_calendar(failed_test: &FailedTest<'_, '_>) -> bool {
    let calendar = failed_test.calendar.as_ref();
    calendar.is_some_and(|calendar| calendar.decides)
}

/// The deciding signal for broken: the streak if it is long, else its probability.
pub(crate) fn broken_reason(failed_test: &FailedTest<'_, '_>) -> Signal {
    if failed_test
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

/// The deciding signal for flaky, if any: the more frequent kind of incident, else the episodes.
pub(crate) fn flaky_reason(failed_test: &FailedTest<'_, '_>) -> Option<Signal> {
    if failed_test.incidents() > 0 && failed_test.findings.belief.flake_score >= CONTRADICTED_SCORE {
        let by_retry =
            failed_test.findings.runs.recovered >= failed_test.findings.chain_counts.contradictions;
        return Some(if by_retry {
            Signal::RetryRate
        } else {
            Signal::SameShaFlip
        });
    }
    is_episodic(failed_test).then_some(Signal::FailureRateFlaky)
}

/// The signal for the streak of a test that is neither broken nor flaky. `None` for a single failure, and if another
/// branch has a longer streak.
pub(crate) fn failing_reason(failed_test: &FailedTest<'_, '_>) -> Option<Signal> {
    let ends = &failed_test.findings.ends;
    let is_now = |end: FailingEnd| ends.failing_now.is_some_and(|now| now.chain == end.chain);
    if ends.only_in_crowds {
        Some(Signal::MassFailure)
    } else if ends.breakage.is_some() {
        Some(Signal::ConsecutiveFailures)
    } else if ends.off_stable.is_some_and(is_now) {
        Some(Signal::FailingOffStable)
    } else {
        None
    }
}

/// The signal that explains the failures of a healthy test, if there is one.
pub(crate) fn healthy_reason(failed_test: &FailedTest<'_, '_>) -> Option<Signal> {
    let status = VerdictStatus::Healthy;
    if failed_test.findings.ends.off_stable.is_some() {
        Some(Signal::FailingOffStable)
    } else if is_active(failed_test, Signal::IsolatedFailure, status, None) {
        Some(Signal::IsolatedFailure)
    } else if failed_test.findings.runs.mass_failures > 0 && failed_test.findings.runs.failing == 0 {
        Some(Signal::MassFailure)
    } else {
        None
    }
}
