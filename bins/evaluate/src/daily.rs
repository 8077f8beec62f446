//! Judges a real history day by day: is a test that is red now broken, and do verdicts change without new evidence?
//!
//! A red test is broken if its next five results on the chain fail too, and not broken if one of the next two passes. A
//! test that three later runs of the chain do not contain is not red now. A test is flaky if it failed twice and passed
//! again each time, after at most two failures, and not flaky if it never did; runs with many new failures do not count.
//! A verdict changes without evidence if the failures in the window and the chains that end in one are the same as on the
//! day before.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::Arc,
};

use assay_flakiness::{
    Diagnose as _, Engine, ErrorTexts,
    domain::{
        cause::Knowledge,
        observation::History,
        timestamp::{DAY_MS, Timestamp},
        verdict::{Judge as _, VerdictStatus},
    },
};

use crate::{
    gate_counts::Bands,
    real::crowds,
    results::{TestResult, by_test},
    score::Calls,
};

/// The results after a red one that must fail, and those of which one must pass.
const LASTS: usize = 5;
const ENDS: usize = 2;

/// After this many later runs of its chain without it, a test has left.
const LEFT: usize = 3;

type Chain = (Option<Arc<str>>, Arc<str>);

/// The failures of a window, and the chains that end in one.
type Evidence = (Vec<usize>, BTreeSet<Chain>);

#[derive(Default)]
struct Counts {
    engine: Calls,
    two: Calls,
    three: Calls,
    flaky: Calls,
    /// Red in the newest result, by whether the verdict shows it.
    red: [u32; 2],
    test_days: u32,
    changes: u32,
}

/// The tables of the later half of a history, or of `all` of it. `crowd` new failures in a run prove nothing of a test.
pub(crate) fn table(history: &History, all: bool, crowd: u32) -> String {
    let times = || history.runs.iter().map(|run| run.run.started_at);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return "no runs\n".to_owned();
    };
    let middle = Timestamp::from_unix_ms(i64::midpoint(first.unix_ms(), last.unix_ms()));
    let from = if all { first } else { middle };
    let future = by_test(history, from, last);
    let crowds = crowds(history, crowd);
    let mut counts = Counts::default();
    let mut before: BTreeMap<u32, (VerdictStatus, Evidence)> = BTreeMap::new();
    let mut now = from.plus_days(14);
    while now <= last {
        before = counts.judge(history, now, &future, &crowds, &before);
        now = now.plus_days(1);
    }
    counts.text() + &calibration(history, from, &future)
}

impl Counts {
    fn judge(
        &mut self,
        history: &History,
        now: Timestamp,
        future: &[Vec<TestResult>],
        crowds: &BTreeSet<(usize, u32)>,
        before: &BTreeMap<u32, (VerdictStatus, Evidence)>,
    ) -> BTreeMap<u32, (VerdictStatus, Evidence)> {
        let results = by_test(history, now.plus_days(-14), now);
        let starts = starts_by_chain(history, now);
        let mut today = BTreeMap::new();
        for verdict in Engine::default().verdicts(history, now) {
            let place = usize::try_from(verdict.test).unwrap_or(usize::MAX);
            let (Some(results), Some(future)) = (results.get(place), future.get(place)) else {
                continue;
            };
            let mut last: BTreeMap<&Chain, Vec<&TestResult>> = BTreeMap::new();
            for result in results {
                last.entry(&result.chain).or_default().push(result);
            }
            let start = |result: &TestResult| history.runs.get(result.run).map(|run| run.run.started_at);
            let newest = results
                .iter()
                .filter(|result| result.stable)
                .filter_map(start)
                .max();
            // A variant that no longer runs says nothing of now, nor does a test that left.
            let is_live = |last: &TestResult| {
                let both = newest.zip(start(last));
                both.is_some_and(|(newest, at)| newest.since_ms(at) <= 3 * DAY_MS)
            };
            let has_left = |last: &TestResult| {
                let starts = starts.get(&last.chain).into_iter().flatten();
                start(last).is_some_and(|at| starts.filter(|later| **later > at).count() >= LEFT)
            };
            let streak =
                |results: &[&TestResult]| results.iter().rev().take_while(|result| result.failed).count();
            let red: Vec<(&Chain, usize)> = last
                .iter()
                .filter(|(_, results)| {
                    let last = results.last();
                    last.is_some_and(|last| last.stable && is_live(last) && !has_left(last))
                })
                .map(|(chain, results)| (*chain, streak(results)))
                .filter(|(_, streak)| *streak > 0)
                .collect();
            let failures = results.iter().filter(|result| result.failed || result.recovered);
            let evidence: Evidence = (
                failures.map(|result| result.run).collect(),
                last.iter()
                    .filter(|(_, results)| streak(results) > 0)
                    .map(|(chain, _)| (*chain).clone())
                    .collect(),
            );
            let is_crowd = |result: &TestResult| crowds.contains(&(result.run, verdict.test));
            if let Some(is_flaky) = passed_again(last.values(), is_crowd) {
                self.flaky.add(verdict.status == VerdictStatus::Flaky, is_flaky);
            }
            self.test_days += 1;
            if let Some((status, of_before)) = before.get(&verdict.test) {
                let is_gathering = [*status, verdict.status].contains(&VerdictStatus::InsufficientData);
                let changes = *status != verdict.status && *of_before == evidence && !is_gathering;
                self.changes += u32::from(changes);
            }
            if !red.is_empty() {
                let shows = matches!(
                    verdict.status,
                    VerdictStatus::Failing | VerdictStatus::Broken | VerdictStatus::Flaky
                );
                let [hidden, shown] = &mut self.red;
                *(if shows { shown } else { hidden }) += 1;
            }
            if let Some(lasts) = lasts(&red, future, history, now) {
                let longest = red.iter().map(|(_, streak)| *streak).max().unwrap_or(0);
                self.engine.add(verdict.status == VerdictStatus::Broken, lasts);
                self.two.add(longest >= 2, lasts);
                self.three.add(longest >= 3, lasts);
            }
            today.insert(verdict.test, (verdict.status, evidence));
        }
        today
    }

