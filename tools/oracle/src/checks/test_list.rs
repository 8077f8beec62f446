//! `GET /projects/{projectId}/tests`: every figure from the results, and the verdict as stored.

use serde_json::{Value, json};

use super::{
    ProjectChecks, listed_tests, test_key,
    verdicts::{Verdicts, count},
};
use crate::{
    clock,
    comparison::{Comparison, NUMBER},
    http::escape,
    oracle,
    texts::folded,
    world::{ExpectedTest, Run, Shard, is_failure},
};

/// Most runs of a suite whose durations count.
const TIMED_RUNS: usize = 30;

type Key = (String, Option<String>);

/// Checks the list in every order, with filters and on pages of every size.
pub fn test_list(comparison: &mut Comparison, checks: &ProjectChecks<'_>, verdicts: &Verdicts) {
    let base = checks.path(&["tests"]);
    let window = oracle::within(checks.project, 14, checks.now);
    let tests = oracle::tests_of(&window);
    let entries = listed_tests(comparison, checks, &base, "verdict", tests.len());
    let mut keys: Vec<Key> = entries.iter().map(test_key).collect();
    keys.sort();
    comparison.same(&format!("GET {base}: tests"), &keys, &tests);
    for listed in &entries {
        entry(comparison, checks, &window, listed, verdicts);
    }
    let of = |status: &str| entries.iter().filter(|entry| entry["status"] == status).count();
    let answer = checks.get(comparison, &base);
    comparison.same(
        &format!("GET {base}: counts"),
        &answer["counts"],
        &json!({
            "total": entries.len(),
            "broken": of("broken"),
            "failing": of("failing"),
            "flaky": of("flaky"),
            "healthy": of("healthy"),
            "insufficientData": of("insufficient_data"),
        }),
    );
    orders(comparison, checks, &entries);
    filters(comparison, checks, &window, &entries);
}

/// The letter of a result.
fn letter(test: &ExpectedTest) -> char {
    match (test.skipped(), test.recovered(), test.failed()) {
        (true, ..) => 'S',
        (_, true, _) => 'R',
        (.., true) => 'F',
        _ => 'P',
    }
}

fn newest(oldest_first: impl Iterator<Item = char>, most: usize) -> String {
    let letters: Vec<char> = oldest_first.collect();
    letters[letters.len().saturating_sub(most)..].iter().collect()
}

fn variant(run: &Run) -> String {
    run.suite.clone().unwrap_or_else(|| "(default)".to_owned())
}

fn entry(
    comparison: &mut Comparison,
    checks: &ProjectChecks<'_>,
    window: &[&Run],
    listed: &Value,
    verdicts: &Verdicts,
) {
    let (name, file) = test_key(listed);
    let what = format!("GET {}: {name} in {file:?}", checks.path(&["tests"]));
    let no_branch = window.iter().all(|run| run.branch.is_none());
    let is_stable = |run: &Run| no_branch || run.branch.as_deref() == Some(checks.project.stable.as_str());
    let results: Vec<(&Run, ExpectedTest)> = window
        .iter()
        .rev()
        .filter_map(|run| Some((*run, oracle::find(run, &name, file.as_deref())?)))
        .collect();
    let tests: Vec<ExpectedTest> = results.iter().map(|(_, test)| test.clone()).collect();
    let has_failure = |test: &ExpectedTest| {
        !test.skipped() && test.attempts.iter().any(|attempt| is_failure(attempt.status))
    };
    let mut failures = results
        .iter()
        .filter(|(_, test)| has_failure(test))
        .map(|(run, _)| clock::text(run.started()));
    let mut variants: Vec<String> = results.iter().map(|(run, _)| variant(run)).collect();
    variants.sort();
    variants.dedup();
    let (p50, p95) = durations(&results, window, &is_stable);
    let on_stable = results.iter().filter(|(run, _)| is_stable(run));
    let figures = count(checks, &name, file.as_deref());
    comparison.matches(
        &what,
        listed,
        &json!({
            "runs": oracle::counts(&tests),
            "newestResults": newest(tests.iter().map(letter), 24),
            "stableResults": newest(on_stable.map(|(_, test)| letter(test)), 20),
            "variants": variants,
            "firstSeenAt": results.first().map(|(run, _)| clock::text(run.started())),
            "firstFailedAt": failures.next(),
            "lastSeenAt": figures.last.as_ref().map(|(_, seen)| seen),
            "lastRun": figures.last.as_ref().map(|(run, _)| run),
            "runsInWindow": figures.runs.len(),
            "failureStreak": figures.streak,
            "timeLostMs": figures.time_lost,
            "p50Ms": p50,
            "p95Ms": p95,
            "flakeScore": NUMBER,
        }),
    );
    let last = results.iter().rev().find(|(_, test)| has_failure(test));
    comparison.same(
        &format!("{what}: lastFailedAt"),
        &listed["lastFailedAt"],
        &json!(last.map(|(run, _)| clock::text(run.started()))),
    );
    interval(comparison, &what, listed);
    let Some(stored) = verdicts.get(&(name, file)) else {
        return;
    };
    if stored["awaitingFirstWrite"] == true {
        return;
    }
    for field in [
        "status",
        "statusReason",
        "failingOn",
        "runsConsidered",
        "failureRate",
        "flipRate",
    ] {
        comparison.matches(
            &format!("{what}: {field} as stored"),
            &listed[field],
            &stored[field],
        );
    }
}

