//! The numbers behind a verdict and the runs behind the numbers.

use std::collections::BTreeMap;

use assay_domain::{
    timestamp::Timestamp,
    verdict::{DroppedRun, Evidence, Signal, SignalEvidence, VerdictStatus},
};

use crate::{
    config::ENGINE_VERSION,
    config::{
        BROKEN, EPISODIC_SCORE, EXCESS_FLIPS, NAMED_RUNS, STREAK, UNRELATED_BRANCHES, VARIANT_FAILURES,
    },
    model::calendar::{Calendar, OCCURRENCES},
    numbers::{at, count},
    participation::Presence,
    verdict::{
        chain_counts::FailingEnd, explanation, run_counts::FailuresInRun, status::FailedTest,
        test_counts::CountedResult,
    },
};

/// The time and the window of a judgement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// The time of the judgement.
    pub(crate) now: Timestamp,
    /// The length of the window in days.
    pub(crate) window_days: i64,
}

/// The evidence without its signals; `dropped` are the newest of the test's mass-failure runs.
pub(crate) fn counts(frame: Frame, presence: Presence, dropped: Vec<DroppedRun>) -> Evidence {
    Evidence {
        engine: ENGINE_VERSION.to_owned(),
        now: frame.now,
        window_days: frame.window_days,
        runs_seen: presence.seen,
        runs_skipped: presence.skipped,
        runs_dropped: presence.seen - presence.considered,
        dropped,
        signals: Vec::new(),
    }
}

/// The evidence for each of the active `signals`.
pub(crate) fn signals(failed_test: &FailedTest<'_, '_>, signals: &[Signal]) -> Vec<SignalEvidence> {
    signals
        .iter()
        .map(|signal| of_signal(failed_test, *signal))
        .collect()
}

fn of_signal(failed_test: &FailedTest<'_, '_>, signal: Signal) -> SignalEvidence {
    let mut runs = runs_of(failed_test, signal);
    runs.sort_unstable();
    runs.dedup();
    let newest: Vec<_> = runs
        .iter()
        .rev()
        .take(NAMED_RUNS)
        .filter_map(|run| failed_test.test_counts.timeline.runs.get(*run))
        .collect();
    let (value, threshold) = value(failed_test, signal);
    let pair = (signal == Signal::SameShaFlip)
        .then(|| latest_pair(failed_test))
        .flatten();
    let (status, reason) = failed_test.decide();
    let sentence = if reason == Some(signal) {
        explanation::of(failed_test, status, reason)
    } else {
        explanation::sentence(failed_test, signal)
    };
    let mut detail = sentence + &explanation::addition(failed_test, signal, pair);
    if let Some(calendar) = &failed_test.calendar
        && status == VerdictStatus::Flaky
        && signal != Signal::Calendar
        && reason == Some(signal)
    {
        detail += &calendar.addition();
    }
    SignalEvidence {
        signal,
        label: signal.label().to_owned(),
        value,
        threshold,
        detail,
        runs: newest.iter().map(|run| run.facts.id.to_string()).collect(),
        runs_total: count(runs.len()),
    }
}

/// A signal's value, and the threshold from which it is active.
fn value(failed_test: &FailedTest<'_, '_>, signal: Signal) -> (f64, f64) {
    let chain_counts = &failed_test.findings.chain_counts;
    let real = f64::from;
    let streak = |end: Option<FailingEnd>| real(end.map_or(0, |end| end.streak));
    match signal {
        Signal::ConsecutiveFailures => (
            streak(failed_test.findings.ends.breakage.map(|breakage| breakage.end)),
            real(STREAK),
        ),
        Signal::FailureRateBroken => (
            failed_test
                .findings
                .ends
                .breakage
                .map_or(0.0, |breakage| breakage.probability),
            BROKEN,
        ),
        Signal::SameShaFlip => (real(chain_counts.contradictions), 1.0),
        Signal::RetryRate => {
            let considered = real(failed_test.test_counts.column.presence.considered.max(1));
            (
                real(failed_test.findings.runs.recovered) / considered,
                1.0 / considered,
            )
        }
        Signal::FailureRateFlaky => (failed_test.findings.belief.flake_score, EPISODIC_SCORE),
        Signal::FlipRate => {
            // The rate at which two flips would remain beyond those that a breakage and a fix explain, chain by chain.
            let pairs = real(failed_test.test_counts.column.pairs.max(1));
            let needed = chain_counts.flips - chain_counts.excess_flips + EXCESS_FLIPS;
            (real(chain_counts.flips) / pairs, real(needed) / pairs)
        }
        Signal::IsolatedFailure => (real(chain_counts.episodes), 1.0),
        Signal::MassFailure => (real(failed_test.findings.runs.mass_failures), 1.0),
        Signal::FailingOffStable => (streak(failed_test.findings.ends.off_stable), real(STREAK)),
        Signal::VariantSpecific => (real(chain_counts.failures), real(VARIANT_FAILURES)),
        Signal::UnrelatedBranches => (
            real(count(failed_test.findings.unrelated_branches.len())),
            real(UNRELATED_BRANCHES),
        ),
        Signal::Calendar => {
            let calendar = failed_test.calendar.as_ref();
            let days = calendar.map_or(0, Calendar::failed_days);
            (real(days), real(count(OCCURRENCES)))
        }
        Signal::Resolved => (
            real(failed_test.findings.runs.passes_since()),
            real(failed_test.findings.runs.passes_needed),
        ),
    }
}

