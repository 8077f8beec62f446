//! `GET /projects/{projectId}/releases/{branchName}`, for every branch of the world.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{List, ProjectChecks, all_pages, test_key, verdicts::Verdicts};
use crate::{
    comparison::Comparison,
    oracle::{self, Outcome},
    world::{Run, Shard},
};

type Test = (String, Option<String>);

/// The runs of each suite on a branch, the oldest revision first.
type Suites<'a> = BTreeMap<&'a Option<String>, Vec<&'a Run>>;

/// Checks the answer for each branch with a run in the window.
pub fn releases(comparison: &mut Comparison, checks: &ProjectChecks<'_>, verdicts: &Verdicts) {
    let window = oracle::within(checks.project, 14, checks.now);
    let stable_name = checks.project.stable.as_str();
    let mut branches: BTreeSet<&str> = window.iter().filter_map(|run| run.branch.as_deref()).collect();
    let is_named = !branches.is_empty();
    branches.insert(stable_name);
    let suites = |branch: &str| {
        let is_on = |run: &&&Run| run.branch.as_deref() == Some(branch) || branch == stable_name && !is_named;
        suites(&window, is_on)
    };
    let stable = suites(stable_name);
    let on_stable = failing(&stable);
    for branch in branches {
        let own = suites(branch);
        if own.is_empty() {
            continue;
        }
        let failing = failing(&own);
        let path = checks.path(&["releases", branch]);
        let list = List {
            field: "tests",
            sort: "",
            key: test_key,
        };
        let entries = all_pages(comparison, checks, &path, &list, failing.len());
        let there_only = |test: &Test| branch == stable_name || !on_stable.contains_key(test);
        let status = |test: &Test| verdicts.get(test).map(|verdict| verdict["status"].clone());
        let answer = checks.get(comparison, &path);
        let missing: Vec<String> = stable
            .keys()
            .filter(|suite| !own.contains_key(*suite))
            .map(|suite| (*suite).clone().unwrap_or_default())
            .collect();
        let only = failing.keys().filter(|test| there_only(test));
        let flaky = only.clone().filter(|test| status(test) == Some(json!("flaky")));
        let is_sound = |runs: &Vec<&Run>| {
            let newest = runs.last().expect("a suite has a run");
            is_complete(newest)
                && (oracle::outcome(newest) != Outcome::Failed
                    || newest.tests().iter().any(|test| test.failed()))
        };
        let is_whole = |(suite, runs): (&&Option<String>, &Vec<&Run>)| {
            is_whole(runs, stable.get(*suite).map(Vec::as_slice).unwrap_or_default())
        };
        let word = match (
            only.clone().count(),
            missing.is_empty() && own.values().all(is_sound) && own.iter().all(is_whole),
        ) {
            (0, true) => "yes",
            (0, false) => "unknown",
            (_, _) => "no",
        };
        let expected = json!({
            "answer": word,
            "failingThereOnly": only.clone().count(),
            "flakyThereOnly": flaky.count(),
            "missingSuites": missing,
        });
        comparison.matches(&format!("GET {path}"), &answer, &expected);
        comparison.same(
            &format!("GET {path}: state.failing"),
            &answer["state"]["failing"].as_u64(),
            &u64::try_from(failing.len()).ok(),
        );
        let listed: Vec<Value> = entries
            .iter()
            .map(|entry| {
                json!([
                    entry["testName"],
                    entry["filePath"],
                    entry["failsOnStable"],
                    entry["failingSince"]["runNumber"],
                    entry["status"]
                ])
            })
            .collect();
        let mut expected: Vec<(bool, i64, i64, &Test)> = failing
            .iter()
            .map(|(test, since)| (!there_only(test), -since.started(), -since.number, test))
            .collect();
        expected.sort_unstable();
        let expected: Vec<Value> = expected
            .into_iter()
            .map(|(.., number, test)| {
                json!([
                    test.0,
                    test.1,
                    on_stable.contains_key(test),
                    -number,
                    status(test)
                ])
            })
            .collect();
        comparison.same(&format!("GET {path}: tests"), &listed, &expected);
    }
}

