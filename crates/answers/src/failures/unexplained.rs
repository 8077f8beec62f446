//! Failures that the runs without their branch hardly explain: of tests that are new, or that the stable branch left or fails
//! with other errors.

use assay_domain::{
    observation::{History, RunObservations},
    verdict::ENGINE_WINDOW_DAYS,
};
use assay_flakiness::{FailureCause, Probabilities};

/// A test that ran in fewer runs without the branch is unproven: nothing shows that it is good.
pub const PROVEN_FROM: u32 = 5;
/// The least probability that the branch broke an unproven test, at the cost of a flake, so that it runs again.
const UNPROVEN: f64 = 0.1;
/// The number of newest runs of the stable branch without a test from which the test left it.
const LEFT_AFTER: usize = 3;

/// Gives the flakes of a test that no run without the branch has reported to the branch, and some of those of an unproven
/// one: nothing shows that it fails on good code. A pass on the same revision shows it. In a project without a stable branch
/// all other runs count.
///
/// Without a run of another branch in the window, nothing distinguishes the branch's breakages from earlier ones. A stable
/// branch that fails the test with another error, or no longer runs it, explains the failure less.
pub fn own_unexplained(history: &History, causes: &mut [FailureCause]) {
    let stable = history.stable();
    let has_stable = history
        .runs
        .iter()
        .any(|observed| stable.is(observed.run.branch.as_deref()));
    for failure in causes {
        failure.facts.left_stable = left_stable(history, failure);
        let facts = &failure.facts;
        let is_known = failure.recovered
            || facts.on_stable
            || facts.passed_on_revision.is_some()
            || !facts.causes_distinguishable;
        if !is_known && (facts.stable_other_error || facts.left_stable.is_some()) {
            doubt_base(failure);
        }
        let facts = &failure.facts;
        // With hindsight the stable branch may have run it later.
        let runs =
            other_runs(history, failure, !has_stable, |other| other.ran(failure.test)).max(facts.stable_runs);
        if is_known || runs >= PROVEN_FROM {
            continue;
        }
        let is_alone =
            runs == 0 && !facts.passed_before && other_runs(history, failure, false, |_| true) == 0;
        let of = &mut failure.probabilities;
        if is_alone {
            failure.facts.nothing_compares = true;
            share_with_base(of);
        }
        let own = match runs {
            0 if !is_alone => of.flake,
            _ => (UNPROVEN - of.mine()).clamp(0.0, of.flake),
        };
        of.flake -= own;
        give(failure, own);
    }
}

/// The first of the stable branch's runs that skipped the test since it last ran there, or lack it and are about as large;
/// none if there are fewer than [`LEFT_AFTER`], or for a failure on that branch. They are runs of the failure's variant, if
/// the test ran on it.
fn left_stable(history: &History, failure: &FailureCause) -> Option<usize> {
    let here = history.runs.get(failure.run_index)?;
    if failure.facts.on_stable {
        return None;
    }
    let stable = history.stable();
    let newest_first = |of_variant: bool| {
        history.runs.iter().enumerate().rev().filter(move |(_, other)| {
            stable.is(other.run.branch.as_deref())
                && other.run.started_at < here.run.started_at
                && (!of_variant || other.run.variant == here.run.variant)
        })
    };
    let ran = |(_, other): &(usize, &RunObservations)| other.ran(failure.test);
    let (last, newest) = newest_first(true)
        .find(ran)
        .or_else(|| newest_first(false).find(ran))?;
    let is_without = |(_, other): &(usize, &RunObservations)| {
        other.run.variant == newest.run.variant
            && (other.skipped.contains(failure.test)
                || 10 * u64::from(other.executed()) >= 9 * u64::from(newest.executed()))
    };
    let since = newest_first(false)
        .take_while(|(index, _)| *index > last)
        .filter(is_without);
    since.clone().nth(LEFT_AFTER - 1)?;
    since.last().map(|(index, _)| index)
}

/// Gives some of the breakages of the stable branch to the branch. A stable branch that fails the test with other errors, or
/// no longer runs it, does not explain the failure.
fn doubt_base(failure: &mut FailureCause) {
    let of = &mut failure.probabilities;
    let own = (UNPROVEN - of.mine()).clamp(0.0, of.broken_before);
    of.broken_before -= own;
    give(failure, own);
}

/// Adds to the probability that the branch broke the test: an earlier revision, if it failed there.
fn give(failure: &mut FailureCause, own: f64) {
    let of = &mut failure.probabilities;
    match failure.facts.episode_since {
        Some(_) => of.earlier_on_branch += own,
        None => of.this_change += own,
    }
}

/// Gives half of the branch's breakages to the code before it.
fn share_with_base(of: &mut Probabilities) {
    of.earlier_on_branch /= 2.0;
    of.this_change /= 2.0;
    of.broken_before += of.mine();
}

/// The number of runs on other branches in which the test ran in the window before its failure. For a failure on the stable
/// branch, all earlier runs count.
pub fn runs_elsewhere(history: &History, failure: &FailureCause) -> u32 {
    other_runs(history, failure, failure.facts.on_stable, |other| {
        other.ran(failure.test)
    })
}

/// The number of runs in the window before a failure that count: on other branches, or on any.
fn other_runs(
    history: &History,
    failure: &FailureCause,
    of_any_branch: bool,
    counts: impl Fn(&RunObservations) -> bool,
) -> u32 {
    let Some(here) = history.runs.get(failure.run_index) else {
        return 0;
    };
    let until = here.run.started_at;
    let window = until.plus_days(-ENGINE_WINDOW_DAYS)..=until;
    let elsewhere = history.runs.iter().filter(|other| {
        other.run.number != here.run.number
            && window.contains(&other.run.started_at)
            && (of_any_branch || other.run.branch != here.run.branch)
            && counts(other)
    });
    let mut numbers: Vec<i32> = elsewhere.map(|other| other.run.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    u32::try_from(numbers.len()).unwrap_or(u32::MAX)
}
