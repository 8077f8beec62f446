//! Evaluates the gate with reruns on the pull requests of Node.js, into which breakages are planted.
//!
//! What the reports do not tell is assumed:
//! - Each run that a report covers is a run of a pull request, at a revision of its own. There is no stable branch.
//! - The suite has as many tests as the largest number of a test in the examples. Each of them ran in every run, and
//!   passed unless a report lists it. A report lists one run of a pull request for each test, so the failure of an
//!   earlier run of the same day may be missing.
//! - A failure has the text of the example in the first report that lists it. The example comes from one of the listed
//!   runs. Successive examples of a test have the same error in four of five cases.
//! - No pull request broke a test that a report lists, because it failed in two or more of them. What its reruns do
//!   follows from the other failures around it ([`innocent_cause`]).
//! - A planted breakage stays in all later runs of its pull request.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use assay_flakiness::domain::{
    cause::Cause,
    observation::RunFacts,
    timestamp::{DAY_MS, Timestamp},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    breakage::{Breakage, Texts},
    causes::{BranchRun, COUNTED_FROM, CausesWorld},
    node::{self, NodeHistory, NodeRun},
    reruns::{BUDGET_S, Score},
    runs::DAYS,
};

/// The share of runs that break something, if their pull request has not done so before. A fifth of the failed runs then
/// has a breakage, as in simulated projects.
const BREAKS: f64 = 0.06;
/// From this number of failed tests in a run on, they have one cause, such as a bad machine.
const MANY: usize = 12;
/// The number of failed runs on either side of a run that show whether a test fails for a lasting reason.
const NEIGHBOURS: usize = 12;

/// A run with its planted breakages.
struct PlannedRun<'h> {
    reported: &'h NodeRun,
    run: BranchRun,
    /// The failed tests, each with its cause and its text.
    causes: BTreeMap<u32, (Cause, Option<u32>)>,
}

/// The tables of a folder of reports over these seeds.
pub(crate) fn table(folder: &Path, seeds: &[u64]) -> anyhow::Result<String> {
    let history = node::read(folder)?;
    let mut score = Score::default();
    for seed in seeds {
        let planned = plan(&history, &mut StdRng::seed_from_u64(*seed));
        for (world, period) in worlds(history.tests, &planned).iter_mut().zip(0..) {
            // Each period has reruns of its own.
            score.judge(world, seed.wrapping_mul(1_000).wrapping_add(period), BUDGET_S);
        }
    }
    Ok(score.table())
}

/// Plants the breakages and draws which tests they fail.
fn plan<'h>(history: &'h NodeHistory, random: &mut StdRng) -> Vec<PlannedRun<'h>> {
    let first = history.runs.first().map(|run| run.started_at);
    let lasting = lasting_failures(&history.runs);
    let mut texts = Texts::after(history.texts);
    // The runs of each pull request so far, and its breakage.
    let mut pull_requests: BTreeMap<u32, (u32, Option<Breakage>)> = BTreeMap::new();
    let planned = history.runs.iter().map(|reported| {
        let (revision, broken) = pull_requests.entry(reported.pull_request).or_default();
        *revision += 1;
        if broken.is_none() && random.random_bool(BREAKS) {
            *broken = Some(Breakage::new(*revision, history.tests, &mut texts, random));
        }
        let at = days(first.unwrap_or(reported.started_at), reported.started_at);
        let run = BranchRun {
            own: broken.iter().cloned().collect(),
            outage: (reported.failed.len() >= MANY).then_some((1.0, history.texts)),
            ..BranchRun::new(at, reported.pull_request, *revision)
        };
        let innocent = reported.failed.iter();
        let mut causes: BTreeMap<u32, (Cause, Option<u32>)> = innocent
            .map(|(test, text)| (*test, (innocent_cause(reported, *test, &lasting), *text)))
            .collect();
        for broken in &run.own {
            for (test, (rate, text)) in &broken.tests {
                if random.random_bool(*rate) {
                    causes.insert(*test, (run.cause_by(broken), Some(*text)));
                }
            }
        }
        PlannedRun {
            reported,
            run,
            causes,
        }
    });
    planned.collect()
}

/// The cause of a failure in a report, which decides what the reruns do. A lasting failure fails again. One of many in a
/// run fails again while its machine is bad. Any other is a flake.
fn innocent_cause(run: &NodeRun, test: u32, lasting: &BTreeSet<(u32, u32)>) -> Cause {
    match (lasting.contains(&(run.number, test)), run.failed.len() >= MANY) {
        (true, _) => Cause::BrokenBefore,
        (false, true) => Cause::Environment,
        (false, false) => Cause::Flake,
    }
}