/// Whether the newest complete run ran half of the usual tests, and each test of the stable branch that failed last.
fn is_whole(runs: &[&Run], stable: &[&Run]) -> bool {
    let complete = |runs: &[&'_ Run]| -> Vec<Run> {
        runs.iter()
            .filter(|run| is_complete(run))
            .map(|run| (*run).clone())
            .collect()
    };
    let (runs, stable) = (complete(runs), complete(stable));
    let Some((newest, earlier)) = runs.split_last() else {
        return true;
    };
    let ran = |run: &Run| {
        oracle::tests_of(&[run])
            .into_iter()
            .filter(|(name, file)| {
                !oracle::find(run, name, file.as_deref())
                    .expect("a test of the run")
                    .skipped()
            })
            .count()
    };
    let usual = earlier.iter().chain(stable.last()).map(ran).max().unwrap_or(0);
    let failed_last = |(name, file): &Test| {
        let mut results = earlier
            .iter()
            .rev()
            .filter_map(|run| oracle::find(run, name, file.as_deref()));
        results
            .find(|test| !test.skipped())
            .is_some_and(|test| test.failed())
    };
    let of_stable = stable
        .last()
        .map(|run| oracle::tests_of(&[run]))
        .unwrap_or_default();
    let ran_in = |run: &Run, (name, file): &Test| {
        let found = oracle::find(run, name, file.as_deref());
        found.is_some_and(|test| !test.skipped())
    };
    let not_run = |test: &&Test| stable.last().is_some_and(|run| ran_in(run, test)) && !ran_in(newest, test);
    ran(newest) * 2 >= usual && !of_stable.iter().filter(not_run).any(failed_last)
}

fn suites<'a>(window: &[&'a Run], is_on: impl Fn(&&&'a Run) -> bool) -> Suites<'a> {
    let revision = |run: &Run| run.tested_revision.clone().or(run.commit.clone());
    let own = |run: &Run| (run.started(), run.number);
    // The start of the first run of a revision, on any branch.
    let first = |run: &Run| match revision(run) {
        None => own(run),
        known => {
            let same = window.iter().filter(|other| revision(other) == known);
            same.map(|other| own(other)).min().expect("the run itself")
        }
    };
    // A whole run in which no test ran shows no state.
    let is_empty = |run: &Run| {
        let ran_none = run.tests().iter().all(|test| test.skipped());
        is_complete(run) && ran_none && oracle::outcome(run) != Outcome::Failed
    };
    let counted = window.iter().filter(|run| is_on(run) && !is_empty(run));
    let mut runs: Vec<&Run> = counted.copied().collect();
    runs.sort_by_key(|run| (first(run), own(run)));
    let mut suites = Suites::new();
    for run in runs {
        suites.entry(&run.suite).or_default().push(run);
    }
    suites
}

fn is_complete(run: &Run) -> bool {
    !run.incomplete() && !run.shards.iter().any(Shard::interrupted)
}

/// The failing tests of these suites, each with the first run since which every result failed.
fn failing<'a>(suites: &Suites<'a>) -> BTreeMap<Test, &'a Run> {
    let mut failing: BTreeMap<Test, &Run> = BTreeMap::new();
    for runs in suites.values() {
        let decides = runs
            .iter()
            .rposition(|run| is_complete(run))
            .unwrap_or(runs.len() - 1);
        for (name, file) in oracle::tests_of(&runs[decides..]) {
            let results: Vec<(usize, bool)> = runs
                .iter()
                .enumerate()
                .filter_map(|(place, run)| Some((place, oracle::find(run, &name, file.as_deref())?)))
                .filter(|(_, test)| !test.skipped())
                .map(|(place, test)| (place, test.failed()))
                .collect();
            let streak = results.iter().rev().take_while(|(_, failed)| *failed);
            let is_new = results.last().is_some_and(|(place, _)| *place >= decides);
            if let Some((since, _)) = streak.last().filter(|_| is_new) {
                let run = runs[*since];
                let oldest = failing.entry((name, file)).or_insert(run);
                if (run.started(), run.number) < (oldest.started(), oldest.number) {
                    *oldest = run;
                }
            }
        }
    }
    failing
}
