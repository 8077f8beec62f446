//! Reruns of failed tests until the gate can decide.
//!
//! The server judges each rerun as a part of the run. What only this side knows is with which tests a test ran again, and
//! therefore what its passes exclude. The larger of both probabilities counts.

mod session;

use std::collections::BTreeMap;

use assay_domain::{cause::Cause, test::TestName};
use assay_explain::failures::{BLOCKS_FROM, action};
use assay_flakiness::plan::reruns::{self, Limits, ProcessOf, RerunKind, RerunResults, Suspect};

use crate::{
    judged::{JudgedFailure, JudgedRun},
    policy::Reran,
};

pub use session::Session;

/// What bounds the reruns of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The seconds that are left.
    pub left_s: f64,
    /// The seconds of a start of the runner.
    pub startup_s: f64,
    /// The risk of the rules.
    pub risk: f64,
}

/// The reruns of a run, between its first judgement and the decision.
#[derive(Debug, Clone)]
pub struct Reruns {
    judged: JudgedRun,
    /// For each failed test, by its index among the failures.
    tests: BTreeMap<usize, Suspect>,
    /// What the server last said about the reruns of a test.
    by_server: BTreeMap<usize, f64>,
    times: u32,
}

/// The tests that run again in one start of the runner.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// With which tests.
    pub kind: RerunKind,
    /// The tests.
    pub tests: Vec<TestName>,
}

impl Reruns {
    /// The failed tests of a run. `seconds` are those of one repetition of a test; none if the runner cannot select it.
    pub fn new(
        judged: JudgedRun,
        process: ProcessOf,
        seconds: impl Fn(&TestName, RerunKind) -> Option<f64>,
    ) -> Self {
        let tests = judged
            .failures
            .iter()
            .enumerate()
            .filter(|(_, failure)| !failure.recovered)
            .map(|(index, failure)| {
                let test = name_of(failure);
                let suspect = Suspect {
                    mine: failure.mine,
                    lasting: failure.lasting,
                    process,
                    results: RerunResults::default(),
                    alone_s: seconds(&test, RerunKind::Alone),
                    with_file_s: seconds(&test, RerunKind::WithFile),
                };
                (index, suspect)
            });
        Self {
            tests: tests.collect(),
            judged,
            by_server: BTreeMap::new(),
            times: 0,
        }
    }

    /// What runs next within the bounds: at most one round of each kind; empty if nothing can decide.
    pub fn next(&self, bounds: Bounds) -> Vec<Round> {
        let (open, suspects, limits) = self.open(bounds);
        let mut rounds: Vec<Round> = Vec::new();
        for planned in reruns::plan(&suspects, &limits).reruns {
            let index = open.get(planned.suspect);
            let Some(failure) = index.and_then(|index| self.judged.failures.get(*index)) else {
                continue;
            };
            match rounds.iter_mut().find(|round| round.kind == planned.kind) {
                Some(round) => round.tests.push(name_of(failure)),
                None => rounds.push(Round {
                    kind: planned.kind,
                    tests: vec![name_of(failure)],
                }),
            }
        }
        rounds
    }

    /// Whether more reruns may decide, whatever they cost.
    pub fn may_decide(&self, bounds: Bounds) -> bool {
        let (_, suspects, limits) = self.open(bounds);
        reruns::may_decide(&suspects, &limits)
    }

    /// The tests that stand in the way of a decision: indexes, suspects and limits of a plan.
    fn open(&self, bounds: Bounds) -> (Vec<usize>, Vec<Suspect>, Limits) {
        let mine = |index: &usize| {
            self.judged
                .failures
                .get(*index)
                .map_or(0.0, |failure| failure.mine)
        };
        let indexes: Vec<usize> = self.tests.keys().copied().collect();
        let mines: Vec<f64> = indexes.iter().map(mine).collect();
        let open: Vec<usize> = reruns::suspects(&mines, bounds.risk)
            .into_iter()
            .filter_map(|place| indexes.get(place).copied())
            .collect();
        let others = indexes.iter().filter(|index| !open.contains(index));
        let none_of_others: f64 = others.map(|index| 1.0 - mine(index)).product();
        let suspects = open.iter().filter_map(|index| self.tests.get(index).copied());
        let limits = Limits {
            budget_s: bounds.left_s,
            startup_s: bounds.startup_s,
            passes_below: bounds.risk,
            blocks_from: BLOCKS_FROM,
            mine_of_others: 1.0 - none_of_others,
        };
        (open.clone(), suspects.collect(), limits)
    }

