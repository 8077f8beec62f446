//! `GET /projects/{projectId}/health`: every figure of every week from the results, and the verdicts of `assay analyze` as of
//! the end of each week.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::ProjectChecks;
use crate::{
    analyze,
    clock::{self, DAY},
    comparison::{ANY, Comparison, NUMBER},
    oracle::{self, Outcome},
    stack::Stack,
    world::{Run, Shard, is_failure},
};

const WEEK: i64 = 7 * DAY;
/// How long a suite counts after its newest run.
const FADES: i64 = 14 * DAY;

/// Checks the route.
pub fn health(comparison: &mut Comparison, stack: &Stack, checks: &ProjectChecks<'_>) {
    let path = checks.path(&["health"]);
    let sent = clock::now();
    let answer = checks.get(comparison, &path);
    let weeks = answer["weeks"].as_array().cloned().unwrap_or_default();
    let now = clock::parse(
        weeks
            .last()
            .map_or("", |week| week["to"].as_str().unwrap_or_default()),
    );
    let now = now.unwrap_or_default();
    comparison.holds((sent..=clock::now()).contains(&now), || {
        format!("GET {path}: the last week ends at {now}")
    });
    // The 5th of January 1970 was a Monday.
    let monday = (now - 4 * DAY).div_euclid(WEEK) * WEEK + 4 * DAY;
    let first = monday - (checks.organization.plan.retention() / 7 - 2) * WEEK;
    let oldest_first: Vec<&Run> = {
        let mut runs = oracle::visible(checks.project, checks.organization.plan, now);
        runs.retain(|run| run.started() >= first - WEEK);
        runs.reverse();
        runs
    };
    let seen = |from: i64| {
        oldest_first
            .iter()
            .any(|run| (from - WEEK..from + WEEK).contains(&run.started()))
    };
    let starts = (0..)
        .map(|week| first + week * WEEK)
        .take_while(|from| *from <= monday);
    let starts: Vec<i64> = starts.skip_while(|from| *from < monday && !seen(*from)).collect();
    let expected: Vec<Value> = starts
        .iter()
        .map(|from| {
            let to = now.min(from + WEEK);
            week(comparison, stack, checks, &oldest_first, (*from, to), now)
        })
        .collect();
    comparison.same(&format!("GET {path}: weeks"), &weeks.len(), &expected.len());
    for (week, expected) in weeks.iter().zip(&expected) {
        let what = format!("GET {path}: week from {}", week["from"]);
        comparison.matches(&what, week, expected);
    }
    suites(comparison, checks, &answer, (&oldest_first, &starts));
    // No project of the world has an owners file.
    let lost = |week: &Value| week["flakyLostMs"].clone();
    let owners = match &weeks[weeks.len() - 1]["tests"] {
        tests if tests["total"] == 0 && weeks.iter().all(|week| lost(week) == 0) => json!([]),
        tests => json!([{
            "owner": "unowned",
            "tests": tests,
            "flakyLostMs": weeks.iter().map(lost).collect::<Vec<_>>(),
        }]),
    };
    comparison.same(&format!("GET {path}: owners"), &answer["owners"], &owners);
    let sentence = answer["explanation"].as_str().unwrap_or_default();
    comparison.holds(
        (weeks.len() < 3) == sentence.starts_with("Two whole weeks"),
        || format!("GET {path}: {sentence:?} over {} weeks", weeks.len()),
    );
}

/// Whether all runs count as runs of the stable branch at the end of a week, because none of its window names a branch.
fn is_stable(checks: &ProjectChecks<'_>, oldest_first: &[&Run], week: (i64, i64), run: &Run) -> bool {
    let from = if week.1 - week.0 == WEEK {
        week.0 - WEEK
    } else {
        week.1 - FADES
    };
    let named = oldest_first
        .iter()
        .any(|run| (from..week.1).contains(&run.started()) && run.branch.is_some());
    !named || run.branch.as_deref() == Some(checks.project.stable.as_str())
}

fn is_complete(run: &Run) -> bool {
    !run.incomplete() && !run.shards.iter().any(Shard::interrupted)
}