/// The failures, by run and test, whose test also failed in half of the [`NEIGHBOURS`] of their run.
fn lasting_failures(runs: &[NodeRun]) -> BTreeSet<(u32, u32)> {
    let failed: Vec<&NodeRun> = runs.iter().filter(|run| !run.failed.is_empty()).collect();
    let mut lasting = BTreeSet::new();
    for (place, run) in failed.iter().enumerate() {
        let from = place.saturating_sub(NEIGHBOURS);
        let around = || failed.iter().take(place + NEIGHBOURS + 1).skip(from);
        for test in run.failed.keys() {
            let others =
                around().filter(|other| other.number != run.number && other.failed.contains_key(test));
            if others.count() >= NEIGHBOURS {
                lasting.insert((run.number, *test));
            }
        }
    }
    lasting
}

/// Cuts the runs into overlapping periods of four weeks. The later two weeks of each are judged, so every run is judged
/// at most once, and with a full window.
fn worlds(tests: u32, planned: &[PlannedRun<'_>]) -> Vec<CausesWorld> {
    let last = planned.last().map_or(0.0, |planned| planned.run.at);
    let mut worlds = Vec::new();
    let mut from = 0.0;
    while from + COUNTED_FROM <= last {
        let in_period = planned
            .iter()
            .filter(|planned| (from..from + DAYS).contains(&planned.run.at));
        worlds.push(world(tests, from, in_period));
        from += COUNTED_FROM;
    }
    worlds
}

fn world<'p>(tests: u32, from: f64, planned: impl Iterator<Item = &'p PlannedRun<'p>>) -> CausesWorld {
    let mut world = CausesWorld::empty(tests);
    for planned in planned {
        let reported = planned.reported;
        let facts = RunFacts {
            id: format!("run-{}", reported.number).into(),
            number: i32::try_from(reported.number).unwrap_or(i32::MAX),
            started_at: reported.started_at,
            revision: Some(format!("revision-{}", reported.number).into()),
            branch: Some(format!("pull-request-{}", reported.pull_request).into()),
            ..RunFacts::default()
        };
        let run = BranchRun {
            at: planned.run.at - from,
            ..planned.run.clone()
        };
        let failures = planned.causes.iter();
        world.add(
            run,
            facts,
            failures.map(|(test, (cause, text))| (*test, *cause, *text)),
        );
    }
    world
}

#[expect(clippy::as_conversions, reason = "a few years in milliseconds fit")]
fn days(from: Timestamp, to: Timestamp) -> f64 {
    to.since_ms(from) as f64 / DAY_MS as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tests::report;

    fn run(number: u32, failed: impl IntoIterator<Item = u32>) -> NodeRun {
        NodeRun {
            number,
            started_at: Timestamp::from_unix_ms(0),
            pull_request: number,
            failed: failed.into_iter().map(|test| (test, None)).collect(),
        }
    }

    #[test]
    fn a_failure_lasts_if_half_of_the_neighbours_have_it_and_many_in_one_run_have_one_cause() {
        let mut runs: Vec<NodeRun> = (0..40).map(|number| run(number, [0])).collect();
        runs.push(run(40, 1..20));
        runs.push(run(41, [30]));
        let lasting = lasting_failures(&runs);
        let cause = |run: usize, test| innocent_cause(&runs[run], test, &lasting);
        assert_eq!(cause(20, 0), Cause::BrokenBefore);
        assert_eq!(cause(40, 1), Cause::Environment);
        assert_eq!(cause(41, 30), Cause::Flake);
    }

    /// The number in the second column of the row that begins so.
    fn number(table: &str, row: &str) -> u32 {
        let row = table.lines().find_map(|line| line.strip_prefix(row)).unwrap();
        row.trim_start_matches(" | ")
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }

    #[test]
    fn reports_become_a_table_of_innocent_runs_and_of_planted_breakages() {
        let folder = tempfile::tempdir().unwrap();
        for day in 1..=28_u32 {
            let first = 1_000 + 10 * day;
            let failed = [(day, first + 2), (day + 100, first + 5)];
            let test = format!("parallel/test-{}", day % 3);
            let text = report(
                (first, first + 9),
                &format!("2026-02-{day:02} 00:10"),
                &test,
                &failed,
            );
            let text = text.replace("not ok 4100", "not ok 80");
            std::fs::write(folder.path().join(format!("2026-02-{day:02}.md")), text).unwrap();
        }
        let table = |seed| table(folder.path(), &[seed]).unwrap();
        let text = table(7);
        let (own, innocent) = (
            number(&text, "| own breakage, with reruns"),
            number(&text, "| none, with reruns"),
        );
        assert!((1..30).contains(&own) && (15..=28).contains(&innocent), "{text}");
        assert_eq!(text, table(7));
        assert_ne!(text, table(8));
    }
}
