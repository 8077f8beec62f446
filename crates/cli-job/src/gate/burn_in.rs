//! Burn-in: new tests, and those whose file the change touches, run again until it is known how often they fail.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use assay_cli_terminal::output;
use assay_domain::test::TestName;
use assay_flakiness::plan::{
    burn_in::{self, BurnInRound, Candidate, RateLevel},
    reruns::RerunKind,
};
use assay_reports::Report;
use serde::{Deserialize, Serialize};

use crate::gate::{
    judged::JudgedRun,
    policy::touches_test,
    selector::{Budget, CommandJob, Ended, RunEnd, Selector, file_of, ran},
};

/// Most tests that run again. New tests come first.
const MOST_TESTS: usize = 50;
/// So many tests of several files that fail together have one cause outside of them.
const CROWD: usize = 3;

/// The burn-in of one job.
#[derive(Debug)]
pub struct BurnIn<'a> {
    selector: &'a Selector,
    tests: Vec<BurnedTest>,
    left_out: usize,
    startup_s: f64,
    budget: Budget,
    /// Whether a test has run again.
    has_run: bool,
}

#[derive(Debug)]
struct BurnedTest {
    name: TestName,
    is_new: bool,
    candidate: Candidate,
    /// Whether its last stored result is a failure.
    is_left_failed: bool,
    /// Whether the server knew it as flaky before its first failure of this job was stored; none while that is not asked.
    is_known: Option<bool>,
}

/// What a burn-in found, for a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BurnInResults {
    /// The new tests among those that ran.
    pub new: usize,
    /// The tests that ran.
    pub tests: usize,
    /// How often a test ran, with its first run: the fewest and the most.
    pub runs: (u32, u32),
    /// The seconds that it took.
    pub seconds: f64,
    /// The tests whose rate is below 5 % with a probability of .9.
    pub good: usize,
    /// The tests that did not run again because there were too many.
    pub left_out: usize,
    /// The tests that failed and passed, or only failed.
    pub failed: Vec<BurnedFailure>,
}

/// A test that failed in a burn-in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BurnedFailure {
    /// The test.
    pub test: TestName,
    /// How often it ran and failed, with its first run.
    pub runs: u32,
    /// How often it failed.
    pub failures: u32,
    /// The interval of its rate with a probability of .95.
    pub interval: (f64, f64),
    /// Whether it is newly flaky: no earlier run shows that it is, and its rate is not below 5 %.
    pub is_newly_flaky: bool,
}

impl<'a> BurnIn<'a> {
    /// The burn-in of a report's passed tests that are new, or in a changed file. `judged` is the judgement from before the
    /// report was stored.
    pub fn new(
        selector: &'a Selector,
        (report, judged): (&Report, &JudgedRun),
        (new, changed): (&[TestName], &BTreeSet<String>),
        took: Duration,
        budget: Duration,
    ) -> Self {
        let new: HashSet<&TestName> = new.iter().collect();
        let is_changed = |test: &TestName| touches_test(changed, &test.name, test.file_path.as_deref());
        let mut files: BTreeMap<String, usize> = BTreeMap::new();
        let mut tests: Vec<BurnedTest> = ran(report)
            .filter(|(_, failed)| !failed)
            .map(|(test, _)| (&test.test, test.attempts.len() > 1))
            .filter(|(test, _)| new.contains(test) || is_changed(test))
            .map(|(test, retried)| {
                let next = files.len();
                let file = *files.entry(file_of(test).unwrap_or_default()).or_insert(next);
                let seconds =
                    [RerunKind::Alone, RerunKind::WithFile].map(|kind| selector.seconds(test, kind));
                let [alone, with_file] = seconds;
                let mut candidate = Candidate::new(selector.process(), file, (alone, with_file), retried);
                if retried {
                    candidate.add(RerunKind::WithFile, false);
                }
                BurnedTest {
                    name: test.clone(),
                    is_new: new.contains(test),
                    candidate,
                    is_left_failed: false,
                    // No run of the stable branch has a new test: what is known of it, this change has done.
                    is_known: new
                        .contains(test)
                        .then_some(false)
                        .or_else(|| known(judged, test)),
                }
            })
            .collect();
        tests.sort_by(|left, right| (!left.is_new, &left.name).cmp(&(!right.is_new, &right.name)));
        let left_out = tests.len().saturating_sub(MOST_TESTS);
        tests.truncate(MOST_TESTS);
        Self {
            startup_s: selector.startup_s(took),
            selector,
            tests,
            left_out,
            budget: Budget::of(budget),
            has_run: false,
        }
    }