/// Whether a suite of these runs is red at a time: of the runs that decide, the newest failed.
fn is_red(stable: &[&Run], time: i64) -> bool {
    let suites: BTreeSet<_> = stable.iter().map(|run| &run.suite).collect();
    suites.into_iter().any(|suite| {
        let before = || {
            let runs = stable.iter().rev();
            runs.filter(|run| run.suite == *suite && run.started() <= time)
        };
        let decided = before().find(|run| oracle::outcome(run) == Outcome::Failed || is_complete(run));
        let newest = before().next().map_or(0, |run| run.started());
        decided.is_some_and(|run| oracle::outcome(run) == Outcome::Failed) && time < newest + FADES
    })
}

fn week(
    comparison: &mut Comparison,
    stack: &Stack,
    checks: &ProjectChecks<'_>,
    oldest_first: &[&Run],
    (from, to): (i64, i64),
    now: i64,
) -> Value {
    let is_in = |run: &Run| (from..to).contains(&run.started()) || (to == now && run.started() == now);
    let runs: Vec<&Run> = oldest_first.iter().copied().filter(|run| is_in(run)).collect();
    let stable: Vec<&Run> = oldest_first
        .iter()
        .copied()
        .filter(|run| is_stable(checks, oldest_first, (from, to), run))
        .collect();
    // The times at which the branch may change its colour.
    let mut times: Vec<i64> = stable
        .iter()
        .flat_map(|run| [run.started(), run.started() + FADES])
        .chain([from, to])
        .filter(|time| *time <= to)
        .collect();
    times.sort_unstable();
    times.dedup();
    let mut red_ms = 0;
    let (mut began, mut in_week): (Option<i64>, i64) = (None, 0);
    let mut longest: Option<(i64, i64)> = None;
    let mut repairs = Vec::new();
    for (place, time) in times.iter().enumerate() {
        match (began, is_red(&stable, *time) && *time < to) {
            (None, true) => (began, in_week) = (Some(*time), 0),
            (Some(start), false) if *time < to => {
                if *time >= from && stable.iter().any(|run| run.started() == *time) {
                    repairs.push(time - start);
                }
                began = None;
            }
            _ => {}
        }
        let next = times.get(place + 1).copied().unwrap_or(to);
        if let Some(start) = began.filter(|_| *time >= from) {
            red_ms += next - time;
            in_week += next - time;
            if longest.is_none_or(|(_, ms)| in_week > ms) && in_week > 0 {
                longest = Some((start, in_week));
            }
        }
    }
    repairs.sort_unstable();
    let first_failed = |start: i64| {
        let failed = |run: &&&Run| run.started() == start && oracle::outcome(run) == Outcome::Failed;
        stable.iter().find(failed).expect("a run began it")
    };
    let longest = longest.map(|(start, ms)| {
        let run = first_failed(start);
        json!({"runId": run.id, "runNumber": run.number, "startedAt": clock::text(start), "redMs": ms})
    });
    let failed = runs
        .iter()
        .filter(|run| oracle::outcome(run) == Outcome::Failed)
        .count();
    let recovered = runs.iter().filter(|run| {
        let tests = run.tests();
        oracle::outcome(run) != Outcome::Failed && tests.iter().any(|test| test.recovered())
    });
    let judged_at = if to == now { now } else { to - 1 };
    let window: Vec<&Run> = oldest_first
        .iter()
        .copied()
        .filter(|run| (judged_at - FADES..=judged_at).contains(&run.started()))
        .collect();
    let verdicts = verdicts(comparison, stack, checks, &window, judged_at);
    let of = |status: &str| verdicts.values().filter(|verdict| *verdict == status).count();
    let mut lost: Vec<((String, Option<String>), i64)> = verdicts
        .iter()
        .filter(|(_, status)| *status == "flaky")
        .map(|(test, _)| {
            let results = runs
                .iter()
                .filter_map(|run| oracle::find(run, &test.0, test.1.as_deref()));
            let attempts = results
                .filter(|test| !test.skipped())
                .flat_map(|test| test.attempts);
            let failed = attempts.filter(|attempt| is_failure(attempt.status));
            (test.clone(), failed.filter_map(|attempt| attempt.duration).sum())
        })
        .collect();
    lost.sort_by_key(|(_, ms)| -ms);
    // An analysis takes every run as complete, so it takes a test that a missing shard has as removed.
    let of_verdicts = match window.iter().all(|run| is_complete(run)) {
        true => {
            [
                json!({
                    "total": verdicts.len(),
                    "broken": of("broken"),
                    "failing": of("failing"),
                    "flaky": of("flaky"),
                    "healthy": of("healthy"),
                    "insufficientData": of("insufficient_data"),
                }),
                json!(lost.iter().map(|(_, ms)| ms).sum::<i64>()),
                json!(lost.first().filter(|(_, ms)| *ms > 0).map(|(test, ms)| {
                    json!({"test": {"name": test.0, "filePath": test.1}, "lostMs": ms})
                })),
            ]
        }
        false => [
            json!({
                "total": verdicts.len(), "broken": NUMBER, "failing": NUMBER, "flaky": NUMBER, "healthy": NUMBER,
                "insufficientData": NUMBER,
            }),
            json!(NUMBER),
            json!(ANY),
        ],
    };
    let [tests, flaky_lost_ms, most_lost] = of_verdicts;
    json!({
        "from": clock::text(from),
        "to": clock::text(to),
        "redMs": red_ms,
        "longestRed": longest,
        "repairs": repairs.len(),
        "timeToGreenMs": repairs.get(repairs.len().saturating_sub(1) / 2),
        "runs": {"total": runs.len(), "failed": failed, "recovered": recovered.count()},
        "tests": tests,
        "flakyLostMs": flaky_lost_ms,
        "mostLost": most_lost,
    })
}

