//! What usually runs and did not run.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use assay_domain::{
    observation::{History, RunObservations},
    test::{TestName, TestOrdinal},
};
use serde::{Deserialize, Serialize};

use super::base::{LAST_RUNS, stable_before};

/// Most files and tests of a list.
const MOST: usize = 50;

/// What did not run in a complete run, although it did in nine of ten of the last complete runs of the suite: of the stable
/// branch, which needs ten, and of other branches. A suite whose changes run a selection has nothing of this.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NotRun {
    /// Files of which no test ran: the first 50.
    #[cfg_attr(feature = "openapi", schema(max_items = 50))]
    pub files: Vec<String>,
    /// Classes and modules, of tests without a file, of which no test ran: the first 50.
    #[cfg_attr(feature = "openapi", schema(max_items = 50))]
    pub classes: Vec<String>,
    /// Skipped tests of other files and classes that usually pass: the first 50.
    #[cfg_attr(feature = "openapi", schema(max_items = 50))]
    pub skipped: Vec<TestName>,
}

impl NotRun {
    /// What did not run in the run of this number. Other parts of the run may have the files and classes that `is_part` lacks.
    pub fn of(
        history: &History,
        number: i32,
        is_part: bool,
        name: impl Fn(TestOrdinal) -> Option<TestName>,
    ) -> Self {
        let is_run = |observed: &&RunObservations| observed.run.number == number && observed.ending.complete;
        let (mut groups, mut skipped) = (BTreeSet::new(), BTreeSet::new());
        for run in history.runs.iter().filter(is_run) {
            let (stable, others) = last_runs(history, run);
            let Some(base) = stable.first().filter(|_| stable.len() == LAST_RUNS) else {
                continue;
            };
            let usually = |is_so: &dyn Fn(&RunObservations) -> bool| {
                [&stable, &others]
                    .map(|runs| runs.iter().filter(|run| is_so(run)).count() * 10 >= runs.len() * 9)
                    == [true, true]
            };
            // Most runs lack nothing, so names are read of few tests.
            let absent: Vec<TestOrdinal> = ran_in(base).filter(|test| !run.ran(*test)).collect();
            let group_of = |test: TestOrdinal| Group::of(name(test)?);
            let mut tests_of: BTreeMap<Group, Vec<TestOrdinal>> = BTreeMap::new();
            for test in &absent {
                if let Some(group) = group_of(*test) {
                    tests_of.entry(group).or_default().push(*test);
                }
            }
            if is_part {
                tests_of.clear();
            }
            if !tests_of.is_empty() {
                for group in ran_in(run).filter_map(group_of) {
                    tests_of.remove(&group);
                }
            }
            tests_of.retain(|_, tests| usually(&|run| tests.iter().any(|test| run.ran(*test))));
            let of_groups: BTreeSet<TestOrdinal> = tests_of.values().flatten().copied().collect();
            let passed = |test: TestOrdinal| move |run: &RunObservations| run.ran(test) && !run.failed(test);
            let of_others = absent
                .iter()
                .filter(|test| run.present.contains(**test) && !of_groups.contains(test));
            skipped.extend(
                of_others
                    .filter(|test| usually(&passed(**test)))
                    .filter_map(|test| name(*test)),
            );
            groups.extend(tests_of.into_keys());
        }
        let mut not_run = Self {
            skipped: skipped.into_iter().take(MOST).collect(),
            ..Self::default()
        };
        for group in groups {
            let (list, name) = match group {
                Group::File(file) => (&mut not_run.files, file),
                Group::Class(class) => (&mut not_run.classes, class),
            };
            if list.len() < MOST {
                list.push(name);
            }
        }
        not_run
    }

    /// The memory that it takes beside itself, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let groups = self.files.iter().chain(&self.classes).map(String::len);
        groups.chain(self.skipped.iter().map(TestName::text_bytes)).sum()
    }
}

/// The tests of a file, or of a class or module where reports name no file.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    File(String),
    Class(String),
}

impl Group {
    fn of(test: TestName) -> Option<Self> {
        match test.file_path {
            Some(file) => Some(Self::File(file)),
            None => Some(Self::Class(test.name.rsplit_once(" > ")?.0.to_owned())),
        }
    }
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

#[cfg(test)]
mod tests {
    use assay_domain::{
        observation::{Failure, RunFacts},
        timestamp::Timestamp,
    };

    use super::*;

    fn run(number: i32, branch: &str, ran: &[TestOrdinal]) -> RunObservations {
        let mut run = RunObservations::of(RunFacts {
            number,
            started_at: Timestamp::from_unix_ms(i64::from(number) * 60_000),
            branch: Some(branch.into()),
            ..RunFacts::default()
        });
        run.present = [0, 1, 2].into_iter().collect();
        run.skipped = [0, 1, 2].into_iter().filter(|test| !ran.contains(test)).collect();
        run
    }

    fn name(test: TestOrdinal) -> Option<TestName> {
        let file = if test == 0 { "a.js" } else { "b.js" };
        Some(TestName {
            name: test.to_string(),
            file_path: Some(file.to_owned()),
        })
    }

    #[test]
    fn a_file_or_test_that_ran_in_nearly_all_runs_of_the_suite_is_listed() {
        let stable = (1..=10).map(|number| run(number, "main", &[0, 1, 2]));
        let mut history = History {
            stable_branch: "main".into(),
            tests: 3,
            runs: stable.collect(),
        };
        let listed = |history: &History, last: RunObservations| {
            let mut history = history.clone();
            history.runs.push(last);
            let NotRun { files, skipped, .. } = NotRun::of(&history, 100, false, name);
            let skipped = skipped.into_iter().map(|test| test.name);
            files.into_iter().chain(skipped).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(listed(&history, run(100, "change", &[0])), "b.js");
        assert_eq!(listed(&history, run(100, "change", &[0, 2])), "1");
        // The run lacks a part.
        let mut incomplete = run(100, "change", &[0]);
        incomplete.ending.complete = false;
        assert_eq!(listed(&history, incomplete), "");
        // A skipped test that had failed on the stable branch twice.
        let mut failed = history.clone();
        for observed in failed.runs.iter_mut().take(2) {
            observed.failures = vec![Failure {
                test: 1,
                recovered: false,
                failed_attempts: 1,
                lost_ms: None,
            }];
        }
        assert_eq!(listed(&failed, run(100, "change", &[0, 2])), "");
        // An earlier push of this branch did not load the file; another branch runs a selection.
        history.runs.push(run(11, "change", &[0]));
        assert_eq!(listed(&history, run(100, "change", &[0])), "b.js");
        history.runs.push(run(12, "other", &[0]));
        assert_eq!(listed(&history, run(100, "change", &[0])), "");
        // Nine runs of the stable branch are too few.
        history.runs.remove(0);
        history.runs.pop();
        assert_eq!(listed(&history, run(100, "change", &[0])), "");
    }
}