    /// Runs the tests again until the rates are known or the time is over, and notes what runs.
    pub fn run<J: CommandJob>(mut self, job: &mut J) -> Ended<BurnInResults, J::Error> {
        if self.tests.is_empty() {
            job.progress()
                .note("no test runs in: none is new, and no test's file is part of the change");
            return Ended {
                found: None,
                error: None,
            };
        }
        let mut is_begun = false;
        let error = loop {
            let candidates: Vec<Candidate> = self.tests.iter().map(|test| test.candidate).collect();
            let Some(round) = burn_in::next(&candidates, self.budget.left_s(), self.startup_s) else {
                break None;
            };
            if !is_begun {
                let count = u64::try_from(round.candidates.len()).unwrap_or(u64::MAX);
                job.progress().note(&format!(
                    "running {} again until it is known how often they fail, for at most {} s",
                    output::count(count, "new or changed test"),
                    self.budget.limit_s()
                ));
            }
            is_begun = true;
            if let Err(error) = self.run_round(job, &round) {
                break Some(error);
            }
        };
        if !self.has_run {
            job.progress().note(&format!(
                "no test runs in: a repetition takes longer than --burn-in {} s, or the tests cannot be selected",
                self.budget.limit_s()
            ));
        }
        Ended {
            found: self.has_run.then(|| self.results()),
            error,
        }
    }

    /// Runs the tests of a round once. Failures are sent, and the first pass after them.
    fn run_round<J: CommandJob>(&mut self, job: &mut J, round: &BurnInRound) -> Result<(), J::Error> {
        let names = self.named(&round.candidates);
        let selection = self.selector.select(&names, round.kind)?;
        let failed = match job.run(selection, self.budget.left())? {
            RunEnd::Reported(report, _) => self.selector.failed(&report),
            RunEnd::Unreported => HashMap::new(),
            RunEnd::TimedOut => {
                job.progress()
                    .note("the time of --burn-in is over; the repetition that it ended does not count");
                return Ok(());
            }
        };
        let of_test = |index: &usize| failed.get(&self.tests.get(*index)?.name).copied();
        let chosen = round.candidates.iter();
        let results: Vec<(usize, Option<bool>)> = chosen.map(|index| (*index, of_test(index))).collect();
        if self.is_crowd(&results) {
            job.progress()
                .note("several tests failed together; this repetition does not count");
            return Ok(());
        }
        let mut sent = Vec::new();
        for (index, failed) in &results {
            let Some(test) = self.tests.get_mut(*index) else {
                continue;
            };
            let Some(failed) = *failed else {
                test.candidate.exclude(round.kind);
                continue;
            };
            self.has_run = true;
            test.candidate.add(round.kind, failed);
            if failed || test.is_left_failed {
                sent.push(test.name.clone());
            }
            test.is_left_failed = failed;
        }
        if !sent.is_empty() {
            self.learn(&job.send(&sent)?);
        }
        Ok(())
    }

    fn named(&self, tests: &[usize]) -> Vec<TestName> {
        let tests = tests.iter().filter_map(|index| self.tests.get(*index));
        tests.map(|test| test.name.clone()).collect()
    }