/// The status of each test of a window as of a time.
fn verdicts(
    comparison: &mut Comparison,
    stack: &Stack,
    checks: &ProjectChecks<'_>,
    window: &[&Run],
    at: i64,
) -> BTreeMap<(String, Option<String>), String> {
    if window.is_empty() {
        return BTreeMap::new();
    }
    let answer = analyze::analysis(comparison, stack, checks, window, &clock::text(at)).unwrap_or_default();
    let tests = answer["tests"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let status = |test: &Value| {
        let key = (
            text(&test["testName"]).unwrap_or_default(),
            text(&test["filePath"]),
        );
        (key, text(&test["status"]).unwrap_or_default())
    };
    tests.map(status).collect()
}

fn suites(
    comparison: &mut Comparison,
    checks: &ProjectChecks<'_>,
    answer: &Value,
    (oldest_first, starts): (&[&Run], &[i64]),
) {
    let path = checks.path(&["health"]);
    let names: BTreeSet<String> = oldest_first
        .iter()
        .map(|run| run.suite.clone().unwrap_or_default())
        .collect();
    let listed: BTreeMap<String, &Value> = answer["suites"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|suite| {
            (
                suite["suite"].as_str().unwrap_or_default().to_owned(),
                &suite["weeks"],
            )
        })
        .collect();
    for name in names {
        let of_week = |from: &i64| {
            let to = from + WEEK;
            let is_counted = |run: &&&Run| {
                (*from..to).contains(&run.started())
                    && run.suite.clone().unwrap_or_default() == name
                    && is_complete(run)
                    && is_stable(checks, oldest_first, (*from, to), run)
            };
            let runs: Vec<&&Run> = oldest_first.iter().filter(is_counted).collect();
            let mut times: Vec<i64> = runs.iter().map(|run| run.ran_ms()).collect();
            let mut tests: Vec<usize> = runs.iter().map(|run| run.tests().len()).collect();
            times.sort_unstable();
            tests.sort_unstable();
            let last = runs.len().saturating_sub(1);
            let p95 = (runs.len() * 95).div_ceil(100).saturating_sub(1);
            json!({
                "runs": runs.len(),
                "tests": tests.get(last / 2),
                "p50Ms": times.get(last / 2),
                "p95Ms": times.get(p95),
            })
        };
        let expected: Vec<Value> = starts.iter().map(of_week).collect();
        let runs: i64 = expected.iter().filter_map(|week| week["runs"].as_i64()).sum();
        let what = format!("GET {path}: suite {name:?}");
        match listed.get(&name) {
            Some(weeks) => _ = comparison.same(&what, weeks, &&json!(expected)),
            None => _ = comparison.holds(runs == 0, || what.clone()),
        }
    }
}
