//! Reruns of failed tests until the gate can decide.
//!
//! The server judges each rerun as a part of the run. What only this side knows is with which tests a test ran again, and
//! therefore what its passes exclude. The larger of both probabilities counts. The tests of a mass failure have one cause,
//! so that what some of them do in reruns is evidence about all of them.

mod session;

use std::collections::HashMap;

use assay_answers::failures::{BLOCKS_FROM, CLEAR, action};
use assay_cli_terminal::output;
use assay_domain::{cause::Cause, test::TestName};
use assay_flakiness::{
    any_mine,
    plan::reruns::{self, Limits, ProcessOf, RerunKind, RerunResults, Suspect},
};

use crate::gate::{
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

impl Bounds {
    const fn limits(self) -> Limits {
        Limits {
            budget_s: self.left_s,
            startup_s: self.startup_s,
            passes_below: self.risk,
            blocks_from: BLOCKS_FROM,
        }
    }
}

/// The reruns of a run, between its first judgement and the decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Reruns {
    judged: JudgedRun,
    /// The failed tests, as indexes of the failures.
    failed: Vec<usize>,
    /// The same tests for the planner.
    suspects: Vec<Suspect>,
    /// Their causes as the engine judges them.
    causes: Vec<Cause>,
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
            .failed()
            .map(|failure| {
                let test = name_of(failure);
                let suspect = Suspect {
                    mine: failure.mine,
                    lasting: failure.lasting,
                    in_mass_failure: failure.in_mass_failure,
                    same_error: failure.same_error,
                    process,
                    results: RerunResults::default(),
                    by_engine: None,
                    alone_s: seconds(&test, RerunKind::Alone),
                    with_file_s: seconds(&test, RerunKind::WithFile),
                };
                (suspect, failure.cause)
            })
            .collect();
        Self::of(judged, tests)
    }

    /// The failed tests of a run, each with its results so far and its cause as the engine judges it.
    pub fn of(judged: JudgedRun, tests: Vec<(Suspect, Cause)>) -> Self {
        let failures = judged.failures.iter().enumerate();
        let failed = failures.filter(|(_, failure)| !failure.recovered);
        let failed = failed.map(|(index, _)| index).collect();
        let (suspects, causes) = tests.into_iter().unzip();
        Self {
            judged,
            failed,
            suspects,
            causes,
            times: 0,
        }
    }

    /// What [`Self::of`] takes.
    pub fn parts(&self) -> (&JudgedRun, impl Iterator<Item = (Suspect, Cause)>) {
        let tests = self.suspects.iter().copied().zip(self.causes.iter().copied());
        (&self.judged, tests)
    }

    /// What runs next within the bounds: at most one round of each kind; empty if no rerun is worth its time.
    pub fn next(&self, bounds: Bounds) -> Vec<Round> {
        let mut rounds: Vec<Round> = Vec::new();
        for planned in reruns::plan(&self.suspects, &bounds.limits()) {
            let index = self.failed.get(planned.suspect);
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

    /// The first failed test.
    pub fn first(&self) -> Option<TestName> {
        self.tests().next().map(|(_, failure)| name_of(failure))
    }

    /// The fewest seconds of one repetition of a failed test; none if the runner can select none of them.
    pub fn seconds(&self) -> Option<f64> {
        let each = self.suspects.iter();
        let seconds = each
            .flat_map(|suspect| [suspect.alone_s, suspect.with_file_s])
            .flatten();
        seconds.reduce(f64::min)
    }

    /// Whether more reruns may decide, whatever they cost.
    pub fn may_decide(&self, bounds: Bounds) -> bool {
        reruns::may_decide(&self.suspects, &bounds.limits())
    }

    /// The failed tests, each with its failure.
    fn tests(&self) -> impl Iterator<Item = (&Suspect, &JudgedFailure)> {
        let failures = self
            .failed
            .iter()
            .filter_map(|index| self.judged.failures.get(*index));
        self.suspects.iter().zip(failures)
    }

    /// Records the results of a round: whether each test failed. Returns the tests that have a result, and tests without a
    /// result do not run again in this way.
    pub fn record(&mut self, round: &Round, failed: impl Fn(&TestName) -> Option<bool>) -> Vec<TestName> {
        let mut ran = Vec::new();
        for test in &round.tests {
            let place = self.tests().position(|(_, failure)| name_of(failure) == *test);
            let Some(suspect) = place.and_then(|place| self.suspects.get_mut(place)) else {
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
        let passed = self.tests().filter(|(suspect, _)| suspect.results.passed() > 0);
        passed.map(|(_, failure)| name_of(failure)).collect()
    }

    /// Judges again, with the server's judgement of a rerun if it was sent.
    pub fn judge_again(&mut self, again: Option<&JudgedRun>) {
        let again = again.map_or(&[][..], |again| &again.failures);
        let by_server: HashMap<TestName, &JudgedFailure> =
            again.iter().map(|failure| (name_of(failure), failure)).collect();
        let causes = self.causes.iter_mut();
        for ((suspect, cause), index) in self.suspects.iter_mut().zip(causes).zip(&self.failed) {
            let Some(failure) = self.judged.failures.get_mut(*index) else {
                continue;
            };
            if let Some(by_server) = by_server.get(&name_of(failure)) {
                suspect.judged_by_engine(by_server.mine, by_server.lasting);
                *cause = by_server.cause;
                failure.cause = by_server.cause;
                failure.environment = by_server.environment;
                failure.explanation.clone_from(&by_server.explanation);
            }
        }
        let of_mass_failure = || self.suspects.iter().filter(|suspect| suspect.in_mass_failure);
        let mass_failure_ran = of_mass_failure().any(|suspect| suspect.results.all() > 0);
        let passed_in_mass_failure = of_mass_failure().any(|suspect| suspect.results.passed() > 0);
        let mines = reruns::mines_now(&self.suspects);
        let suspects = self.suspects.iter().zip(&self.causes);
        for (((suspect, by_engine), index), mine) in suspects.zip(&self.failed).zip(mines) {
            let Some(failure) = self.judged.failures.get_mut(*index) else {
                continue;
            };
            failure.mine = mine;
            let (has_passed, of_good_code) = match suspect.in_mass_failure {
                true => (passed_in_mass_failure, Cause::Environment),
                // It failed and passed on one revision.
                false => (suspect.results.passed() > 0, Cause::Flake),
            };
            failure.cleared = has_passed && mine < 0.5;
            let ran = match suspect.in_mass_failure {
                true => mass_failure_ran,
                false => suspect.results.all() > 0,
            };
            if ran {
                failure.cause = cause_after(*by_engine, mine, has_passed.then_some(of_good_code));
            }
        }
        let failed = self.judged.failed();
        self.judged.mine = any_mine(failed.map(JudgedFailure::mine_and_shared));
        self.judged.action = action(self.judged.mine);
    }

    /// The judgement so far. Each test that ran again has its results in its explanation, and each other one of a mass
    /// failure has those of the tests that ran again for it.
    pub fn judged(&self) -> JudgedRun {
        let ran = |suspect: &&Suspect| suspect.results.all() > 0;
        let for_mass_failure = self.suspects.iter().filter(|suspect| suspect.in_mass_failure);
        let for_mass_failure: Vec<&Suspect> = for_mass_failure.filter(ran).collect();
        let together = for_mass_failure
            .iter()
            .fold(RerunResults::default(), |all, suspect| all.and(&suspect.results));
        let mut judged = self.judged.clone();
        for (suspect, index) in self.suspects.iter().zip(&self.failed) {
            let Some(failure) = judged.failures.get_mut(*index) else {
                continue;
            };
            if ran(&suspect) {
                failure.explanation += &format!("; ran again: {}", in_words(&suspect.results));
            } else if suspect.in_mass_failure && !for_mass_failure.is_empty() {
                let tests = u64::try_from(for_mass_failure.len()).unwrap_or(u64::MAX);
                failure.explanation += &format!(
                    "; {} of its mass failure ran again: {}",
                    output::count(tests, "test"),
                    counts_in_words(together.passed(), together.failed())
                );
            }
        }
        judged
    }

    /// The summary for the decision; none if nothing ran again.
    pub fn summary(&self, seconds: f64) -> Option<Reran> {
        let ran = self.suspects.iter().filter(|suspect| suspect.results.all() > 0);
        let tests = ran.count();
        (self.times > 0).then_some(Reran {
            tests: u32::try_from(tests).unwrap_or(u32::MAX),
            times: self.times,
            seconds,
            mine: self.judged.mine,
        })
    }
}

/// The cause of a test that ran again, by the engine's cause and P(this change broke it); `of_good_code` if it passed.
fn cause_after(by_engine: Cause, mine: f64, of_good_code: Option<Cause>) -> Cause {
    let is_mine = matches!(by_engine, Cause::ThisChange | Cause::EarlierOnBranch);
    if mine >= CLEAR {
        return if is_mine { by_engine } else { Cause::ThisChange };
    }
    match of_good_code {
        _ if 1.0 - mine < CLEAR => Cause::Unclear,
        Some(of_good_code) if is_mine || by_engine == Cause::Unclear => of_good_code,
        None if is_mine => Cause::Unclear,
        _ => by_engine,
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
        (of.passed + of.failed > 0).then(|| format!("{} {kind}", counts_in_words(of.passed, of.failed)))
    };
    let kinds = [
        of_kind(results.alone, "alone"),
        of_kind(results.with_file, "with its file"),
    ];
    kinds.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// `passed 2, failed 1`.
fn counts_in_words(passed: u32, failed: u32) -> String {
    let counts = [("passed", passed), ("failed", failed)];
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(word, count)| format!("{word} {count}")).collect();
    counts.join(", ")
}

#[cfg(test)]
mod tests;