    fn text(&self) -> String {
        let months = f64::from(self.test_days) / 30.0;
        let mut text = String::from("red tests: broken?\n");
        for (name, calls) in [
            ("engine", self.engine),
            ("two red runs in a row", self.two),
            ("three red runs in a row", self.three),
        ] {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {name:<34} P/R/F1 {calls}");
        }
        let _ = writeln!(text, "failed twice, and passed again each time: flaky?");
        let _ = writeln!(text, "  {:<34} P/R/F1 {}", "engine", self.flaky);
        let [hidden, shown] = self.red;
        let _ = writeln!(
            text,
            "  red and yet healthy or too few runs {hidden} of {}",
            hidden + shown
        );
        let _ = writeln!(
            text,
            "  changes of verdict without evidence {:.3} a test-month",
            f64::from(self.changes) / months.max(1.0)
        );
        text
    }
}

/// Whether a test failed twice on a chain and passed again each time, after at most [`ENDS`] failures. `None` for once.
fn passed_again<'a>(
    chains: impl Iterator<Item = &'a Vec<&'a TestResult>>,
    is_crowd: impl Fn(&TestResult) -> bool,
) -> Option<bool> {
    let failed = |result: &TestResult| result.failed || result.recovered;
    let times = chains.map(|results| {
        let streaks = results.chunk_by(|a, b| failed(a) == failed(b));
        // The last streak has not ended.
        let ended = streaks.clone().count().saturating_sub(1);
        let short = streaks.take(ended).filter(|streak| {
            streak.len() <= ENDS
                && streak.iter().all(|result| failed(result))
                && !streak.iter().all(|result| is_crowd(result))
        });
        short.count()
    });
    match times.max().unwrap_or(0) {
        0 => Some(false),
        1 => None,
        _ => Some(true),
    }
}

/// When the runs of each chain started, until `now`.
fn starts_by_chain(history: &History, now: Timestamp) -> BTreeMap<Chain, Vec<Timestamp>> {
    let mut starts: BTreeMap<Chain, Vec<Timestamp>> = BTreeMap::new();
    for observed in history.runs.iter().filter(|run| run.run.started_at <= now) {
        let chain = (observed.run.branch.clone(), Arc::clone(&observed.run.variant));
        starts.entry(chain).or_default().push(observed.run.started_at);
    }
    starts
}

/// Whether the longest red streak lasts: the next results of its chain. `None` if they prove nothing.
fn lasts(red: &[(&Chain, usize)], future: &[TestResult], history: &History, now: Timestamp) -> Option<bool> {
    let (chain, _) = red.iter().max_by_key(|(_, streak)| *streak)?;
    let next: Vec<bool> = future
        .iter()
        .filter(|result| result.chain == **chain)
        .filter(|result| {
            let run = history.runs.get(result.run);
            run.is_some_and(|run| run.run.started_at > now)
        })
        .map(|result| result.failed)
        .take(LASTS)
        .collect();
    proves(&next)
}

fn proves(next: &[bool]) -> Option<bool> {
    if next.iter().take(ENDS).any(|failed| !failed) {
        Some(false)
    } else if next.len() == LASTS && next.iter().all(|failed| *failed) {
        Some(true)
    } else {
        None
    }
}

