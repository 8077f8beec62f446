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
    let cause = gate::cause(failure);
    let causes = match cause {
        Cause::Unclear => gate::two_likeliest(&failure.probabilities)
            .map(|(cause, _)| cause)
            .to_vec(),
        Cause::Flake
        | Cause::Environment
        | Cause::BrokenBefore
        | Cause::EarlierOnBranch
        | Cause::ThisChange => vec![cause],
    };
    let (mut runs, mut total) = (Vec::new(), 0_u32);
    for cause in causes {
        let (shown, of_cause) = supporting(cause, failure);
        runs.extend(shown);
        total = total.saturating_add(of_cause);
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

/// The runs that support a cause, and their number, which may be larger.
fn supporting(cause: Cause, failure: &FailureCause) -> (Vec<(usize, EvidenceWord)>, u32) {
    let facts = &failure.facts;
    let all = |indexes: &[usize], word| indexes.iter().map(|index| (*index, word)).collect::<Vec<_>>();
    let one = |index: Option<usize>, word| (all(index.as_slice(), word), u32::from(index.is_some()));
    let passed_on_revision = one(facts.passed_on_revision, EvidenceWord::PassedOnRevision);
    match cause {
        Cause::Flake => {
            let (mut runs, passed) = passed_on_revision;
            runs.extend(all(&facts.flakes, EvidenceWord::FailedOnGoodCode));
            (runs, passed + facts.good_failed)
        }
        Cause::Environment => one(facts.failed_elsewhere, EvidenceWord::FailedElsewhere),
        Cause::BrokenBefore if facts.on_stable => one(facts.episode_since, EvidenceWord::FailingSince),
        Cause::BrokenBefore if facts.stable_mended.is_some() => {
            one(facts.stable_since, EvidenceWord::FailedElsewhere)
        }
        Cause::BrokenBefore => one(facts.stable_since, EvidenceWord::FailingOnStableSince),
        Cause::EarlierOnBranch if facts.episode_since.is_none() => {
            one(facts.failed_with_change, EvidenceWord::FailedElsewhere)
        }
        Cause::EarlierOnBranch => one(facts.episode_since, EvidenceWord::FailingSince),
        Cause::ThisChange => {
            let (mut runs, passed) = passed_on_revision;
            runs.extend(all(&facts.stable_passes, EvidenceWord::PassedOnStable));
            (runs, passed + facts.stable_runs - facts.stable_failed)
        }
        Cause::Unclear => (Vec::new(), 0),
    }
}
