//! The runs behind a sentence about a failure.

use assay_domain::{
    cause::{Cause, EvidenceWord},
    observation::History,
};
use assay_flakiness::FailureCause;

use super::{CauseEvidence, EvidenceRun, gate};

/// Most runs in the evidence of a failure.
const MOST_RUNS: usize = 20;

/// The runs behind the sentence of a failure.
pub(super) fn of(history: &History, failure: &FailureCause) -> CauseEvidence {
    let mut runs: Vec<(usize, EvidenceWord)> = Vec::new();
    let mut total = 0_u32;
    let cause = gate::cause(failure);
    if cause == Cause::Unclear {
        for (cause, _) in gate::two_likeliest(&failure.probabilities) {
            total = total.saturating_add(add(cause, failure, &mut runs));
        }
    } else {
        total = add(cause, failure, &mut runs);
    }
    let runs = runs.into_iter().filter_map(|(index, says)| {
        let run = &history.runs.get(index)?.run;
        Some(EvidenceRun {
            run_id: run.id.to_string(),
            says,
            run_number: run.number,
        })
    });
    CauseEvidence {
        runs: runs.take(MOST_RUNS).collect(),
        runs_total: total,
    }
}

/// Adds the runs that support a cause, and returns their number.
fn add(cause: Cause, failure: &FailureCause, runs: &mut Vec<(usize, EvidenceWord)>) -> u32 {
    let facts = &failure.facts;
    let add_run = |index: Option<usize>, word: EvidenceWord, runs: &mut Vec<(usize, EvidenceWord)>| {
        runs.extend(index.map(|index| (index, word)));
        u32::from(index.is_some())
    };
    match cause {
        Cause::Flake => {
            let passed = add_run(facts.passed_on_revision, EvidenceWord::PassedOnRevision, runs);
            runs.extend(
                facts
                    .flakes
                    .iter()
                    .map(|index| (*index, EvidenceWord::FailedOnGoodCode)),
            );
            passed + facts.good_failed
        }
        Cause::Environment => add_run(facts.failed_elsewhere, EvidenceWord::FailedElsewhere, runs),
        Cause::BrokenBefore if facts.on_stable => {
            add_run(facts.episode_since, EvidenceWord::FailingSince, runs)
        }
        Cause::BrokenBefore if facts.stable_mended.is_some() => {
            add_run(facts.stable_since, EvidenceWord::FailedElsewhere, runs)
        }
        Cause::BrokenBefore => add_run(facts.stable_since, EvidenceWord::FailingOnStableSince, runs),
        Cause::EarlierOnBranch => add_run(facts.episode_since, EvidenceWord::FailingSince, runs),
        Cause::ThisChange => {
            runs.extend(
                facts
                    .stable_passes
                    .iter()
                    .map(|index| (*index, EvidenceWord::PassedOnStable)),
            );
            facts.stable_runs - facts.stable_failed
        }
        Cause::Unclear => 0,
    }
}