    /// Records the results of a round: whether each test failed. Returns the tests that have a result, and tests without a
    /// result do not run again in this way.
    pub fn record(&mut self, round: &Round, failed: impl Fn(&TestName) -> Option<bool>) -> Vec<TestName> {
        let mut ran = Vec::new();
        for test in &round.tests {
            let of_test = |failure: &JudgedFailure| name_of(failure) == *test;
            let index = self.judged.failures.iter().position(of_test);
            let Some(suspect) = index.and_then(|index| self.tests.get_mut(&index)) else {
                continue;
            };
            match failed(test) {
                Some(failed) => {
                    suspect.results.add(round.kind, failed);
                    ran.push(test.clone());
                }
                None => match round.kind {
                    RerunKind::Alone => suspect.alone_s = None,
                    RerunKind::WithFile => suspect.with_file_s = None,
                },
            }
        }
        self.times = self.times.saturating_add(u32::from(!ran.is_empty()));
        ran
    }

    /// The tests that have passed in a rerun.
    pub fn passed(&self) -> Vec<TestName> {
        let passed = self
            .tests
            .iter()
            .filter(|(_, suspect)| suspect.results.passed() > 0);
        passed
            .filter_map(|(index, _)| self.judged.failures.get(*index))
            .map(name_of)
            .collect()
    }

    /// Judges again, with the server's judgement of a rerun if it was sent.
    pub fn judge_again(&mut self, again: Option<&JudgedRun>) {
        for (index, suspect) in &self.tests {
            if suspect.results.all() == 0 {
                continue;
            }
            let Some(failure) = self.judged.failures.get_mut(*index) else {
                continue;
            };
            let test = name_of(failure);
            let failures = again.map_or(&[][..], |again| &again.failures);
            let by_server = failures.iter().find(|failure| name_of(failure) == test);
            let now = suspect.mine_now();
            if let Some(by_server) = by_server {
                self.by_server.insert(*index, by_server.mine);
                failure.cause = by_server.cause;
                failure.explanation.clone_from(&by_server.explanation);
            }
            failure.mine = self
                .by_server
                .get(index)
                .map_or(now, |by_server| by_server.max(now));
            // It failed and passed on one revision.
            if suspect.results.passed() > 0 && failure.cause == Cause::Unclear && failure.mine < 0.5 {
                failure.cause = Cause::Flake;
            }
        }
        let none_mine: f64 = self.judged.failed().map(|failure| 1.0 - failure.mine).product();
        self.judged.mine = 1.0 - none_mine;
        self.judged.action = action(self.judged.mine);
    }

    /// The judgement so far. Each test that ran again has its results in its explanation.
    pub fn judged(&self) -> JudgedRun {
        let mut judged = self.judged.clone();
        for (index, suspect) in &self.tests {
            if let Some(failure) = judged.failures.get_mut(*index)
                && suspect.results.all() > 0
            {
                failure.explanation += &format!("; ran again: {}", in_words(&suspect.results));
            }
        }
        judged
    }

    /// The summary for the decision; none if nothing ran again.
    pub fn summary(&self, seconds: f64) -> Option<Reran> {
        let tests = self
            .tests
            .values()
            .filter(|suspect| suspect.results.all() > 0)
            .count();
        (self.times > 0).then_some(Reran {
            tests: u32::try_from(tests).unwrap_or(u32::MAX),
            times: self.times,
            seconds,
            mine: self.judged.mine,
        })
    }
}

fn name_of(failure: &JudgedFailure) -> TestName {
    TestName {
        name: failure.test_name.clone(),
        file_path: failure.file_path.clone(),
    }
}