    /// Whether many tests of several files failed in one repetition.
    fn is_crowd(&self, results: &[(usize, Option<bool>)]) -> bool {
        let failed: Vec<&BurnedTest> = results
            .iter()
            .filter(|(_, failed)| *failed == Some(true))
            .filter_map(|(index, _)| self.tests.get(*index))
            .collect();
        let files: BTreeSet<usize> = failed.iter().map(|test| test.candidate.file).collect();
        failed.len() >= CROWD && 2 * failed.len() >= results.len() && files.len() > 1
    }

    /// Notes which tests are known as flaky. The server judges a report before it stores it, so that the first answer about
    /// a test is not based on its failures in this job, and later ones are.
    fn learn(&mut self, judged: &JudgedRun) {
        for test in &mut self.tests {
            test.is_known = test.is_known.or_else(|| known(judged, &test.name));
        }
    }

    fn results(&self) -> BurnInResults {
        let runs = self.tests.iter().map(|test| test.candidate.runs());
        let level = |test: &BurnedTest| test.candidate.level();
        let failed = self.tests.iter().filter(|test| test.candidate.failures() > 0);
        BurnInResults {
            new: self.tests.iter().filter(|test| test.is_new).count(),
            tests: self.tests.len(),
            runs: (runs.clone().min().unwrap_or(0), runs.max().unwrap_or(0)),
            seconds: self.budget.spent_s(),
            good: self
                .tests
                .iter()
                .filter(|test| level(test) == RateLevel::Good)
                .count(),
            left_out: self.left_out,
            failed: failed
                .map(|test| BurnedFailure {
                    test: test.name.clone(),
                    runs: test.candidate.runs(),
                    failures: test.candidate.failures(),
                    interval: test.candidate.interval(),
                    is_newly_flaky: test.is_known != Some(true) && level(test) != RateLevel::Good,
                })
                .collect(),
        }
    }
}

/// Whether a judgement knows a test as flaky; none if it does not have the test.
fn known(judged: &JudgedRun, test: &TestName) -> Option<bool> {
    let failure = judged
        .failures
        .iter()
        .find(|failure| failure.test_name == test.name && failure.file_path == test.file_path)?;
    Some(failure.known_as_flaky)
}

impl BurnInResults {
    /// One sentence: `3 new tests ran 22 times each, 41 s: cart > pays fails in 3 of 22 (4 to 33 %)`.
    pub fn in_words(&self) -> String {
        let count = |count: usize, noun: &str| output::count(count, noun);
        let tests = match self.tests - self.new {
            0 => count(self.new, "new test"),
            _ if self.new == 0 => count(self.tests, "changed test"),
            changed => format!("{} and {changed} changed", count(self.new, "new test")),
        };
        let each = if self.tests == 1 { "" } else { " each" };
        let runs = match self.runs {
            (fewest, most) if fewest == most => format!("{most} times{each}"),
            (fewest, most) => format!("{fewest} to {most} times"),
        };
        let failed: Vec<String> = self.failed.iter().map(BurnedFailure::in_words).collect();
        let found = match (failed.is_empty(), self.good == self.tests) {
            (false, _) => failed.join(", "),
            (true, true) => "none failed, and each fails in less than 5 %".to_owned(),
            (true, false) => {
                "none failed, which is too few to know that each fails in less than 5 %".to_owned()
            }
        };
        let left_out = match self.left_out {
            0 => String::new(),
            left_out => format!("; {left_out} more did not run again"),
        };
        format!(
            "{tests} ran {runs}, {:.0} s: {found}{left_out}",
            self.seconds.max(1.0)
        )
    }
}

impl BurnedFailure {
    /// `cart > pays fails in 3 of 22 (4 to 33 %)`.
    pub fn in_words(&self) -> String {
        let (low, high) = self.interval;
        format!(
            "{} fails in {} of {} ({:.0} to {:.0} %)",
            self.test.name,
            self.failures,
            self.runs,
            100.0 * low,
            100.0 * high
        )
    }
}

#[cfg(test)]
mod tests;