/// The probability that the code broke a test, at each first failure of the stable branch, and what came of it.
fn calibration(history: &History, from: Timestamp, future: &[Vec<TestResult>]) -> String {
    let engine = Engine::default();
    let texts = ErrorTexts::new();
    let mut bands = Bands::default();
    // Failures on all variants until a new revision: a breakage that was mended at once, or an outage.
    let mut until_new_revision = Bands::default();
    let mut first_failures: BTreeMap<i32, Vec<(usize, u32, Option<bool>)>> = BTreeMap::new();
    for (test, results) in (0..).zip(future) {
        let results: Vec<&TestResult> = results.iter().filter(|result| result.stable).collect();
        let mut by_chain: BTreeMap<&Chain, Vec<&TestResult>> = BTreeMap::new();
        for result in &results {
            by_chain.entry(&result.chain).or_default().push(result);
        }
        for results_of_chain in by_chain.values() {
            for (place, pair) in results_of_chain.windows(2).enumerate() {
                let [before, failure] = pair else { continue };
                let next = results_of_chain
                    .get(place + 2)
                    .zip(results_of_chain.get(place + 3));
                let lasts = next.map(|(second, third)| second.failed && third.failed);
                let run = history.runs.get(failure.run);
                let (false, true, Some(lasts), Some(run)) = (before.failed, failure.failed, lasts, run)
                else {
                    continue;
                };
                if failed_before(&results, before, failure, history) {
                    continue;
                }
                let is_known = lasts || !failed_on_all_variants(&results, failure);
                let of_run = first_failures.entry(run.run.number).or_default();
                of_run.push((failure.run, test, is_known.then_some(lasts)));
            }
        }
    }
    for (number, failures) in first_failures {
        let Some(run) = history.runs.iter().find(|run| run.run.number == number) else {
            continue;
        };
        let now = run.run.started_at;
        if now < from.plus_days(14) {
            continue;
        }
        for cause in engine.causes_of_run(history, &texts, number, Knowledge::AtTheTime, now) {
            let known = failures
                .iter()
                .find(|(index, test, _)| (*index, *test) == (cause.run_index, cause.test));
            let Some((.., lasts)) = known else { continue };
            let broke = cause.probabilities.mine() + cause.probabilities.broken_before;
            match lasts {
                Some(lasts) => bands.add(broke, *lasts),
                None => until_new_revision.add(broke, false),
            }
        }
    }
    let mut text = String::from("first failures of the stable branch: P(the code broke it)\n");
    let left_out = until_new_revision.rows().map(|(_, [_, count], _)| count);
    for ((end, [lasted, ended], [mean, share]), left_out) in bands.rows().zip(left_out) {
        let count = lasted + ended;
        let _ = writeln!(
            text,
            "  below {end:.2}: {count:>6} failures, mean {mean:.3}, lasted {share:.3}; on all variants until a new revision {left_out}"
        );
    }
    text
}

/// Whether the test failed twice on another variant of the stable branch between two results of a chain.
fn failed_before(
    results: &[&TestResult],
    before: &TestResult,
    failure: &TestResult,
    history: &History,
) -> bool {
    let start = |result: &TestResult| history.runs.get(result.run).map(|run| run.run.started_at);
    let between = |result: &TestResult| start(before) < start(result) && start(result) < start(failure);
    let mut failed: BTreeMap<&Chain, u32> = BTreeMap::new();
    for result in results.iter().filter(|result| result.failed && between(result)) {
        *failed.entry(&result.chain).or_default() += 1;
    }
    failed.values().any(|count| *count >= 2)
}

/// Whether the test failed whenever it ran at the revision of a failure, on two variants or more.
fn failed_on_all_variants(results: &[&TestResult], failure: &TestResult) -> bool {
    let here = || {
        let here = results
            .iter()
            .filter(|result| result.revision == failure.revision);
        here.filter(|_| failure.revision.is_some())
    };
    let chains: BTreeSet<&Chain> = here().map(|result| &result.chain).collect();
    chains.len() >= 2 && here().all(|result| result.failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(outcomes: &[(&str, &str, char)]) -> Vec<TestResult> {
        let result = |(run, (variant, revision, letter)): (usize, &(&str, &str, char))| TestResult {
            run,
            chain: (None, (*variant).into()),
            stable: true,
            revision: Some((*revision).into()),
            failed: *letter == 'F',
            recovered: *letter == 'R',
        };
        outcomes.iter().enumerate().map(result).collect()
    }

    #[test]
    fn two_short_failures_that_passed_again_make_a_flaky_test() {
        let flaky = |letters: &str, crowd: Option<usize>| {
            let outcomes: Vec<_> = letters.chars().map(|letter| ("", "a", letter)).collect();
            let results = results(&outcomes);
            let chain = results.iter().collect();
            passed_again([&chain].into_iter(), |result| Some(result.run) == crowd)
        };
        assert_eq!(flaky("PFPPRP", None), Some(true));
        assert_eq!(flaky("PFPPFP", Some(4)), None, "one is left");
        assert_eq!(
            flaky("PFFFPF", None),
            Some(false),
            "a breakage, and a failure that lasts"
        );
    }

    #[test]
    fn a_revision_fails_a_test_on_all_variants_or_not() {
        let failed = |outcomes: &[(&str, &str, char)]| {
            let results = results(outcomes);
            let all: Vec<&TestResult> = results.iter().collect();
            failed_on_all_variants(&all, all.first().unwrap())
        };
        assert!(failed(&[("x", "a", 'F'), ("y", "a", 'F'), ("y", "b", 'P')]));
        assert!(!failed(&[("x", "a", 'F'), ("y", "a", 'P')]));
        assert!(!failed(&[("x", "a", 'F'), ("x", "a", 'F')]), "one variant");
    }
}