/// `passed 2, failed 1 alone; passed 1 with its file`.
fn in_words(results: &RerunResults) -> String {
    let of_kind = |of: reruns::Results, kind: &str| {
        let counts = [("passed", of.passed), ("failed", of.failed)];
        let counts = counts.iter().filter(|(_, count)| *count > 0);
        let counts: Vec<String> = counts.map(|(word, count)| format!("{word} {count}")).collect();
        (!counts.is_empty()).then(|| format!("{} {kind}", counts.join(", ")))
    };
    let kinds = [
        of_kind(results.alone, "alone"),
        of_kind(results.with_file, "with its file"),
    ];
    kinds.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use assay_domain::cause::Action;

    use super::*;

    fn failure(name: &str, mine: f64) -> JudgedFailure {
        JudgedFailure {
            test_name: name.to_owned(),
            file_path: Some("cart.test.js".to_owned()),
            recovered: false,
            cause: Cause::Unclear,
            mine,
            lasting: 0.0,
            explanation: "Passed in all 41 runs on main and failed on this revision".to_owned(),
            broken_on_stable: false,
            known_as_flaky: false,
            runs_elsewhere: 41,
            same_error: 1,
            first_failed_at: None,
        }
    }

    fn run(failures: Vec<JudgedFailure>) -> JudgedRun {
        JudgedRun {
            mine: 0.5,
            action: Action::Rerun,
            incomplete: None,
            tests: 3,
            total: failures.len(),
            failures,
            lacking: None,
        }
    }

    fn reruns(failures: Vec<JudgedFailure>) -> Reruns {
        Reruns::new(run(failures), ProcessOf::File, |_, _| Some(1.0))
    }

    const BOUNDS: Bounds = Bounds {
        left_s: 90.0,
        startup_s: 1.0,
        risk: 0.05,
    };

    #[test]
    fn only_tests_in_the_way_run_again_and_passes_lower_the_probability() {
        let mut reruns = reruns(vec![failure("pays", 0.4), failure("odd", 0.01)]);
        assert!(reruns.judged().failures[0].explanation.ends_with("revision"));
        for _ in 0..3 {
            for round in reruns.next(BOUNDS) {
                assert_eq!(round.tests.len(), 1, "{round:?}");
                let ran = reruns.record(&round, |test| (test.name == "pays").then_some(false));
                assert_eq!(ran[0].name, "pays");
            }
            let again = run(vec![failure("pays", 0.02)]);
            reruns.judge_again(Some(&again));
        }
        assert_eq!(reruns.next(BOUNDS), []);
        let judged = reruns.judged();
        assert!(judged.mine < 0.05 && judged.action == Action::Pass, "{judged:?}");
        assert_eq!(judged.failures[0].cause, Cause::Flake);
        assert!(
            judged.failures[0].explanation.contains("; ran again: passed "),
            "{judged:?}"
        );
        let summary = reruns.summary(14.0).unwrap();
        assert_eq!((summary.tests, summary.seconds), (1, 14.0));
    }

    #[test]
    fn the_larger_of_both_probabilities_counts() {
        let mut reruns = reruns(vec![failure("pays", 0.4)]);
        let rounds = reruns.next(BOUNDS);
        reruns.record(&rounds[0], |_| Some(false));
        reruns.judge_again(Some(&run(vec![failure("pays", 0.3)])));
        assert_eq!(reruns.judged().failures[0].mine, 0.3);
        reruns.judge_again(Some(&run(vec![failure("pays", 0.0001)])));
        assert!(reruns.judged().failures[0].mine > 0.005);
    }

    #[test]
    fn a_test_without_a_result_does_not_run_again() {
        let mut reruns = reruns(vec![failure("pays", 0.4)]);
        for _ in 0..2 {
            let rounds = reruns.next(BOUNDS);
            assert_eq!(rounds.len(), 1);
            assert_eq!(reruns.record(&rounds[0], |_| None), []);
        }
        assert_eq!(reruns.next(BOUNDS), []);
        assert_eq!(reruns.summary(1.0), None);
    }
}
