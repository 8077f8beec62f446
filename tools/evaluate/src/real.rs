//! Evaluates a real history by windows of 14 days: compares the truth that its revisions prove with the engine's
//! verdicts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::Arc,
};

use assay_flakiness::{
    Engine,
    domain::{
        observation::History,
        timestamp::Timestamp,
        verdict::{Judge as _, Signal, Verdict, VerdictStatus},
    },
};

use crate::{
    results::{TestResult, by_test},
    rival::Rival,
    score::Calls,
    simulate::outages,
};

/// In a run with this many new failures, contradictions prove nothing.
pub(crate) const CROWD: u32 = 12;
/// A failure after a longer streak is not new.
const FRESH: u32 = 3;

/// The engine's score of a flaky test with an incident.
const CONTRADICTED_SCORE: f64 = 0.4;

/// Judges every window of the later half of a history (or of `all` of it).
pub(crate) fn table(history: &History, all: bool, crowd: u32) -> String {
    let times = || history.runs.iter().map(|run| run.run.started_at);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return "no runs\n".to_owned();
    };
    let hidden = without_revisions(history);
    let crowds = crowds(history, crowd);
    let middle = Timestamp::from_unix_ms(i64::midpoint(first.unix_ms(), last.unix_ms()));
    let mut report = Report::default();
    let mut end = first.plus_days(14);
    while end <= last {
        if all || end.plus_days(-14) >= middle {
            report.judge(history, &hidden, &crowds, end);
        }
        end = end.plus_days(14);
    }
    report.text()
}

#[derive(Default)]
struct Report {
    full: Calls,
    hidden: Calls,
    rivals: [Calls; Rival::ALL.len()],
}

/// Whether the engine has signals of a flaky test, with any verdict.
fn is_flaky(verdict: &Verdict) -> bool {
    let contradicted = [Signal::SameShaFlip, Signal::RetryRate]
        .iter()
        .any(|signal| verdict.signals.contains(signal));
    verdict.status == VerdictStatus::Flaky
        || verdict.signals.contains(&Signal::FailureRateFlaky)
        || (contradicted && verdict.figures.flake_score >= CONTRADICTED_SCORE)
}

impl Report {
    fn judge(
        &mut self,
        history: &History,
        hidden: &History,
        crowds: &BTreeSet<(usize, u32)>,
        end: Timestamp,
    ) {
        let engine = Engine::default();
        let by_ordinal = |verdicts: Vec<Verdict>| -> BTreeMap<u32, Verdict> {
            verdicts
                .into_iter()
                .map(|verdict| (verdict.test, verdict))
                .collect()
        };
        let full = by_ordinal(engine.verdicts(history, end));
        let without = by_ordinal(engine.verdicts(hidden, end));
        let outages = outages(history, end);
        let results = by_test(history, end.plus_days(-14), end);
        for (test, results) in (0..).zip(&results) {
            let Some(verdict) = full.get(&test) else { continue };
            let is_crowd = |result: &&TestResult| crowds.contains(&(result.run, test));
            if let Some(truth) = truth(results, |result| is_crowd(&result)) {
                self.full.add(is_flaky(verdict), truth);
                self.hidden.add(without.get(&test).is_some_and(is_flaky), truth);
                for (calls, rival) in self.rivals.iter_mut().zip(Rival::ALL) {
                    calls.add(rival.is_flaky(results, &outages), truth);
                }
            }
        }
    }

    fn text(&self) -> String {
        let mut table = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "labelled windows: {} of flaky tests",
            self.full.positives()
        );
        let engine = [("engine, revisions hidden", self.hidden), ("engine", self.full)];
        let rivals = Rival::ALL.map(Rival::name).into_iter().zip(self.rivals);
        for (name, calls) in engine.into_iter().chain(rivals) {
            let _ = writeln!(table, "  {name:<34} P/R/F1 {calls}");
        }
        table
    }
}