/// The runs behind a signal, by index.
fn runs_of(failed_test: &FailedTest<'_, '_>, signal: Signal) -> Vec<usize> {
    let failed_where = |is_included: fn(&FailuresInRun) -> bool| -> Vec<usize> {
        failed_test
            .findings
            .failed_runs
            .iter()
            .filter(|run| is_included(run))
            .map(|run| run.run)
            .collect()
    };
    match signal {
        Signal::ConsecutiveFailures | Signal::FailureRateBroken => streak_runs(
            failed_test,
            failed_test.findings.ends.breakage.map(|breakage| breakage.end),
        ),
        Signal::FailingOffStable => streak_runs(failed_test, failed_test.findings.ends.off_stable),
        Signal::SameShaFlip => contradictory_runs(failed_test),
        Signal::RetryRate => failed_where(|run| run.recovered),
        Signal::FailureRateFlaky | Signal::IsolatedFailure => failed_where(|run| run.failed),
        Signal::FlipRate => flip_runs(failed_test),
        Signal::VariantSpecific | Signal::Calendar => failed_where(|run| run.counts()),
        Signal::MassFailure => failed_where(|run| run.in_mass_failure),
        Signal::UnrelatedBranches => failed_test.findings.unrelated_branches.clone(),
        Signal::Resolved => {
            let column = failed_test.test_counts.column;
            let runs = column.participation.considered_in_run.iter().enumerate();
            let considered = runs
                .filter(|(_, tests)| column.is_in(**tests))
                .map(|(run, _)| run);
            considered
                .skip(at(failed_test.findings.runs.until_last_failure))
                .collect()
        }
    }
}

fn run_of(failed_test: &FailedTest<'_, '_>, result: &CountedResult<'_, '_>) -> Option<usize> {
    failed_test
        .test_counts
        .timeline
        .run_of
        .get(result.position)
        .copied()
}

/// The results with a failed attempt that count.
fn failures<'a, 'h>(
    failed_test: &FailedTest<'a, 'h>,
) -> impl Iterator<Item = CountedResult<'a, 'h>> + use<'a, 'h> {
    let test_counts = failed_test.test_counts;
    test_counts
        .failures
        .iter()
        .filter_map(move |failure| test_counts.considered(failure.position))
}

fn streak_runs(failed_test: &FailedTest<'_, '_>, end: Option<FailingEnd>) -> Vec<usize> {
    let Some(end) = end else { return Vec::new() };
    failures(failed_test)
        .filter(|failure| failure.entry.chain == end.chain && failure.position >= end.since)
        .filter(|failure| failure.outcome.failed())
        .filter_map(|failure| run_of(failed_test, &failure))
        .collect()
}

/// The runs in which a chain changed between passing and failing.
fn flip_runs(failed_test: &FailedTest<'_, '_>) -> Vec<usize> {
    let passed = |other: &CountedResult<'_, '_>| !other.outcome.had_failure();
    let mut runs = Vec::new();
    for failure in failures(failed_test) {
        if failed_test
            .test_counts
            .before(failure.position)
            .next()
            .is_some_and(|before| passed(&before))
        {
            runs.extend(run_of(failed_test, &failure));
        }
        let after = failed_test
            .test_counts
            .after(failure.position)
            .next()
            .filter(passed);
        runs.extend(after.and_then(|after| run_of(failed_test, &after)));
    }
    runs
}

/// The runs of one revision of a chain on which the test both failed and passed.
#[derive(Debug, Default)]
struct Contradiction {
    failed: Vec<usize>,
    passed: Vec<usize>,
}

fn contradictions(failed_test: &FailedTest<'_, '_>) -> Vec<Contradiction> {
    let mut by_revision: BTreeMap<(usize, usize), Contradiction> = BTreeMap::new();
    for failure in failures(failed_test).filter(|failure| failure.outcome.failed()) {
        let key = (failure.entry.chain, failure.entry.revision);
        if by_revision.contains_key(&key) {
            continue;
        }
        let mut runs = Contradiction::default();
        let others = failed_test.test_counts.others_on_revision(failure);
        for result in others.chain([failure]) {
            if result.outcome.failed() {
                runs.failed.extend(run_of(failed_test, &result));
            }
            if !result.outcome.failed() || result.outcome.is_mixed() {
                runs.passed.extend(run_of(failed_test, &result));
            }
        }
        by_revision.insert(key, runs);
    }
    by_revision
        .into_values()
        .filter(|runs| !runs.passed.is_empty())
        .collect()
}

fn contradictory_runs(failed_test: &FailedTest<'_, '_>) -> Vec<usize> {
    contradictions(failed_test)
        .into_iter()
        .flat_map(|runs| [runs.failed, runs.passed].concat())
        .collect()
}

/// The numbers of the newest failed and the newest passed run of the last contradicted revision.
fn latest_pair(failed_test: &FailedTest<'_, '_>) -> Option<(i32, i32)> {
    let newest = |runs: Vec<usize>| runs.into_iter().max();
    let pairs = contradictions(failed_test)
        .into_iter()
        .filter_map(|runs| newest(runs.failed).zip(newest(runs.passed)));
    let (failed, passed) = pairs.max_by_key(|(failed, passed)| *failed.max(passed))?;
    let number = |run: usize| {
        failed_test
            .test_counts
            .timeline
            .runs
            .get(run)
            .map(|run| run.facts.number)
    };
    number(failed).zip(number(passed))
}
