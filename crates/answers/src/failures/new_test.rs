//! Failures of tests that only their branch has.

use assay_domain::observation::History;
use assay_flakiness::FailureCause;

/// Gives the flakes of a test that no run without the branch has reported to the branch: the test is new and unproven, so
/// nothing shows that it fails on good code. A pass on the same revision shows it.
pub fn own_new_tests(history: &History, causes: &mut [FailureCause]) {
    let stable = history.stable();
    let has_stable = history
        .runs
        .iter()
        .any(|observed| stable.is(observed.run.branch.as_deref()));
    for failure in causes {
        let facts = &failure.facts;
        let is_known = !has_stable
            || failure.recovered
            || facts.on_stable
            || facts.stable_runs > 0
            || facts.passed_on_revision.is_some()
            || !facts.causes_distinguishable;
        if is_known || runs_elsewhere(history, failure) > 0 {
            continue;
        }
        let of = &mut failure.probabilities;
        let flake = std::mem::take(&mut of.flake);
        match facts.episode_since {
            Some(_) => of.earlier_on_branch += flake,
            None => of.this_change += flake,
        }
    }
}

/// The number of runs on other branches in which the test ran before its failure. For a failure on the stable branch,
/// all earlier runs count.
pub fn runs_elsewhere(history: &History, failure: &FailureCause) -> u32 {
    let Some(here) = history.runs.get(failure.run_index) else {
        return 0;
    };
    let is_stable = failure.facts.on_stable;
    let elsewhere = history.runs.iter().filter(|other| {
        other.run.number != here.run.number
            && other.run.started_at <= here.run.started_at
            && (is_stable || other.run.branch != here.run.branch)
            && other.ran(failure.test)
    });
    let mut numbers: Vec<i32> = elsewhere.map(|other| other.run.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    u32::try_from(numbers.len()).unwrap_or(u32::MAX)
}