/// The truth that the revisions prove: flaky, not flaky, or unknown.
fn truth(results: &[TestResult], is_crowd: impl Fn(&TestResult) -> bool) -> Option<bool> {
    let mut groups: BTreeMap<_, Vec<&TestResult>> = BTreeMap::new();
    let mut recovered = 0;
    for result in results {
        recovered += u32::from(result.recovered && !is_crowd(result));
        if let Some(revision) = &result.revision {
            groups.entry((&result.chain, revision)).or_default().push(result);
        }
    }
    let (mut contradicted, mut passed_again, mut rerun_failed) = (recovered, false, false);
    for group in groups.values() {
        let outcomes: Vec<bool> = group
            .iter()
            .filter(|result| !(result.failed && is_crowd(result)))
            .map(|result| result.failed)
            .collect();
        let failed = outcomes.iter().any(|failed| *failed);
        let passed = outcomes.iter().any(|failed| !*failed);
        contradicted += u32::from(failed && passed);
        let changes = outcomes
            .windows(2)
            .filter(|pair| matches!(pair, [a, b] if a != b))
            .count();
        passed_again |= failed && changes >= 2 && outcomes.first() == Some(&false);
        rerun_failed |= outcomes.len() > 1 && !passed;
    }
    let failures = results.iter().filter(|result| result.failed);
    let only_crowds = results.iter().any(|result| result.failed) && failures.clone().all(&is_crowd);
    if passed_again || contradicted >= 2 {
        Some(true)
    } else if contradicted == 0 && (rerun_failed || only_crowds) {
        Some(false)
    } else {
        None
    }
}

/// The failures of runs with at least `crowd` new failures, by the run's index and the test.
pub(crate) fn crowds(history: &History, crowd: u32) -> BTreeSet<(usize, u32)> {
    let mut order: Vec<usize> = (0..history.runs.len()).collect();
    order.sort_by_key(|run| {
        history
            .runs
            .get(*run)
            .map(|run| (run.run.started_at, run.run.number))
    });
    type TestOnChain = (Option<Arc<str>>, Arc<str>, u32);
    let mut streaks: BTreeMap<TestOnChain, u32> = BTreeMap::new();
    let mut crowds = BTreeSet::new();
    for place in order {
        let Some(observed) = history.runs.get(place) else {
            continue;
        };
        let key = |test: u32| {
            (
                observed.run.branch.clone(),
                Arc::clone(&observed.run.variant),
                test,
            )
        };
        let mut fresh = 0;
        let failed: BTreeSet<u32> = observed.failures.iter().map(|failure| failure.test).collect();
        for test in observed
            .present
            .iter()
            .filter(|test| !observed.skipped.contains(*test))
        {
            if failed.contains(&test) {
                let streak = streaks.entry(key(test)).or_default();
                *streak += 1;
                fresh += u32::from(*streak <= FRESH);
            } else {
                streaks.remove(&key(test));
            }
        }
        if fresh >= crowd {
            crowds.extend(failed.into_iter().map(|test| (place, test)));
        }
    }
    crowds
}

fn without_revisions(history: &History) -> History {
    let mut hidden = history.clone();
    for run in &mut hidden.runs {
        run.run.revision = None;
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(outcomes: &[(&str, char)]) -> Vec<TestResult> {
        let result = |(run, (revision, letter)): (usize, &(&str, char))| TestResult {
            run,
            chain: (None, "".into()),
            stable: true,
            revision: Some((*revision).into()),
            failed: *letter == 'F',
            recovered: *letter == 'R',
        };
        outcomes.iter().enumerate().map(result).collect()
    }

    #[test]
    fn revisions_label_a_test_as_flaky_or_sound_or_unknown() {
        let no_crowds = |_: &TestResult| false;
        assert_eq!(
            truth(&results(&[("a", 'P'), ("a", 'F'), ("a", 'P')]), no_crowds),
            Some(true)
        );
        assert_eq!(
            truth(
                &results(&[("a", 'P'), ("a", 'F'), ("b", 'F'), ("b", 'P')]),
                no_crowds
            ),
            Some(true)
        );
        assert_eq!(
            truth(&results(&[("a", 'P'), ("a", 'F'), ("b", 'P')]), no_crowds),
            None,
            "once, without a return"
        );
        assert_eq!(
            truth(
                &results(&[("a", 'P'), ("b", 'F'), ("b", 'F'), ("c", 'P')]),
                no_crowds
            ),
            Some(false)
        );
        assert_eq!(
            truth(&results(&[("a", 'P'), ("a", 'F'), ("a", 'P')]), |result| result
                .run
                == 1),
            Some(false)
        );
        assert_eq!(truth(&results(&[("a", 'P'), ("b", 'F')]), no_crowds), None);
    }
}
