//! Files of which nothing ran.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use assay_domain::{
    observation::{History, RunObservations},
    test::TestOrdinal,
};

use super::base::{LAST_RUNS, stable_before};

/// Most files of a list.
const MOST_FILES: usize = 50;

/// The first 50 files of which no test ran in the complete run of this number, although tests of them ran in nine of ten of
/// the last complete runs of its suite: of the stable branch, which needs ten, and of other branches. A suite whose changes
/// run a selection has none.
pub fn files_not_run<'a>(
    history: &History,
    number: i32,
    file_of: impl Fn(TestOrdinal) -> Option<&'a str>,
) -> Vec<String> {
    let is_run = |observed: &&RunObservations| observed.run.number == number && observed.ending.complete;
    let mut files = BTreeSet::new();
    for run in history.runs.iter().filter(is_run) {
        let (stable, others) = last_runs(history, run);
        let Some(base) = stable.first().filter(|_| stable.len() == LAST_RUNS) else {
            continue;
        };
        let ran: BTreeSet<&str> = ran_in(run).filter_map(&file_of).collect();
        let mut tests_of: BTreeMap<&str, Vec<TestOrdinal>> = BTreeMap::new();
        for test in ran_in(base) {
            if let Some(file) = file_of(test).filter(|file| !ran.contains(file)) {
                tests_of.entry(file).or_default().push(test);
            }
        }
        let missing = tests_of
            .iter()
            .filter(|(_, tests)| usually_ran(&stable, tests) && usually_ran(&others, tests));
        files.extend(missing.map(|(file, _)| (*file).to_owned()));
    }
    files.into_iter().take(MOST_FILES).collect()
}

/// The last complete runs of a run's suite before it, of the stable branch and of other branches.
fn last_runs<'a>(
    history: &'a History,
    run: &RunObservations,
) -> (Vec<&'a RunObservations>, Vec<&'a RunObservations>) {
    let stable = history.stable();
    let of_stable = stable_before(history, run, stable)
        .into_iter()
        .map(|(_, observed)| observed);
    let started = |observed: &RunObservations| (observed.run.started_at, observed.run.number);
    let is_other = |other: &&RunObservations| {
        other.run.variant == run.run.variant
            && other.run.branch != run.run.branch
            && !stable.is(other.run.branch.as_deref())
            && started(other) < started(run)
    };
    let mut others: Vec<_> = history.runs.iter().filter(is_other).collect();
    others.sort_by_key(|other| Reverse(started(other)));
    let is_complete = |observed: &&RunObservations| observed.ending.complete;
    (
        of_stable.filter(is_complete).take(LAST_RUNS).collect(),
        others.into_iter().filter(is_complete).take(LAST_RUNS).collect(),
    )
}

fn ran_in(run: &RunObservations) -> impl Iterator<Item = TestOrdinal> {
    run.present.iter().filter(|test| run.ran(*test))
}

/// Whether one of the tests ran in at least nine of ten of these runs.
fn usually_ran(runs: &[&RunObservations], tests: &[TestOrdinal]) -> bool {
    let ran = runs.iter().filter(|run| tests.iter().any(|test| run.ran(*test)));
    ran.count() * 10 >= runs.len() * 9
}

#[cfg(test)]
mod tests {
    use assay_domain::observation::RunFacts;

    use super::*;

    const FILES: [&str; 3] = ["a.js", "b.js", "b.js"];

    fn run(number: i32, branch: &str, ran: &[TestOrdinal]) -> RunObservations {
        let mut run = RunObservations::of(RunFacts {
            number,
            started_at: assay_domain::timestamp::Timestamp::from_unix_ms(i64::from(number) * 60_000),
            branch: Some(branch.into()),
            ..RunFacts::default()
        });
        run.present.insert_all(&[0, 1, 2].into_iter().collect());
        run.skipped = [0, 1, 2].into_iter().filter(|test| !ran.contains(test)).collect();
        run
    }

    #[test]
    fn a_file_is_not_run_if_it_ran_in_nearly_all_runs_of_the_suite() {
        let stable = (1..=10).map(|number| run(number, "main", &[0, 1, 2]));
        let mut history = History {
            stable_branch: "main".into(),
            tests: 3,
            runs: stable.collect(),
        };
        let listed = |history: &History, last: RunObservations| {
            let mut history = history.clone();
            history.runs.push(last);
            files_not_run(&history, 100, |test| {
                FILES.get(usize::try_from(test).unwrap()).copied()
            })
        };
        assert_eq!(listed(&history, run(100, "change", &[0])), ["b.js"]);
        // One of its tests ran; the run lacks a part.
        assert!(listed(&history, run(100, "change", &[0, 2])).is_empty());
        let mut incomplete = run(100, "change", &[0]);
        incomplete.ending.complete = false;
        assert!(listed(&history, incomplete).is_empty());
        // Another branch runs a selection; an earlier push of this one did not load the file.
        history.runs.push(run(11, "change", &[0]));
        assert_eq!(listed(&history, run(100, "change", &[0])), ["b.js"]);
        history.runs.push(run(12, "other", &[0]));
        assert!(listed(&history, run(100, "change", &[0])).is_empty());
        // Nine runs of the stable branch are too few.
        history.runs.remove(0);
        history.runs.pop();
        assert!(listed(&history, run(100, "change", &[0])).is_empty());
    }
}