/// The median and the 95th percentile of the passes at the first attempt in the newest complete runs of each suite.
fn durations(
    results: &[(&Run, ExpectedTest)],
    window: &[&Run],
    is_stable: &dyn Fn(&Run) -> bool,
) -> (Option<i64>, Option<i64>) {
    let is_timed = |run: &Run| {
        let whole =
            |run: &&&Run| is_stable(run) && !run.incomplete() && !run.shards.iter().any(Shard::interrupted);
        let of_suite = window
            .iter()
            .filter(whole)
            .filter(|other| other.suite == run.suite);
        of_suite.take(TIMED_RUNS).any(|timed| timed.number == run.number)
    };
    let green = |test: &ExpectedTest| test.status() == "passed" && test.max_attempts() == 1;
    let mut durations: Vec<i64> = results
        .iter()
        .filter(|(run, test)| is_timed(run) && green(test))
        .filter_map(|(_, test)| test.last().duration)
        .collect();
    durations.sort_unstable();
    let at = |percent: usize| {
        let place = (durations.len() * percent).div_ceil(100).checked_sub(1)?;
        durations.get(place).copied()
    };
    (at(50), at(95))
}

/// The interval is where the distance to the rate is 1.96 standard errors at its ends.
fn interval(comparison: &mut Comparison, what: &str, listed: &Value) {
    let Some(rate) = listed["failureRate"].as_f64() else {
        comparison.same(what, &listed["failureRateInterval"], &Value::Null);
        return;
    };
    let runs = listed["runsConsidered"].as_f64().unwrap_or_default();
    for end in ["low", "high"] {
        let end = listed["failureRateInterval"][end].as_f64().unwrap_or(-1.0);
        let error = (end * (1.0 - end) / runs).sqrt();
        let distance = (end - rate).abs();
        comparison.holds((distance - 1.96 * error).abs() < 1e-6, || {
            format!("{what}: {end} is no end of the interval of {rate} in {runs} runs")
        });
    }
}

fn orders(comparison: &mut Comparison, checks: &ProjectChecks<'_>, entries: &[Value]) {
    for (sort, field) in [
        ("timeLost", "timeLostMs"),
        ("score", "flakeScore"),
        ("rate", "failureRate"),
        ("impact", "impact"),
        ("name", ""),
    ] {
        let query = format!("{}?sort={sort}", checks.path(&["tests"]));
        let sorted = listed_tests(comparison, checks, &query, sort, entries.len());
        let inverse = |value: &Value| -value.as_f64().unwrap_or(f64::NEG_INFINITY);
        let rank = |entry: &Value| match field {
            "" => (0.0, 0.0, test_key(entry)),
            field => (
                inverse(&entry[field]),
                inverse(&entry["flakeScore"]),
                test_key(entry),
            ),
        };
        for pair in sorted.windows(2) {
            comparison.holds(rank(&pair[0]) <= rank(&pair[1]), || {
                format!(
                    "GET {query}: {:?} comes before {:?}",
                    rank(&pair[0]),
                    rank(&pair[1])
                )
            });
        }
    }
}

fn filters(comparison: &mut Comparison, checks: &ProjectChecks<'_>, window: &[&Run], entries: &[Value]) {
    let base = checks.path(&["tests"]);
    let mut check = |query: String, is_selected: &dyn Fn(&Value) -> bool| {
        let wanted: Vec<Key> = entries
            .iter()
            .filter(|entry| is_selected(entry))
            .map(test_key)
            .collect();
        let path = format!("{base}?{query}");
        let got = listed_tests(comparison, checks, &path, "verdict", wanted.len());
        comparison.same(
            &format!("GET {path}"),
            &got.iter().map(test_key).collect::<Vec<_>>(),
            &wanted,
        );
    };
    for status in ["broken", "failing", "flaky", "healthy", "insufficient_data"] {
        check(format!("status={status}"), &|entry| entry["status"] == status);
    }
    for needle in ["SPEC.TS", "does step", "no such test", "%", "日本"] {
        let low = folded(needle);
        let holds = |text: &Value| folded(text.as_str().unwrap_or_default()).contains(&low);
        check(format!("search={}", escape(needle)), &|entry| {
            holds(&entry["testName"]) || holds(&entry["filePath"])
        });
        check(format!("file={}", escape(needle)), &|entry| {
            holds(&entry["filePath"])
        });
    }
    check("red=true".to_owned(), &|entry| entry["failingSince"].is_object());
    check("owner=unowned".to_owned(), &|entry| entry["owners"] == json!([]));
    let failed_in = |entry: &Value, is_selected: &dyn Fn(&Run) -> bool| {
        let (name, file) = test_key(entry);
        window.iter().filter(|run| is_selected(run)).any(|run| {
            let test = oracle::find(run, &name, file.as_deref());
            test.is_some_and(|test| "RF".contains(letter(&test)))
        })
    };
    let stable = checks.project.stable.as_str();
    check(format!("branch={}", escape(stable)), &|entry| {
        failed_in(entry, &|run| run.branch.as_deref() == Some(stable))
    });
    if let Some(run) = window.first() {
        let chosen = variant(run);
        check(format!("variant={}", escape(&chosen)), &|entry| {
            failed_in(entry, &|run| variant(run) == chosen)
        });
    }
}
