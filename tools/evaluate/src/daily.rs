//! Judges a real history day by day: is a test that is red now broken, and do verdicts change without new evidence?
//!
//! A red test is broken if its next five results on the chain fail too, and not broken if one of the next two passes. The
//! counts are also those of tests that still run: that one of the three newest runs of the chain contains.
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
        verdict::{Judge as _, Signal, VerdictStatus},
    },
};

use crate::{
    gate_counts::Bands,
    results::{TestResult, by_test},
    score::Calls,
};

/// The results after a red one that must fail, and those of which one must pass.
const LASTS: usize = 5;
const ENDS: usize = 2;
/// A test that this many newest runs of its chain do not contain may have left.
const NEWEST: usize = 3;

type Chain = (Option<Arc<str>>, Arc<str>);

/// The failures of a window, and the chains that end in one.
type Evidence = (Vec<usize>, BTreeSet<Chain>);

/// Which red tests are broken, by the engine and by streaks.
#[derive(Default)]
struct Broken {
    engine: Calls,
    two: Calls,
}

#[derive(Default)]
struct Counts {
    broken: Broken,
    still_running: Broken,
    /// Red in the newest result, by whether the verdict shows it.
    red: [u32; 2],
    test_days: u32,
    changes: u32,
    /// The tests that fail by the calendar on any day.
    calendar: BTreeSet<u32>,
}

/// The tables of the later half of a history, or of `all` of it.
pub(crate) fn table(history: &History, all: bool) -> String {
    let times = || history.runs.iter().map(|run| run.run.started_at);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return "no runs\n".to_owned();
    };
    let middle = Timestamp::from_unix_ms(i64::midpoint(first.unix_ms(), last.unix_ms()));
    let from = if all { first } else { middle };
    let future = by_test(history, from, last);
    let starts = starts_by_chain(history);
    let mut counts = Counts::default();
    let mut before: BTreeMap<u32, (VerdictStatus, Evidence)> = BTreeMap::new();
    let mut now = from.plus_days(14);
    while now <= last {
        before = counts.judge(history, now, &future, &starts, &before);
        now = now.plus_days(1);
    }
    counts.text() + &calibration(history, from, &future)
}

impl Broken {
    fn add(&mut self, by_engine: bool, streak: usize, lasts: bool) {
        self.engine.add(by_engine, lasts);
        self.two.add(streak >= 2, lasts);
    }

    fn text(&self) -> String {
        let rules = [("engine", self.engine), ("two red runs in a row", self.two)];
        let lines = rules.map(|(name, calls)| format!("  {name:<34} P/R/F1 {calls}\n"));
        lines.concat()
    }
}

impl Counts {
    fn judge(
        &mut self,
        history: &History,
        now: Timestamp,
        future: &[Vec<TestResult>],
        starts: &BTreeMap<Chain, Vec<Timestamp>>,
        before: &BTreeMap<u32, (VerdictStatus, Evidence)>,
    ) -> BTreeMap<u32, (VerdictStatus, Evidence)> {
        let results = by_test(history, now.plus_days(-14), now);
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
            // A variant that no longer runs says nothing of now.
            let is_live = |last: &TestResult| {
                let both = newest.zip(start(last));
                both.is_some_and(|(newest, at)| newest.since_ms(at) <= 3 * DAY_MS)
            };
            let streak =
                |results: &[&TestResult]| results.iter().rev().take_while(|result| result.failed).count();
            let red: Vec<(&Chain, usize)> = last
                .iter()
                .filter(|(_, results)| results.last().is_some_and(|last| last.stable && is_live(last)))
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
            self.test_days += 1;
            if let Some((status, of_before)) = before.get(&verdict.test) {
                let is_gathering = [*status, verdict.status].contains(&VerdictStatus::InsufficientData);
                let changes = *status != verdict.status && *of_before == evidence;
                self.changes += u32::from(changes && !is_gathering);
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
                let is_broken = verdict.status == VerdictStatus::Broken;
                self.broken.add(is_broken, longest, lasts);
                let still_runs = |chain: &Chain| {
                    let starts = starts.get(chain).into_iter().flatten();
                    let last = last.get(chain).and_then(|results| start(results.last()?));
                    let later = starts.filter(|start| Some(**start) > last && **start <= now);
                    later.count() < NEWEST
                };
                if red.iter().any(|(chain, _)| still_runs(chain)) {
                    self.still_running.add(is_broken, longest, lasts);
                }
            }
            if verdict.reason == Some(Signal::Calendar) {
                self.calendar.insert(verdict.test);
            }
            today.insert(verdict.test, (verdict.status, evidence));
        }
        today
    }

    fn text(&self) -> String {
        let months = f64::from(self.test_days) / 30.0;
        let mut text = format!("red tests: broken?\n{}", self.broken.text());
        text += &format!("of them, those that still run:\n{}", self.still_running.text());
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
        let _ = writeln!(text, "{} tests fail by the calendar", self.calendar.len());
        text
    }
}

/// When the runs of each chain started.
fn starts_by_chain(history: &History) -> BTreeMap<Chain, Vec<Timestamp>> {
    let mut starts: BTreeMap<Chain, Vec<Timestamp>> = BTreeMap::new();
    for observed in &history.runs {
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

/// The probability that the code broke a test, at each first failure of the stable branch, and whether the test failed
/// three times in a row. Also what came of failures on several variants.
fn calibration(history: &History, from: Timestamp, future: &[Vec<TestResult>]) -> String {
    let engine = Engine::default();
    let texts = ErrorTexts::new();
    let mut bands = Bands::default();
    let (mut passed_again, mut kept_failing, mut next_window) = (0_u32, 0_u32, from);
    let mut first_failures: BTreeMap<i32, Vec<(usize, u32, bool)>> = BTreeMap::new();
    for (test, results) in (0..).zip(future) {
        let mut by_chain: BTreeMap<&Chain, Vec<&TestResult>> = BTreeMap::new();
        for result in results.iter().filter(|result| result.stable) {
            by_chain.entry(&result.chain).or_default().push(result);
        }
        for results in by_chain.values() {
            for (place, pair) in results.windows(2).enumerate() {
                let [before, failure] = pair else { continue };
                let next = results.get(place + 2).zip(results.get(place + 3));
                let lasts = next.map(|(second, third)| second.failed && third.failed);
                let run = history.runs.get(failure.run);
                if let (true, Some(lasts), Some(run)) = (!before.failed && failure.failed, lasts, run) {
                    let of_run = first_failures.entry(run.run.number).or_default();
                    of_run.push((failure.run, test, lasts));
                }
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
        let causes = engine.causes_of_run(history, &texts, number, Knowledge::AtTheTime, now);
        if let Some(cause) = causes.first().filter(|_| now >= next_window) {
            let shared = cause.facts.shared_streaks;
            passed_again += shared.all - shared.lasted;
            kept_failing += shared.lasted;
            next_window = now.plus_days(14);
        }
        for cause in causes {
            let known = failures
                .iter()
                .find(|(index, test, _)| (*index, *test) == (cause.run_index, cause.test));
            let Some((.., lasts)) = known else { continue };
            let broke = cause.probabilities.mine() + cause.probabilities.broken_before;
            bands.add(broke, *lasts);
        }
    }
    let mut text = format!(
        "first failures of the stable branch, P(the code broke it), and whether they lasted:\n{}",
        bands.table()
    );
    let _ = writeln!(
        text,
        "revisions that began failures on several variants, in windows of 14 days that do not overlap: \
         {passed_again} after which the tests passed again soon, {kept_failing} after which they kept failing"
    );
    text
}
